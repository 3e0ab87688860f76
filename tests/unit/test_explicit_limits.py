"""What ends a search of the explicit engine early: limits, interrupts; and that no bound ever yields a clean verdict."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

from streamproof.base.errors import OutOfTime
from streamproof.base.options import SearchOptions, Tuning, memory_of_machine, peak_bytes, resident_bytes
from streamproof.explicit import exploration, level_search
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Budget, Stop
from streamproof.system import (
    Action,
    Conjunct,
    Counts,
    Fairness,
    Instance,
    Kind,
    Progress,
    Property,
    RangeSort,
    System,
    UsageError,
    Variable,
    Verdict,
)
from streamproof.system import build as b

MANY = 20_000_000
"""Limit on the states of a search that an interrupt has to end: without the interrupt the test fails, and takes no memory."""
BOUNDS: dict[str, Any] = {"max_states": MANY, "time_limit": 60.0}


def counters(number: int, top: int) -> System:
    """`number` counters that each go up to `top`, in any order: (top + 1) ** number states."""
    variables = [b.var(f"x{k}", RangeSort(0, top)) for k in range(number)]
    actions = tuple(
        Action(
            f"up{k}",
            (),
            Fairness.NONE,
            (
                Instance(
                    f"up{k}", (), (), (Conjunct(b.less(v, b.num(top)), "", None),), ((v.name, b.add(v, b.num(1))),)
                ),
            ),
        )
        for k, v in enumerate(variables)  # type: ignore[union-attr]
    )
    properties = (
        Property("low", Kind.INVARIANT, b.not_(b.eq(variables[0], b.num(1)))),
        Property("fine", Kind.INVARIANT, b.less_eq(b.add(variables[0], variables[1]), b.num(2 * top))),
        Property("below", Kind.INVARIANT, b.not_(b.and_(b.eq(v, b.num(top)) for v in variables))),
        Property("half", Kind.REACHABLE, b.eq(variables[0], b.num(2))),
        Property("top", Kind.REACHABLE, b.and_(b.eq(v, b.num(top)) for v in variables)),
        Property("grows", Kind.STEP, b.less_eq(variables[0], b.next_("x0", RangeSort(0, top)))),
        Property("free", Kind.DEADLOCK, b.TRUE),
        Property("ends", Kind.TERMINATION, b.TRUE),
    )
    start = tuple(Variable(f"x{k}", RangeSort(0, top), (0,)) for k in range(number))
    return System("counters", start, actions, properties)


def _verdicts(result: object) -> dict[str, str]:
    return {f.property: f.verdict.value for f in result.findings}  # type: ignore[attr-defined]


CUT = {
    "low": "violated",
    "fine": "inconclusive",
    "below": "inconclusive",
    "half": "holds",
    "top": "inconclusive",
    "grows": "inconclusive",
    "free": "inconclusive",
    "ends": "inconclusive",
}
"""The verdicts of a search that saw some states; `fine` is true by the ranges alone, but that is no reason to say so."""


def test_a_limit_on_depth_leaves_the_rest_open() -> None:
    """Three levels are found, the last is not expanded; what was violated or reached by then is decided."""
    result = explore(counters(3, 3), SearchOptions(max_depth=3))
    assert result.counts == Counts(distinct=10, generated=13, depth=3, levels=(1, 3, 6))
    assert (result.complete, result.stopped) == (False, "max_depth")
    assert _verdicts(result) == CUT
    because = "stopped after 10 states in 3 levels: max_depth is 3; raise it or leave it out"
    assert result.finding("below").because == because


def test_a_limit_on_depth_beyond_the_last_level_cuts_nothing() -> None:
    """Ten levels are all there are."""
    result = explore(counters(3, 3), SearchOptions(max_depth=11))
    assert (result.complete, result.counts.depth, result.counts.distinct) == (True, 10, 64)


def test_a_limit_on_states_is_met_when_there_are_more() -> None:
    """A space of exactly the limit is complete; one state more is not."""
    assert explore(counters(3, 3), SearchOptions(max_states=64)).complete
    result = explore(counters(3, 3), SearchOptions(max_states=63))
    assert (result.complete, result.stopped) == (False, "max_states")
    assert result.counts.distinct == 64
    assert result.finding("ends").verdict is Verdict.INCONCLUSIVE
    assert result.finding("ends").because == (
        "stopped after 64 states in 10 levels: max_states is 63; raise it, "
        "choose smaller parameters, or try to prove it with the symbolic engine"
    )


def test_a_limit_on_states_holds_for_initial_states_too() -> None:
    """A hundred starts under a limit of ten."""
    system = System("wide", (Variable("x", RangeSort(0, 99), tuple(range(100))),), ())
    assert explore(system, SearchOptions(max_states=10)).stopped == "max_states"
    assert explore(system, SearchOptions(max_states=100)).complete


@pytest.mark.parametrize(
    ("tier", "listed"), [("python", None), ("auto", 1_000), pytest.param("auto", None, marks=pytest.mark.long)]
)
def test_a_limit_on_time(tier: str, listed: int | None) -> None:
    """A hundred million states take longer than a tenth of a second; the counts are those of what was seen.

    `listed`: number of states that are listed (None: all, a million by compiled code).
    """
    result = explore(counters(8, 9), SearchOptions(time_limit=0.1, tier=tier))
    assert (result.complete, result.stopped) == (False, "time_limit")
    assert 0 < result.counts.distinct < 100_000_000
    assert sum(result.counts.levels) == result.counts.distinct
    least = result.counts.distinct if listed is None else min(listed, result.counts.distinct)
    assert len(set(itertools.islice(result.states(), listed))) == least
    assert result.finding("ends").because.startswith("stopped after ")
    assert "time_limit is 0.1 s" in result.finding("ends").because


@pytest.mark.parametrize("limit", [{"max_states": 0}, {"max_depth": -1}, {"time_limit": 0.0}], ids=str)
def test_limits_must_be_positive(limit: dict[str, int]) -> None:
    """A limit that is not positive is refused by name."""
    (name,) = limit
    with pytest.raises(UsageError, match=f"{name} must be positive"):
        explore(counters(2, 2), SearchOptions(**limit))  # type: ignore[arg-type]


def test_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the process holds its share of the machine, the search ends with an answer instead of being killed."""
    monkeypatch.setattr("streamproof.explicit.level_search.resident_bytes", lambda: 2**50)
    result = explore(counters(3, 3))
    assert (result.complete, result.stopped) == (False, "memory")
    assert "memory limit of" in result.finding("ends").because


def test_memory_is_measured() -> None:
    """What the process holds lies between a megabyte and what the machine has."""
    machine = memory_of_machine()
    assert machine is not None
    assert 2**20 < resident_bytes() < machine
    assert resident_bytes() < peak_bytes() + 2**20  # the system counts both in pages, and not at the same moment
    assert peak_bytes() < machine


@pytest.fixture
def interrupt_soon() -> Iterator[None]:
    """Ctrl-C in a moment."""
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.cancel()


@pytest.mark.usefixtures("interrupt_soon")
def test_an_interrupt_gives_what_was_found_so_far() -> None:
    """Ctrl-C ends the search at a consistent point; violations found before are reported with their traces."""
    result = explore(counters(8, 9), SearchOptions(tier="python", **BOUNDS))
    assert (result.complete, result.stopped) == (False, "interrupted")
    assert _verdicts(result) == CUT
    assert result.counts.generated >= result.counts.distinct > 1
    assert sum(result.counts.levels) == result.counts.distinct
    few = min(1_000, result.counts.distinct)
    assert len(set(itertools.islice(result.states(), few))) == few
    assert result.finding("ends").because.startswith("interrupted after ")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_ends_the_compiled_search() -> None:
    """Ctrl-C during compiled loops ends them at a consistent point too, and what was found is reported with its traces."""
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        result = explore(counters(8, 9), SearchOptions(tier="compiled", **BOUNDS))
    finally:
        timer.cancel()
    assert (result.complete, result.stopped) == (False, "interrupted")
    assert _verdicts(result) == CUT
    assert result.counts.generated >= result.counts.distinct > 1
    assert sum(result.counts.levels) == result.counts.distinct
    # Listing all of some million states would take a minute: the first ones show that the log can be read.
    few = min(1_000, result.counts.distinct)
    assert len(set(itertools.islice(result.states(), few))) == few


def test_a_raised_interrupt_is_caught_in_the_middle_of_a_batch() -> None:
    """Where another handler raises instead, what a batch had begun to add is forgotten again."""

    def handler(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        result = explore(counters(8, 9), SearchOptions(tier="python", **BOUNDS))
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, usual)
    assert result.stopped == "interrupted"
    assert sum(result.counts.levels) == result.counts.distinct == len(list(result.states()))
    assert _verdicts(result) == CUT


@pytest.mark.parametrize("tier", ["python", "compiled"])
def test_progress_comes_about_once_a_second(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The callback hears of a search that takes longer, with counts that grow. A clock of the test: each look takes a fifth
    of a second."""
    looks = itertools.count()
    monkeypatch.setattr(level_search, "time", types.SimpleNamespace(monotonic=lambda: next(looks) / 5))
    received: list[Progress] = []
    options = SearchOptions(time_limit=6, properties=(), tier=tier)
    result = explore(counters(8, 9), options, on_progress=received.append)
    assert result.stopped == "time_limit"
    assert next(looks) > 30
    times = [0.0, *(p.elapsed for p in received)]
    assert all(1.0 <= later - before < 1.7 for before, later in itertools.pairwise(times)), times
    assert len(received) in (4, 5)
    assert all(p.distinct < q.distinct <= result.counts.distinct for p, q in itertools.pairwise(received))
    assert all(p.generated > p.distinct > p.queue > 0 for p in received)


def test_a_callback_may_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress callback that raises KeyboardInterrupt ends the search as Ctrl-C does."""
    looks = itertools.count()
    monkeypatch.setattr(level_search, "time", types.SimpleNamespace(monotonic=lambda: next(looks) / 5))

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    assert explore(counters(8, 9), SearchOptions(max_states=MANY), on_progress=stop).stopped == "interrupted"


@pytest.mark.parametrize(("tier", "finished"), [("auto", "compiled"), ("python", "python"), ("compiled", "compiled")])
def test_the_tier_that_finishes(tier: str, finished: str) -> None:
    """A large search is finished by the tier that was chosen, by default by compiled code."""
    result = explore(counters(3, 9), SearchOptions(tier=tier, tuning=Tuning(small_states=50)))
    assert (result.tier, result.counts.distinct) == (finished, 1000)


@pytest.mark.parametrize(("end", "stopped"), [(OutOfTime("late"), "time_limit"), (KeyboardInterrupt(), "interrupted")])
@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_code_that_does_not_get_ready(
    tier: str, end: BaseException, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that ends while code is compiled keeps what generated Python found before, and decides no more."""

    def never(task: object) -> None:
        raise end

    monkeypatch.setattr(exploration, "_compile", never)
    result = explore(counters(3, 9), SearchOptions(tier=tier, tuning=Tuning(small_states=50), **BOUNDS))
    assert (result.complete, result.stopped) == (False, stopped)
    found = _verdicts(result)
    assert {name for name, verdict in found.items() if verdict != "inconclusive"} == (
        {"low", "half"} if tier == "auto" else set()
    )


def test_the_budget_says_what_is_spent() -> None:
    """Interrupts come before time, time before memory."""
    budget = Budget(SearchOptions(time_limit=0.01, memory=1))
    time.sleep(0.02)
    assert budget.spent() is Stop.TIME
    budget.interrupt()
    assert budget.spent() is Stop.INTERRUPTED
    assert Budget(SearchOptions(memory=1)).spent() is Stop.MEMORY
    assert Budget().spent() is None
