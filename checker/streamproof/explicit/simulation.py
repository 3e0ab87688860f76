"""`simulate`: seeded random walks through state spaces that are too large to search, with properties checked on the way.

In each visited state, all enabled instances are evaluated: evaluation errors, step properties and the properties of the
successors are checked one step ahead of the walk. The same seed gives the same walks.

A *uniform* walk takes every enabled instance with the same probability. A *guided* walk prefers new states and actions: the
weight of an instance is ``1 / (sqrt(1 + t) (1 + v)^3)``, where `t` is the number of times it was taken, and `v` the number of
walks, this one included, that visited its successor.

A property that walks do not refute is *inconclusive*, never *holds*. The interpreter replays every violation, after detours
have been cut out of its walk.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence

from streamproof.base.errors import UsageError
from streamproof.base.options import WALK_STEPS, WALKS, SearchOptions, timely
from streamproof.base.records import dataclass, replace
from streamproof.explicit.estimate import chao2
from streamproof.explicit.level_search import Budget, undecided
from streamproof.explicit.walks import WalkEffort, WalkEvent, Walks
from streamproof.explicit.witness import Witnesses
from streamproof.interrupts import requested
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.verdict import CheckResult, Finding, Mistake, Seconds, Trace, Verdict, lasso_text, number_of
from streamproof.transform.assume import simplify
from streamproof.transform.constraint import within_constraint
from streamproof.transform.scalarise import scalarise

WALKED = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK, Kind.TERMINATION)
"""Kinds of property that a walk can decide."""
SEEDS = 1 << 32
"""Number of seeds from which a random one is chosen."""


@dataclass(frozen=True)
class Simulation(CheckResult):
    """The result of random walks.

    `coverage` has per action the number of steps enabled in visited states (`generated`), and the number of steps taken to
    new states (`distinct`). `stopped`: ``violation``, ``time_limit``, ``memory``, ``interrupted``,
    ``evaluation error`` or ``every property decided``.
    """

    seed: int = 0
    guided: bool = True
    walks: int = 0
    """Number of walks begun."""
    steps: int = 0
    """Total number of steps of all walks."""
    distinct: int = 0
    """Number of distinct states visited."""
    longest: int = 0
    """Number of steps of the longest walk."""
    estimate: float | None = None
    """Lower estimate of the number of distinct states that such walks can visit (`estimate`); None for guided walks."""


def simulate(
    system: System,
    *,
    seed: int,
    properties: Collection[str] | None = None,
    walks: int = WALKS,
    steps: int = WALK_STEPS,
    time_limit: float | None = None,
    guided: bool = True,
    on_progress: Callable[[WalkEffort], None] | None = None,
    on_walk: Callable[[Trace], None] | None = None,
) -> Simulation:
    """Take `walks` random walks of at most `steps` steps and check `properties` (None: all that walks can refute).

    Stops at the first violation, after `time_limit` seconds, or on Ctrl-C. `on_progress` is called once a second, `on_walk`
    with each walk.

    Raises `UsageError` for an unknown property or a limit that is not positive, `ModelError` if there is no initial state.
    """
    for name, value in (("walks", walks), ("steps", steps)):
        if value <= 0:
            raise UsageError(f"{name} must be positive, got {value}")
    names = {p.name for p in system.properties}
    for name in properties or ():
        if name not in names:
            raise UsageError(f"{system.name} has no property {name!r}")
    chosen = [p for p in system.properties if (p.kind in WALKED if properties is None else p.name in properties)]
    begun = time.perf_counter()
    budget = Budget(SearchOptions(time_limit=time_limit))
    with timely("preparing the walks"):
        scalarised = scalarise(system)
        simple = simplify(scalarised.system)

        def walked(states: Sequence[State], taken: Sequence[int]) -> None:
            assert on_walk is not None
            on_walk(Trace(tuple(map(scalarised.decode, states)), tuple(system.instances[at] for at in taken)))

        run = Walks(
            scalarised,
            simple,
            [simple.property(p.name) for p in chosen],
            budget,
            random.Random(seed),
            guided=guided,
            most_steps=steps,
            on_progress=on_progress,
            on_walk=walked if on_walk is not None else None,
        )
    compiled = time.perf_counter() - begun
    with budget.listening():
        run.take(walks)
    findings, mistake = _judge(run, chosen)
    whole = time.perf_counter() - begun
    simulation = Simulation(
        findings=findings,
        coverage=run.coverage(),
        mistake=mistake,
        stopped=run.stopped,
        left_out="random walks do not visit every state",
        interrupted=run.stopped == "interrupted" or requested(),
        seconds=Seconds(whole, compiled, whole - compiled),
        shortest=False,
        seed=seed,
        guided=guided,
        walks=run.walks,
        steps=run.steps,
        distinct=len(run.visits),
        longest=run.longest,
        estimate=None if guided else chao2(run.visits.values(), run.walks),
    )
    return within_constraint(system, replace(simulation, notes=_notes(simulation, steps)))


def _notes(found: Simulation, steps: int) -> tuple[str, str]:
    """The extent of the walks, which repeats them, and of the states that they visited."""
    kind = "guided" if found.guided else "uniform"
    ended = "" if found.stopped is None else f"; ended by: {found.stopped}"
    guess = (
        ""
        if found.estimate is None
        else f"; such walks can visit more than about {found.estimate:.0f} (Chao2, an estimate that is mostly too low)"
    )
    return (
        f"seed {found.seed}: {found.walks} {kind} walk{'' if found.walks == 1 else 's'} of at most {steps} steps, "
        f"{found.steps} steps, the longest walk {found.longest}{ended}",
        f"{found.distinct} distinct states visited{guess}",
    )


def _judge(run: Walks, chosen: Sequence[Property]) -> tuple[tuple[Finding, ...], Mistake | None]:
    """A finding for each property, and the model's evaluation error, if any. Raises `Disagreement` if the interpreter does
    not confirm a finding."""
    mistake = None
    if run.fault is not None:
        way = run.shortened(run.fault.path)
        mistake = Mistake(*_witnesses(run, way).mistake_of_model(len(way) - 1))
    return tuple(_finding(run, number, prop, mistake) for number, prop in enumerate(chosen)), mistake


def _finding(run: Walks, number: int, prop: Property, mistake: Mistake | None) -> Finding:
    event = run.events.get(number)
    if event is not None:
        return _of_event(run, prop, event)
    if mistake is not None:
        return Finding(prop.name, prop.kind, Verdict.ERROR, mistake.trace, mistake.error.short_text)
    if prop.kind not in WALKED:
        return undecided(prop, "random walks cannot decide a property of this kind")
    many = number_of(run.walks, "walk")
    if prop.kind is Kind.REACHABLE:
        return undecided(prop, f"not reached in {many}; only check can show that it is unreachable")
    return undecided(prop, f"not violated in {many}; only check or prove can show that it holds")


def _of_event(run: Walks, prop: Property, event: WalkEvent) -> Finding:
    if event.loop is not None:
        trace, way = _lasso(run, event)
        return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, way)
    way_to = run.shortened(event.path)
    instance = None if event.instance is None else run.scalarised.original.instances[event.instance]
    return _witnesses(run, way_to).finding(prop, len(way_to) - 1, instance, mistake=event.mistake)


def _lasso(run: Walks, event: WalkEvent) -> tuple[Trace, str]:
    assert event.loop is not None
    stem = run.shortened(event.path[: event.loop + 1])
    cycle = event.path[event.loop :]
    states = [*stem, *cycle[1:]]
    trace = _witnesses(run, states).round([len(stem) - 1 + at for at in range(len(cycle))])
    return trace, lasso_text(len(stem) - 1, len(cycle), fair=False)


def _witnesses(run: Walks, way: Sequence[State]) -> Witnesses:
    """Traces from positions on a walk."""
    return Witnesses(run.scalarised, lambda number: way[number], lambda number: number - 1)
