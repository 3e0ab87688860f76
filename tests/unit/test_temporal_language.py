"""Temporal properties as authors write them: what they are lowered to, and what becomes of their traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamproof import (
    ANY,
    STRONG,
    WEAK,
    Array,
    Enum,
    Model,
    Option,
    Queue,
    Range,
    State,
    Symmetric,
    action,
    always,
    choose,
    eventually,
    leads_to,
    require,
    temporal,
    until,
)
from streamproof.base.options import SearchOptions
from streamproof.exchange.drawings.dot import trace_dot
from streamproof.exchange.itf.reading import read_itf
from streamproof.exchange.itf.writing import to_itf, write_itf
from streamproof.explicit.exploration import explore
from streamproof.explicit.liveness.fair_cycles import Temporal
from streamproof.system import Kind, ModelError, System, UsageError, Verdict
from streamproof.system.formula import Always, AndF, Atom, Eventually, Formula, LeadsTo, NotF, OrF, Until, written
from streamproof.system.verdict import Trace
from streamproof.traces.render import render_text
from streamproof.traces.replay import ReplayError, verify


class Lock(Model):
    """Processes that share a lock."""

    n: int = 2

    def state(self) -> State:
        """The variables."""
        return State(
            at=Array(range(self.n), Enum("idle", "waits", "inside")),
            holder=Option(Range(0, self.n - 1)),
            line=Queue(Range(0, self.n - 1), capacity=2),
        )

    @action(p="n")
    def ask(self, s: Any, p: int) -> None:
        """A process wants the lock."""
        require(s.at[p] == "idle")
        s.at[p] = "waits"

    @action(p="n", fairness=STRONG)
    def enter(self, s: Any, p: int) -> None:
        """It gets it."""
        require(s.at[p] == "waits" and s.holder is None)
        s.at[p] = "inside"
        s.holder = p

    @action(p="n", fairness=WEAK)
    def leave(self, s: Any, p: int) -> None:
        """It gives it back."""
        require(s.at[p] == "inside")
        s.at[p] = "idle"
        s.holder = None

    def waits(self, s: Any, p: int) -> Any:
        """Whether a process asks for the lock."""
        return s.at[p] == "waits"

    @temporal
    def nobody_starves(self, s: Any) -> Any:
        """Who waits gets in."""
        return all(leads_to(self.waits(s, p), s.at[p] == "inside") for p in range(self.n))

    @temporal
    def first_comes_in(self, s: Any) -> Any:
        """Not promised: nobody has to ask."""
        return eventually(s.at[0] == "inside")

    @temporal
    def nested(self, s: Any) -> Any:
        """Who asks again and again gets in again and again, and waits until then."""
        asks = always(eventually(self.waits(s, 0)))
        return not asks or (always(eventually(s.at[0] == "inside")) and self.steady(s))

    def steady(self, s: Any) -> Any:
        """A part of a formula."""
        return always(s.at[0] != "waits" or until(s.at[0] == "waits", s.at[0] == "inside"))

    @temporal
    def one_of_them(self, s: Any) -> Any:
        """True at the start, where the lock is free."""
        parts = [eventually(s.at[p] == "waits") for p in range(self.n)]
        return any(parts) or s.holder is None

    @temporal
    def checked(self, s: Any) -> Any:
        """The holder is one of them, for ever."""
        return s.holder is None or always(s.holder is None or s.holder < self.n)


def formula(name: str) -> Formula:
    """The formula of one of the properties."""
    prop = Lock.system().property(name)
    assert prop.kind is Kind.TEMPORAL
    assert prop.formula is not None
    return prop.formula


def test_quantified() -> None:
    """``all`` over a range is a conjunction; helper methods are read as if they stood there."""
    found = formula("nobody_starves")
    assert isinstance(found, AndF)
    assert [type(part) for part in found.args] == [LeadsTo, LeadsTo]
    assert written(found.args[0]) == "leads_to(self.waits(s, p), s.at[p] == 'inside')"
    assert found.args[0] != found.args[1]
    assert Lock.system().property("nobody_starves").doc == "Who waits gets in."


def test_nested() -> None:
    """Formulas can be named, returned by methods, and joined with not, or, and."""
    match formula("nested"):
        case OrF((NotF(Always(Eventually(Atom()))), AndF((Always(Eventually()), Always(OrF((Atom(), Until()))))))):
            pass
        case other:
            pytest.fail(written(other))


def test_mixed_with_conditions() -> None:
    """A condition on states outside every operator is one on the first state."""
    match formula("one_of_them"):
        case OrF((Atom(text="s.holder is None"), OrF((Eventually(), Eventually())))):
            pass
        case other:
            pytest.fail(written(other))


def test_checks_do_not_lean_on_another_state() -> None:
    """Inside an operator nothing is known of the state outside it: the check of the value stands by itself."""
    assert Lock.system().property("checked").checks == ()

    class Careless(Lock):
        @temporal
        def checked(self, s: Any) -> Any:
            """The holder is one of them, for ever."""
            return s.holder is None or always(s.holder < self.n)

    finding = explore(Careless.system(), SearchOptions(properties=["checked"])).finding("checked")
    assert finding.verdict is Verdict.ERROR
    assert "None" in finding.because


def test_verdicts() -> None:
    """What the lock guarantees and what it does not."""
    result = explore(Lock.system())
    assert {f.property: f.verdict.value for f in result.findings} == {
        "nobody_starves": "holds",
        "first_comes_in": "violated",
        "nested": "holds",
        "one_of_them": "holds",
        "checked": "holds",
        "deadlock": "holds",
    }


def test_operators_do_nothing_natively() -> None:
    """Called as ordinary functions, the operators say where they belong."""
    calls: list[Callable[[], Any]] = [
        lambda: always(True),
        lambda: eventually(True),
        lambda: leads_to(True, True),
        lambda: until(True, True),
    ]
    for call in calls:
        with pytest.raises(ModelError, match=r"speaks of a whole behaviour, not of one state"):
            call()


# --- traces


class Weakly(Lock):
    """The same with weak fairness: a process may be passed over again and again."""

    @action(p="n", fairness=WEAK)
    def enter(self, s: Any, p: int) -> None:
        """It gets it."""
        require(s.at[p] == "waits" and s.holder is None)
        s.at[p] = "inside"
        s.holder = p

    @action(p="n", fairness=WEAK)
    def ask(self, s: Any, p: int) -> None:
        """A process wants the lock."""
        require(s.at[p] == "idle")
        s.at[p] = "waits"


def lasso(system: System, name: str) -> Trace:
    """The trace of a violated property."""
    trace = explore(system).finding(name).trace
    assert trace is not None
    return trace


def test_starvation_is_shown_with_its_fairness() -> None:
    """The text of a lasso has its loop and, for each fair instance, why it has no claim."""
    system = Weakly.system()
    trace = lasso(system, "nobody_starves")
    verify(system, "nobody_starves", trace)
    text = render_text(system, system.property("nobody_starves"), trace)
    assert text.startswith("Counterexample: nobody_starves is violated by a fair behaviour\n")
    assert "the loop starts here" in text
    assert "Why the formula is false:\n  true in state" in text
    assert "\n  false in every state from state" in text
    assert "Why this behaviour is fair:" in text
    assert "not enabled in state" in text


def test_a_behaviour_that_stays() -> None:
    """A lasso that stutters is reported as such, in text, DOT and ITF, and read back the same."""
    system = Lock.system()
    prop, trace = system.property("first_comes_in"), lasso(system, "first_comes_in")
    assert trace.stutters
    text = render_text(system, prop, trace)
    assert "0 steps, then stuttering forever" in text
    assert "stuttering: the behaviour stays in this state forever" in text
    assert "enter(p=0), enter(p=1): never enabled on the cycle (strong)" in text
    assert "ask(p=0), ask(p=1): enabled, but no fairness constraint requires the step" in text
    assert "the loop starts here" not in text
    document = to_itf(system, trace, prop)
    assert document["loop"] == 0
    assert document["#meta"]["stutters"] is True
    assert "loopStep" not in document["#meta"]
    assert trace_dot(system, trace, prop).count("->") == 0


@pytest.mark.parametrize(("model", "name"), [(Lock, "first_comes_in"), (Weakly, "nobody_starves")])
def test_itf_keeps_the_lasso(model: type[Model], name: str, tmp_path: Path) -> None:
    """What is written is read back, and verified again."""
    system = model.system()
    trace = lasso(system, name)
    write_itf(tmp_path / "t.itf.json", system, trace, system.property(name))
    again = read_itf(tmp_path / "t.itf.json", system)
    assert again == trace
    verify(system, name, again)


def test_verify_refuses() -> None:
    """A lasso that is not fair, on which the formula is true, or that is no lasso, is no counterexample."""
    system = Lock.system()
    trace = lasso(system, "first_comes_in")
    with pytest.raises(ReplayError, match="first_comes_in speaks of endless behaviours, and the trace has no loop"):
        verify(system, "first_comes_in", replace(trace, loop=None))
    with pytest.raises(ReplayError, match="nobody_starves is true of the behaviour"):
        verify(system, "nobody_starves", trace)
    starved = lasso(Weakly.system(), "nobody_starves")
    with pytest.raises(ReplayError, match=r"the behaviour is not strongly fair to enter\(p=\d\): enabled in state \d+"):
        verify(system, "nobody_starves", starved)


def test_a_loop_that_stays_is_no_endless_behaviour_of_steps() -> None:
    """Termination is about steps: a trace that stutters does not violate it."""
    system = replace(Lock.system(), properties=(replace(Lock.system().property("deadlock"), kind=Kind.TERMINATION),))
    with pytest.raises(ReplayError, match="violated by an endless behaviour only"):
        verify(system, "deadlock", lasso(Lock.system(), "first_comes_in"))


# --- the fourth trap


class Relay(Model):
    """A token goes round among names that can be exchanged."""

    def state(self) -> State:
        """The variables."""
        return State(at=Symmetric("a", "b", "c", init=ANY))

    @action(fairness=STRONG)
    def run(self, s: Any) -> None:
        """Anyone but the one who has it may get it next."""
        to = choose(["a", "b", "c"])
        require(s.at != to)
        s.at = to

    @temporal
    def comes_back(self, s: Any) -> Any:
        """Everyone has it again and again, which nobody owes: up to symmetry there is one state, in which one has it."""
        return all(always(eventually(s.at == r)) for r in ("a", "b", "c"))


def test_symmetry_is_left_out_for_temporal_properties() -> None:
    """Fourth trap: a quotient by symmetry forgets who is who on a cycle, so it is not made, and says so."""
    system = Relay.system()
    full, reduced = explore(system), explore(system, SearchOptions(symmetry=True, por=True))
    assert [r.applied for r in reduced.reductions] == [False, False]
    assert reduced.counts == full.counts
    assert reduced.finding("comes_back").verdict is full.finding("comes_back").verdict is Verdict.VIOLATED


def test_a_reduced_graph_is_refused() -> None:
    """Should a search have been reduced nevertheless, a temporal property is not decided on it."""
    system = Relay.system()
    search = explore(system, SearchOptions(properties=["deadlock"], symmetry=True))
    assert [r.applied for r in search.reductions] == [True]

    class Reduced:
        reduces = True
        view = None

    decided = Temporal(search._search, Reduced(), None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="comes_back is a temporal property, and the search was reduced"):
        decided.finding(system.property("comes_back"), system.property("comes_back"))
