"""Replay: what it accepts, what it refuses and with which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamproof.system import (
    Action,
    Check,
    Conjunct,
    EvaluationError,
    Exit,
    Expr,
    Fairness,
    Instance,
    Kind,
    Property,
    RangeSort,
    System,
    Trace,
    UsageError,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.interpreter import Interpreter
from streamproof.traces.explain import blocked, explain
from streamproof.traces.labels import Label
from streamproof.traces.places import Place, changes
from streamproof.traces.replay import ReplayError, replay, replay_labels, verify

STUCK = ("send(0)", "receive[lost=True]")
LOST = ("send(c=1)", "receive()[lost=False]", "send(c=0)", "receive()[lost=True]")


def _one_start(system: System) -> System:
    """The same with a single initial state, backlog (1, 1)."""
    first, second, third = system.variables
    return replace(system, variables=(first, replace(second, initial=((1, 1),)), third))


def test_labels_give_the_states_in_between(relay: System) -> None:
    """A list of labels is run from the initial state that allows it."""
    trace = replay_labels(relay, LOST)
    assert trace.states == (
        (1, (1, 1), ()),
        (0, (1, 0), ("DATA",)),
        (1, (1, 0), ()),
        (0, (0, 0), ("DATA",)),
        (0, (0, 0), ()),
    )
    assert [i.label for i in trace.steps] == [
        "send(c=1)",
        "receive()[lost=False]",
        "send(c=0)",
        "receive()[lost=True]",
    ]
    replay(relay, trace)


def test_open_choices_are_settled_by_what_follows(relay: System) -> None:
    """A pick that is left open is the one that makes the next step possible."""
    trace = replay_labels(relay, ["send(1)", "receive", "send"])
    assert [i.label for i in trace.steps] == ["send(c=1)", "receive()[lost=False]", "send(c=0)"]


def test_steps_as_tuples_and_instances(relay: System) -> None:
    """Steps are also given as action with parameters and picks, or as instances."""
    by_label = replay_labels(relay, LOST)
    by_parts = replay_labels(
        relay,
        [("send", {"c": 1}), ("receive", {}, {"lost": False}), relay.instances[0], ("receive", {}, {"lost": True})],
    )
    assert by_parts == by_label


def test_what_stays_open_is_an_error_with_the_candidates(relay: System) -> None:
    """Two behaviours that end in different states are not chosen between."""
    with pytest.raises(UsageError) as caught:
        replay_labels(_one_start(relay), ["send(0)", "receive"])
    assert str(caught.value) == (
        "step 2 can be taken in 2 ways: receive()[lost=False], receive()[lost=True]\n"
        "  give its parameters and picks: name(parameter=value)[pick=value]"
    )


def test_open_initial_state_is_an_error(relay: System) -> None:
    """The steps alone do not say which of two initial states is meant."""
    with pytest.raises(UsageError, match="the same steps are possible from 2 initial states"):
        replay_labels(relay, ["send(0)", "receive[lost=True]"])


def test_step_that_is_not_enabled_names_the_conjunct(relay: System) -> None:
    """The message has the step, the false conjunct as written, its line and the values it read."""
    with pytest.raises(ReplayError) as caught:
        replay_labels(relay, ["send(0)", "send(1)"])
    assert caught.value.step == 2
    assert caught.value.exit_code is Exit.REJECTED
    assert str(caught.value) == (
        "relay.py:12: step 2: send(c=1) is not enabled\n  s.backlog[c] > 0   because  s.backlog[1] = 0"
    )


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("sendd(0)", "relay has no action 'sendd'\n  did you mean 'send'? It has: send, receive"),
        ("send(d=0)", "send has no parameter 'd'\n  its parameters: c"),
        ("send(7)", "send has no instance that fits\n  its instances: send(c=0), send(c=1)"),
        (
            "send(0",
            "'send(0' is not a step\n  write name, name(parameter=value, ...) or name(...)[pick=value, ...]",
        ),
    ],
)
def test_wrong_labels_say_what_there_is(relay: System, step: str, message: str) -> None:
    """A step that cannot be meant is a usage error that lists what can."""
    with pytest.raises(UsageError) as caught:
        replay_labels(relay, [step])
    assert str(caught.value) == message


def test_labels_are_read_with_nested_brackets_and_quotes() -> None:
    """Commas inside brackets do not separate, quotes around a value are not part of it."""
    assert Label.parse("move(p=(1, 2), to='A')[lost=True]") == Label(
        "move", (), (("p", "(1, 2)"), ("to", "A")), (("lost", "True"),)
    )


def test_a_label_as_printed_means_its_instance() -> None:
    """Labels are accepted as they are printed, also with brackets, commas and quotes inside the values."""
    instances = tuple(Instance("miss", (("p", p),), (), (), ()) for p in (("C", "B>C"), "a, (b", "D<B>D"))
    system = System("m", (Variable("x", RangeSort(0, 0), (0,)),), (Action("miss", ("p",), Fairness.NONE, instances),))
    trace = replay_labels(system, ["miss(p=('C', 'B>C'))", "miss(p=a, (b)", "miss(D<B>D)"])
    assert trace.steps == instances


def test_repeated_picks_are_distinguished_by_their_order() -> None:
    """A choice in a loop gives two picks of one name; a label names them in order."""
    there = Instance("a", (), (("x", 1), ("x", 2)), (), ())
    back = Instance("a", (), (("x", 2), ("x", 1)), (), ())
    label = Label("a", (), (), (("x", 1), ("x", 2)))
    assert label.fits(there)
    assert not label.fits(back)


def test_true_is_not_one() -> None:
    """A parameter that is given as True does not select the instance of 1."""
    assert not Label("a", (), (("x", True),)).fits(Instance("a", (("x", 1),), (), (), ()))


def test_first_state_must_be_initial(relay: System) -> None:
    """The variable that starts differently is named with the values it may have."""
    with pytest.raises(ReplayError) as caught:
        replay(relay, Trace(((1, (0, 0), ()),), ()))
    assert str(caught.value) == (
        "relay.py:5: initial state: backlog = [0: 0, 1: 0] is not how backlog starts\n"
        "  it starts as [0: 1, 1: 0], [0: 1, 1: 1]"
    )


def test_initial_condition_must_hold(relay: System) -> None:
    """Values that are allowed one by one are refused when the initial condition excludes their combination."""
    backlog = b.var("backlog", relay.variables[1].sort)
    strict = replace(relay, initially=b.eq(b.select(backlog, b.num(1)), b.num(0)))
    replay(strict, Trace(((1, (1, 0), ()),), ()))
    with pytest.raises(ReplayError, match="initial state: the initial condition is false here") as caught:
        replay(strict, Trace(((1, (1, 1), ()),), ()))
    assert "because  backlog[1] = 1" in str(caught.value)


def test_values_must_belong_to_their_sorts(relay: System) -> None:
    """True is equal to 1 in Python and is still no value of a range."""
    with pytest.raises(ReplayError, match=r"initial state: pool = True is not a value of Range\(0, 1\)"):
        replay(relay, Trace(((True, (1, 1), ()),), ()))


def test_step_must_lead_to_the_next_state(relay: System) -> None:
    """The message about a wrong successor names the places that differ."""
    trace = replay_labels(relay, LOST[:1])
    wrong = Trace((trace.states[0], (0, (1, 0), ())), trace.steps)
    with pytest.raises(ReplayError) as caught:
        replay(relay, wrong)
    assert str(caught.value) == (
        "step 1: send(c=1) does not lead to the next state of the trace\n  wire is <> there, <DATA> here"
    )


def test_unknown_instance_is_refused(relay: System) -> None:
    """An instance that the system does not have cannot be replayed, whatever it would do."""
    trace = replay_labels(relay, LOST[:1])
    foreign = replace(trace.steps[0], args=(("c", 5),))
    with pytest.raises(ReplayError, match=r"step 1: the system has no action send\(c=5\)"):
        replay(relay, Trace(trace.states, (foreign,)))


def test_meaning_comes_from_the_system_not_from_the_trace(relay: System) -> None:
    """An instance with a forged guard and effect is replayed as the system's own instance of that name."""
    trace = replay_labels(relay, LOST[:1])
    forged = replace(trace.steps[0], guard=(), updates=())
    with pytest.raises(ReplayError, match="does not lead to the next state"):
        replay(relay, Trace((trace.states[0], trace.states[0]), (forged,)))
    replay(relay, Trace(trace.states, (forged,)))


@pytest.mark.parametrize(
    ("states", "steps", "loop", "message"),
    [
        (0, 0, None, "the trace has no state"),
        (2, 0, None, "2 states need 1 steps, the trace has 0"),
        (2, 1, 0, "2 states need 2 steps, the trace has 1"),
        (1, 1, 3, "the loop goes back to state 3, the trace has 0 to 0"),
    ],
)
def test_malformed_traces(toggle: System, states: int, steps: int, loop: int | None, message: str) -> None:
    """States, steps and loop must fit together."""
    with pytest.raises(ReplayError) as caught:
        replay(toggle, Trace(((False,),) * states, (toggle.instances[2],) * steps, loop))
    assert str(caught.value) == message


def test_mistake_of_the_model_keeps_its_exit_code() -> None:
    """A domain error on the way is reported as such, with the step."""
    n = b.var("n", RangeSort(0, 1))
    check = Check(b.eq(n, b.num(1)), "n leaves Range(0, 1)", None, (("s.n", n),))
    up = Instance("up", (), (), (), (("n", b.num(1)),), (), (check,))
    system = System("m", (Variable("n", n.sort, (0,)),), (Action("up", (), Fairness.NONE, (up,)),))
    with pytest.raises(EvaluationError) as caught:
        replay(system, Trace(((0,), (1,), (1,)), (up, up)))
    assert caught.value.exit_code is Exit.EVALUATION
    assert str(caught.value).splitlines()[0] == "step 2: n leaves Range(0, 1) in up() (s.n = 1)"


def test_loop_must_close(toggle: System) -> None:
    """The last step of a lasso leads from the last state to the state where the loop begins."""
    lasso = replay_labels(toggle, ["flip", "flip"], loop=0)
    assert lasso == Trace(((False,), (True,)), (toggle.instances[0], toggle.instances[1]), 0)
    replay(toggle, lasso)
    with pytest.raises(ReplayError, match=r"step 2: .* does not lead to the state where the loop begins"):
        replay(toggle, replace(lasso, loop=1))
    with pytest.raises(ReplayError, match="step 1: the last step does not lead back to the state after step 0"):
        replay_labels(toggle, ["flip"], loop=0)


def test_verify_accepts_what_shows_the_property(relay: System, toggle: System) -> None:
    """Each kind of property has a trace that shows it."""
    start = _one_start(relay)
    verify(start, "one_buffer", replay_labels(start, ("send(0)", "receive[lost=True]")))
    verify(start, "pool_grows", replay_labels(start, ("send(0)",)))
    verify(start, "first_sent", replay_labels(start, ("send(0)",)))
    verify(start, "deadlock_free", replay_labels(start, ("send(1)", "receive[lost=True]")))
    verify(toggle, "ends", replay_labels(toggle, ["stay"], loop=0))


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("one_buffer", ("send(0)",), "one_buffer is true in the last state, so the trace does not violate it"),
        ("pool_grows", (), "pool_grows speaks of steps, and the trace has none"),
        (
            "pool_grows",
            ("send(0)", "receive[lost=False]"),
            "pool_grows is true of the last step, so the trace does not violate it",
        ),
        ("deadlock_free", ("send(0)",), "the last state is not a deadlock: receive()[lost=False] is enabled there"),
        ("deadlock_free", STUCK, "the last state is not a deadlock: it is terminal"),
        ("ends", ("send(0)",), "ends is violated by an endless behaviour only, and the trace has no loop"),
        (
            "first_sent",
            ("send(1)",),
            "first_sent is not reached by the trace: its last state makes it false\n"
            "  first_sent   because  backlog[0] = 1",
        ),
    ],
)
def test_verify_refuses_what_does_not_show_it(relay: System, name: str, labels: tuple[str, ...], message: str) -> None:
    """A behaviour that is possible but no counterexample (or witness) is refused with the reason."""
    start = _one_start(relay)
    with pytest.raises(ReplayError) as caught:
        verify(start, name, replay_labels(start, labels))
    assert str(caught.value) == message


def test_verify_knows_only_the_systems_properties(relay: System) -> None:
    """An unknown property is a usage error that lists the known ones."""
    with pytest.raises(UsageError, match="relay has no property 'fair'") as caught:
        verify(relay, "fair", replay_labels(relay, LOST))
    assert "deadlock_free, one_buffer, pool_grows, first_sent, ends" in str(caught.value)


def test_changes_are_leaves(relay: System) -> None:
    """A changed array element is named with its key, an unchanged one is not."""
    found = changes(relay, (1, (1, 1), ()), (0, (1, 0), ("DATA",)))
    assert [str(c) for c in found] == ["pool: 1 -> 0", "backlog[1]: 1 -> 0", "wire: <> -> <DATA>"]
    assert found[1].place == Place("backlog", (1,))


def test_blocked_actions_nearest_first(relay: System) -> None:
    """With the buffer lost and one message left, that channel's send is one condition away and comes first."""
    found = blocked(Interpreter(relay), (0, (1, 0), ()))
    assert [(e.labels, e.missing, e.guards, str(e.reason)) for e in found] == [
        (("send(c=0)",), 1, 2, "s.pool > 0   because  s.pool = 0"),
        (("send(c=1)",), 2, 2, "s.backlog[c] > 0   because  s.backlog[1] = 0"),
        (
            ("receive()[lost=False]", "receive()[lost=True]"),
            1,
            1,
            "len(s.wire) > 0   because  s.wire = <>",
        ),
    ]


def test_explanation_says_which_steps_matter(relay: System) -> None:
    """Each step hands the one buffer on, so its loss depends on all of them."""
    start = _one_start(relay)
    trace = replay_labels(start, LOST)
    why = explain(start, start.property("one_buffer"), trace)
    assert [str(r) for r in why.reasons] == [
        "s.pool + len(s.wire) == 1   because  s.pool = 0 (step 3), s.wire = <> (step 4)"
    ]
    assert why.steps == (1, 2, 3, 4)


def test_slice_leaves_out_what_has_no_influence() -> None:
    """Steps that write variables which the failing condition never depends on are not in the slice."""
    x, y = b.var("x", RangeSort(0, 3)), b.var("y", RangeSort(0, 3))

    def up(name: str, term: Expr) -> Action:
        guard = (Conjunct(b.less(term, b.num(3)), f"s.{name} < 3", None),)
        instance = Instance(f"up_{name}", (), (), guard, ((name, b.add(term, b.num(1))),))
        return Action(f"up_{name}", (), Fairness.NONE, (instance,))

    small = b.less(x, b.num(2))
    prop = Property("small", Kind.INVARIANT, small, (Conjunct(small, "s.x < 2", None),))
    system = System(
        "two", (Variable("x", x.sort, (0,)), Variable("y", y.sort, (0,))), (up("x", x), up("y", y)), (prop,)
    )
    trace = replay_labels(system, ["up_y", "up_x", "up_y", "up_x"])
    verify(system, prop, trace)
    why = explain(system, prop, trace)
    assert str(why.reasons[0]) == "s.x < 2   because  s.x = 2 (step 4)"
    assert why.steps == (2, 4)


def test_step_property_shows_both_sides(relay: System) -> None:
    """A step property is explained by the values before and after its last step."""
    start = _one_start(relay)
    why = explain(start, start.property("pool_grows"), replay_labels(start, ["send(0)"]))
    assert [str(r) for r in why.reasons] == ["t.pool >= s.pool   because  pool: 1 -> 0"]
    assert why.steps == (1,)
