"""Derived values: shown in every form of a trace, and without effect on counts and verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamproof import (
    Enum,
    Model,
    ModelError,
    Native,
    Parts,
    Queue,
    Range,
    State,
    action,
    choose,
    derived,
    explore,
    invariant,
    refines,
    require,
)
from streamproof.exchange.drawings.dot import trace_dot
from streamproof.exchange.itf import reading as itf_reading
from streamproof.exchange.itf import writing as itf
from streamproof.exchange.tla.module import export
from streamproof.system.interpreter import with_derived
from streamproof.traces.render import render_text


class Counter(Model):
    """The abstract model."""

    def state(self):
        """A number."""
        return State(n=Range(0, 2))

    @action
    def up(self, s):
        """One more."""
        require(s.n < 2)
        s.n += 1


class Plain(Model):
    """A queue that is filled."""

    most: int = 2

    def state(self):
        """The queue."""
        return State(q=Queue(Enum("A", "B"), capacity=3))

    @action
    def arrive(self, s):
        """One more."""
        s.q.push(choose(["A", "B"]))

    @invariant
    def short(self, s):
        """Not full."""
        return len(s.q) < self.most

    @refines(Counter)
    def counts(self, s):
        """How many."""
        return {"n": len(s.q)}


class Shop(Plain):
    """With derived values of several kinds."""

    @derived
    def waiting(self, s):
        """A number."""
        return len(s.q)

    @derived
    def mood(self, s):
        """A name."""
        return "calm" if len(s.q) == 0 else "busy" if len(s.q) < self.most else "full"

    @derived
    def head(self, s):
        """Absent for an empty queue."""
        return s.q.head

    @derived
    def copy(self, s):
        """A container."""
        return s.q

    @derived
    def fine(self, s):
        """A truth value."""
        return True


class Street(Model):
    """A composition shows its own derived values."""

    def parts(self):
        """Two shops."""
        return Parts(left=Shop(), right=Shop())

    @derived
    def total(self, s):
        """All of them."""
        return len(s.left.q) + len(s.right.q)


def test_values_are_those_of_python() -> None:
    """In each state, natively and in the trace; None where there is none. Nothing else differs."""
    system, model = Shop.system(), Shop()
    found, plain = explore(system), explore(Plain.system())
    assert [(f.property, f.verdict) for f in found.findings] == [(f.property, f.verdict) for f in plain.findings]
    assert found.counts == plain.counts
    trace = found.finding("short").trace
    shown, with_values = with_derived(system, trace)
    assert [v.name for v in shown.variables] == ["q", "waiting", "mood", "head", "copy", "fine"]
    assert with_values.states[0] == ((), 0, "calm", None, (), True)
    native = Native(model)
    for before, after in zip(trace.states, with_values.states, strict=True):
        view = native.view(native.whole, before)
        head = model.head(view) if before[0] else None
        assert after == (*before, model.waiting(view), model.mood(view), head, tuple(model.copy(view)), True)
    assert list(native.initial()) == [((),)]


def test_every_form_of_a_trace_has_them(tmp_path: Path) -> None:
    """Text, ITF, which is read again without them, and Graphviz; beside the view of a refinement, too."""
    system = Shop.system()
    found = explore(system)
    prop, trace = system.property("short"), found.finding("short").trace
    text = render_text(system, prop, trace)
    assert "waiting = 0\n" in text
    assert "mood: busy -> full\n" in text
    assert "head: None -> A\n" in text
    assert "waiting: 1 -> 2" in trace_dot(system, trace)
    itf.write_itf(tmp_path / "t.itf.json", system, trace, prop)
    written = json.loads((tmp_path / "t.itf.json").read_text())
    assert written["vars"][2:] == ["q", "waiting", "mood", "head", "copy", "fine"]
    assert written["states"][2]["mood"] == "full"
    assert itf_reading.read_itf(tmp_path / "t.itf.json", system).states == trace.states
    refined = system.property("counts")
    shown = render_text(system, refined, found.finding("counts").trace)
    assert "seen as n" in shown
    assert "waiting: 2 -> 3" in shown
    street = Street.system()
    assert [one.name for one in street.derived] == ["total"]
    assert "total: 1 -> 2" in render_text(street, None, explore(street).finding("deadlock").trace)


def test_the_tla_export_has_an_alias() -> None:
    """With the variables, and the derived values that exist in every state."""
    exported = export(Shop.system())
    assert "ALIAS Shown\n" in exported.runs[0].configuration()
    assert "ALIAS" not in exported.runs[0].configuration(deadlock=False)
    module = exported.modules[exported.module]
    assert "Shown ==\n    [q |-> q, waiting |-> Len(q)," in module
    assert "head" not in module.split("Shown ==")[1]
    assert "ALIAS" not in export(Plain.system()).runs[0].configuration()


class TwoStates(Plain):
    """Of a step."""

    @derived
    def grown(self, s, t):
        """Not of a state."""
        return len(t.q) - len(s.q)


class Shapeless(Plain):
    """No value of a sort."""

    @derived
    def pair(self, s):
        """Two."""
        return (len(s.q), len(s.q))


class Again(Plain):
    """A name that a variable has."""

    @derived
    def q(self, s):
        """Not the variable."""
        return 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TwoStates, "grown\\(self, s, t\\) is a value of every state\n  write def grown\\(self, s\\)"),
        (Shapeless, "pair\\(\\) returns .*\n  return a number, a truth value, a name, or a part of the state"),
        (Again, "'q' names a state variable and a predicate\n  rename one of them"),
    ],
)
def test_refused(model: type[Model], message: str) -> None:
    """One message each, with its remedy."""
    with pytest.raises(ModelError, match=message):
        model.system()
