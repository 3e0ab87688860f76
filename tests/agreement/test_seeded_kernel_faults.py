"""A fault in the fixed loops of the compiled tier is noticed, though no model's own code is wrong.

The loops are the same for every model: table of known states, levels, predecessors, the workers' boxes, stored steps. They
are translated from their text; a fault replaces one line of it, as a slip would. The machines have some ten thousand states
and a small first table, so that it grows and lines of it fill. What counts as caught is a difference to the sound
Python tier in the comparison that `check --agree` makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace

import pytest

from nonempty import nonempty
from shares import share
from streamproof.agree import panel_engines
from streamproof.agree.comparing import differences
from streamproof.agree.result import EngineResult
from streamproof.base.options import Tuning
from streamproof.explicit import kernel_compiler
from streamproof.explicit.compiled import memory
from streamproof.explicit.level_search import Budget
from streamproof.system import Action, Conjunct, Expr, Fairness, Instance, Kind, Property, RangeSort, System, Variable
from streamproof.system import build as b

Sound = dict[tuple[bool, bool], tuple[System, EngineResult]]
"""Systems, by what they are like, with what the Python tier says."""

MOST = 12
WIDE = RangeSort(0, (1 << 60) - 1)


def _machine(*, wide: bool, endless: bool) -> System:
    """Four counters and a way back to the beginning; `wide`: a state takes two words, the first of which takes few values.

    One that is not `endless` may step back, so that states are met again; the other may do so at the very end only.
    """
    sort = RangeSort(0, MOST)
    counters = {name: b.var(name, sort) for name in "pqrs"}
    stamp = b.var("stamp", WIDE)
    start = {name: b.num(0) for name in counters} | ({"stamp": b.num(1)} if wide else {})

    def rule(name: str, guard: Expr, updates: dict[str, Expr]) -> Action:
        conjunct = Conjunct(guard, repr(guard), None)
        return Action(name, (), Fairness.NONE, (Instance(name, (), (), (conjunct,), tuple(updates.items())),))

    def up(name: str) -> Action:
        updates = {name: b.add(counters[name], b.num(1))}
        if wide and name == "p":
            updates["stamp"] = b.mod(b.add(stamp, b.num((1 << 33) + 5)), b.num(1 << 40))
        return rule(f"up_{name}", b.less(counters[name], b.num(MOST)), updates)

    p, q, r, s = counters.values()
    properties = [
        Property("apart", Kind.INVARIANT, b.not_(b.and_((b.eq(p, b.num(9)), b.eq(q, b.num(8)), b.eq(s, b.num(3)))))),
        Property("met", Kind.REACHABLE, b.and_((b.eq(p, b.num(5)), b.eq(r, b.num(MOST))))),
        Property("deadlock", Kind.DEADLOCK, b.TRUE),
    ]
    ways = [*map(up, counters), rule("back", b.and_(b.eq(c, b.num(MOST)) for c in counters.values()), start)]
    if not endless:
        ways.append(rule("down", b.less(b.num(0), s), {"s": b.sub(s, b.num(1))}))
    else:
        properties.append(Property("ends", Kind.TERMINATION, b.TRUE))
    return System(
        "counters",
        (*([Variable("stamp", WIDE, (1,))] if wide else []), *(Variable(name, sort, (0,)) for name in counters)),
        tuple(ways),
        tuple(properties),
    )


FAULTS: dict[str, tuple[str, str, str, int]] = {
    # name: the kernel, what is written there, what is written instead, workers
    "an entry is lost when the table grows": ("grow", "scratch[i] != 0", "scratch[i] != 0 and i % 64 != 0", 1),
    "entries stay at home when the table grows": (
        "grow",
        "_home(scratch[i], capacity)",
        "_home(scratch[i], before)",
        1,
    ),
    "a full line hides what is behind it": ("_new", "line += 8", "return NONE", 1),
    "recent states are told by their first word": (
        "_unseen",
        "_same(recent, place, state, at) == 0",
        "recent[place] != state[at]",
        1,
    ),
    "a successor is taken for its neighbour's": ("_hash_unseen", "i < end", "i + 1 < end", 1),
    "predecessors are off by one": (
        "search",
        "first + (kept[k] >> 32)",
        "first + (kept[k] >> 32) - ((kept[k] >> 32) > 0)",
        1,
    ),
    "the predecessor is the first of the batch": ("search", "first + (kept[k] >> 32)", "first", 1),
    "a level does not end": ("search", "c[NEXT] < c[LAST]", "c[NEXT] < c[COUNT]", 1),
    "a state between batches is passed over": ("search", "first + done", "first + done + 1", 1),
    "the last successor of a batch is lost": ("search", "in range(total)", "in range(total - 1)", 1),
    "an initial state is counted twice": (
        "add",
        "fresh = count - c[COUNT]",
        "count += 1\n    fresh = count - c[COUNT]",
        1,
    ),
    "a step into the first state is not stored": ("edges", "found != NONE", "found != NONE and found != 0", 1),
    "stored steps belong to the state before": ("edges", "offsets[first + s + 1]", "offsets[first + s]", 1),
    "numbers of states are off by one": ("number", "ids[place] = i", "ids[place] = i - (i > 0)", 1),
    "a worker loses a successor": (
        "scatter",
        "in range(_hash_unseen(c, done))",
        "in range(1, _hash_unseen(c, done))",
        2,
    ),
    "a worker's predecessors stay where they were": (
        "gather",
        "parents[fresh] = parents[i]",
        "parents[fresh] = parents[0]",
        2,
    ),
    "a worker takes what is known for new": ("gather", "if place != NONE", "if place != NONE or i == 1", 2),
    "a worker's last state is not written": ("append", "while number < last", "while number + 1 < last", 2),
}
"""Single faults; where a kernel has the text twice, both are replaced."""


def _asked_for(kernel_name: str) -> tuple[tuple[bool, bool], ...]:
    """The machines that a fault in this kernel is looked for on: only where steps are stored one that may go on for ever."""
    endless = kernel_name in ("edges", "number")
    return (False, endless), (True, endless)


@pytest.fixture(scope="module")
def sound() -> Sound:
    """The machines, with what the Python tier says of them."""
    found = {}
    for wide, endless in product((False, True), repeat=2):
        system = _machine(wide=wide, endless=endless)
        found[wide, endless] = system, panel_engines.explored(system, "python")
    return found


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables begin small; code made meanwhile is forgotten afterwards."""
    monkeypatch.setattr(Budget, "tuning", Tuning(first_capacity=1 << 12))
    memory.fixed_code.cache_clear()
    yield
    memory.fixed_code.cache_clear()


def _seed(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """From now on the kernel is read with the fault in it."""

    def getsource(function: Callable[..., object]) -> str:
        text = inspect.getsource(function)
        if function.__name__ != name:
            return text
        assert old in text
        return text.replace(old, new)

    patch.setattr(kernel_compiler, "inspect", SimpleNamespace(getsource=getsource))
    patch.setattr(memory, "_written", lambda: f"{name}: {new} for {old}")


def _compiled(system: System, workers: int) -> EngineResult:
    return panel_engines.explored(system, "compiled", workers, seconds=10)


def _noticed(of: tuple[System, EngineResult], workers: int) -> list[str]:
    system, said = of
    return [str(d) for d in differences(system, (said, _compiled(system, workers)))]


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("workers", share([2, 1], 2))
def test_without_a_fault_nothing_differs(sound: Sound, workers: int) -> None:
    """The tiers agree on all machines, which are too large for the first table: what is caught below is the fault."""
    for system, said in nonempty(sound.values()):
        found = _compiled(system, workers)
        assert found.distinct is not None
        assert found.distinct > 1 << 12
        assert list(differences(system, (said, found))) == []


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("fault", share(FAULTS, 5))
def test_faults_of_the_fixed_loops_are_caught(sound: Sound, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """One line of a kernel is wrong, and the comparison shows it on one of the machines."""
    name, old, new, workers = FAULTS[fault]
    _seed(monkeypatch, name, old, new)
    assert any(_noticed(sound[which], workers) for which in _asked_for(name))
