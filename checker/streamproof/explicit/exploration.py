"""`explore`: search all reachable states of a system and decide all properties in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import field

from streamproof.explicit.coverage import coverage, with_conditions
from streamproof.explicit.early import EarlyEnd
from streamproof.explicit.findings import judge, violations
from streamproof.explicit.level_search import LevelSearch, SearchTask
from streamproof.explicit.limits import Budget, Stop
from streamproof.explicit.reductions.plan import ReductionPlan, plan
from streamproof.explicit.tiers import run_tiers
from streamproof.interrupts import patiently, requested
from streamproof.system import build as b
from streamproof.system.assume import simplify
from streamproof.system.byte_sizes import bytes_about
from streamproof.system.constraint import within_constraint
from streamproof.system.errors import ModelError, UsageError
from streamproof.system.files import expect_writable, new_folders
from streamproof.system.flatten import Rewriter
from streamproof.system.memory import peak_bytes, resident_bytes
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.options import DEFAULTS, SearchOptions
from streamproof.system.records import dataclass, replace
from streamproof.system.scalarise import scalarise
from streamproof.system.timely import timely
from streamproof.system.verdict import CheckResult, Counts, Coverage, Finding, OutDegree, Progress, Seconds


@dataclass(frozen=True)
class Exploration(CheckResult):
    """The result of a search of the state space. `stopped` is the value of a `limits.Stop`.

    `counts`, `states()` and `coverage` do not include states that a reduction leaves out.
    """

    counts: Counts = Counts(0, 0, 0)
    coverage: Coverage = Coverage()
    peak_bytes: int = 0
    """Peak memory of the process, in bytes."""
    tier: str = ""
    """The tier that finished the search: `python` or `compiled`."""
    _search: LevelSearch | None = field(default=None, repr=False)

    @property
    def complete(self) -> bool:
        """Whether every reachable state was expanded."""
        return self.stopped is None

    @property
    def system(self) -> System:
        """The system that was searched."""
        return self.search.scalarised.original

    @property
    def search(self) -> LevelSearch:
        """The underlying search: scalar states by number, and the state graph."""
        assert self._search is not None, "set by `explore`"
        return self._search

    def states(self) -> Iterator[State]:
        """The states found, in the order of discovery; `counts.levels` has the number of states of each level."""
        return map(self.search.scalarised.decode, self.search.states())

    def detailed_coverage(self) -> Coverage:
        """`coverage` with counts for every guard conjunct, from another pass over the states.

        Without these counts after a reduced search, at a limit on time or memory, and after an interrupt.
        """
        if any(reduction.applied for reduction in self.reductions):
            return self.coverage
        return with_conditions(self.coverage, self.search)


def explore(
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Exploration:
    """Search the reachable states of `system` breadth first and decide its properties, within the limits of `options`.

    The search continues after a violation unless `options` end it early. At a limit, or after Ctrl-C, the undecided
    properties are *inconclusive*. Counts, verdicts and traces are the same for every tier, every number of workers, with
    `spill` (temporal properties stay undecided once memory is used up) and after `checkpoint` and `resume`. A reduced search
    has the same verdicts; `Exploration.reductions` lists the reductions that apply.

    `on_progress` is called at most once a second. `on_violation` is called with each violation at the end of its level, after
    the interpreter has replayed its trace.

    Raises `UsageError` for an unknown property or unusable folders, `ModelError` if the system has no initial state,
    `TooLarge` if a state has too many parts or a term is too large for the requested tier.
    """
    if options.spill is not None:
        expect_writable(options.spill, None)
    held = resident_bytes()
    if options.memory is not None and options.memory <= held:
        raise UsageError(
            f"memory limit of {bytes_about(options.memory)} is too low: this process already uses {bytes_about(held)}",
            remedy="raise --memory, or leave it out for a share of the machine's memory",
        )
    budget = Budget(options)
    chosen = _chosen(system, options)
    early = EarlyEnd(violations, options.stop_when_decided, options.max_violations, on_violation)
    begun = time.perf_counter()
    with patiently(), new_folders([] if options.spill is None else [options.spill]):
        with timely("preparing the search"):
            scalarised = scalarise(system)
            simple = simplify(scalarised.system)
            properties = [simple.property(p.name) for p in chosen]
            reduced = plan(scalarised, simple, properties, symmetry=options.symmetry, por=options.por)

        def after_level(search: LevelSearch) -> Stop | None:
            return early.after_level(search, reduced)

        task = SearchTask(scalarised, simple, properties, budget, after_level, on_progress)
        prepared = time.perf_counter() - begun
        with budget.listening():
            search, tier, followed = run_tiers(task, early, reduced)
        if not search.known and search.stopped is None:
            raise ModelError(
                f"{system.name} has no initial state",
                remedy="no choice of initial values satisfies its initial condition",
            )
        findings, mistake, liveness = judge(search, followed, early)
        compiling = prepared + search.compile_seconds
        whole = time.perf_counter() - begun
        explored = Exploration(
            findings=findings,
            counts=_counts(search, system),
            coverage=_coverage(search, followed),
            mistake=mistake,
            stopped=None if search.stopped is None else search.stopped.value,
            interrupted=search.stopped is Stop.INTERRUPTED or requested(),
            seconds=Seconds(whole, compiling, whole - compiling - liveness, liveness),
            reductions=followed.report(),
            peak_bytes=peak_bytes(),
            tier=tier,
            _search=search,
        )
        return within_constraint(system, explored)


def _chosen(system: System, options: SearchOptions) -> list[Property]:
    """The properties to decide, in declaration order. Raises `UsageError` for an unknown property."""
    names = options.properties
    wanted = None if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted((wanted or set()) - {p.name for p in system.properties})
    if unknown:
        known = ", ".join(p.name for p in system.properties) or "none"
        raise UsageError(f"{system.name} has no property {unknown[0]!r}", remedy=f"its properties are: {known}")
    return [
        p
        for p in system.properties
        if (wanted is None or p.name in wanted) and (options.deadlock or p.kind is not Kind.DEADLOCK)
    ]


def _counts(search: LevelSearch, system: System) -> Counts:
    degree = OutDegree(search.least, sum(search.generated) / search.expanded, search.most) if search.expanded else None
    outside: tuple[int, ...] = ()
    if system.constraint is not None:
        outside = search.count(b.not_(b.and_(Rewriter().scalar(c.expr) for c in system.constraint.conjuncts)))
    return Counts(search.known, search.total, len(search.levels), tuple(search.levels), search.queue, degree, outside)


def _coverage(search: LevelSearch, reduced: ReductionPlan) -> Coverage:
    """Coverage of a search. After a reduced search, missing states and (with stubborn sets) missing actions do not count as
    gaps."""
    if reduced.stubborn is not None:
        return Coverage()
    found = coverage(search)
    return replace(found, never_true={}) if reduced.reduces else found
