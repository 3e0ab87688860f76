"""Counterexamples as text: golden output, wrapping, shared changes, source places."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from streamproof.base.text import StyledText, line, text, wrap
from streamproof.report.console import PLAIN_WIDTH
from streamproof.report.evidence import print_counterexample
from streamproof.system import (
    Action,
    ArraySort,
    EvaluationError,
    Fairness,
    Instance,
    Loc,
    RangeSort,
    SetSort,
    System,
    Trace,
    Variable,
)
from streamproof.system import build as b
from streamproof.traces.render import About, counterexample, render_text, source
from streamproof.traces.replay import replay_labels

LOST = ("send(c=1)", "receive()[lost=False]", "send(c=0)", "receive()[lost=True]")


@pytest.fixture
def stuck(relay: System) -> Trace:
    """The buffer is lost with a message left on channel 0."""
    return replay_labels(relay, ["send(1)", "receive[lost=True]"])


def test_deadlock(relay: System, stuck: Trace) -> None:
    """A deadlock: header, steps with what they changed, what stops each action, why this is no legal end, footer."""
    about = About("explicit", True, True, "streamproof check relay --variant lossy", "relay/lossy/deadlock.itf.json")
    assert render_text(relay, relay.property("deadlock_free"), stuck, about=about, width=80) == (
        """\
Counterexample: deadlock_free is violated: no action is enabled
  property    Every stop is a terminal state. (deadlock)
  model       relay, variant lossy
  parameters  channels=2
  length      2 steps, no shorter one exists
  found by    explicit, replayed by the interpreter

  0  initial state
         pool = 1
         backlog = [0: 1, 1: 1]
         wire = <>
  1  send(c=1)              relay.py:10
         pool: 1 -> 0
         backlog[1]: 1 -> 0
         wire: <> -> <DATA>
  2  receive()[lost=True]   relay.py:18
         wire: <DATA> -> <>

No action is enabled in state 2:
  send(c=0)   relay.py:13
      needs  s.pool > 0   because  s.pool = 0 (step 1)
  send(c=1)   relay.py:12
      needs  s.backlog[c] > 0   because  s.backlog[1] = 0 (step 1) (the first of
             2 conditions that are false)
  receive()[lost=False], receive()[lost=True]   relay.py:20
      needs  len(s.wire) > 0   because  s.wire = <> (step 2)
  The state is not terminal   because  backlog[0] = 1 (initially)

  reproduce   streamproof check relay --variant lossy
  trace       relay/lossy/deadlock.itf.json
"""
    )


def test_invariant(relay: System, stuck: Trace) -> None:
    """An invariant: the false conjunct as written, its line, the values with the steps that put them there."""
    shown = render_text(relay, relay.property("one_buffer"), stuck)
    assert shown.startswith("Counterexample: one_buffer is violated after step 2\n  property    invariant\n")
    assert shown.endswith(
        """\
False in state 2:
    s.pool + len(s.wire) == 1   relay.py:30
      because  s.pool = 0 (step 1), s.wire = <> (step 2)
"""
    )


def test_invariant_in_the_initial_state(relay: System) -> None:
    """A counterexample without a step says so."""
    wrong = replace(relay.variables[0], initial=(0,))
    system = replace(relay, variables=(wrong, *relay.variables[1:]))
    shown = render_text(system, system.property("one_buffer"), Trace(((0, (1, 0), ()),), ()))
    assert shown.startswith("Counterexample: one_buffer is violated in the initial state\n")
    assert "because  s.pool = 0 (initially), s.wire = <> (initially)\n" in shown


def test_step_property(relay: System, stuck: Trace) -> None:
    """A step property: both sides of the step."""
    shown = render_text(relay, relay.property("pool_grows"), Trace(stuck.states[:2], stuck.steps[:1]))
    assert shown.startswith("Counterexample: pool_grows is violated by step 1\n")
    assert shown.endswith("False in step 1:\n    t.pool >= s.pool   relay.py:34\n      because  pool: 1 -> 0\n")


def test_witness(relay: System) -> None:
    """A reachability property: the behaviour that gets there, and the steps it needs."""
    trace = replay_labels(relay, LOST[:3])
    shown = render_text(relay, relay.property("first_sent"), trace)
    assert shown.startswith("Witness: first_sent is reached\n")
    assert shown.endswith(
        """\
  3  send(c=0)               relay.py:10
         pool: 1 -> 0
         backlog[0]: 1 -> 0
         wire: <> -> <DATA>
"""
    )


def test_lasso(toggle: System) -> None:
    """A loop is marked where it starts and where it goes back."""
    trace = replay_labels(toggle, ["flip", "flip", "flip"], loop=1)
    assert render_text(toggle, toggle.property("ends"), trace) == (
        """\
Counterexample: ends is violated: an infinite execution exists
  property    Every run ends. (termination)
  model       toggle
  length      3 steps, a loop from state 1 on

  0  initial state
         on = False
  1  flip()[to=True]
         on: False -> True
       the loop starts here
  2  flip()[to=False]
         on: True -> False
  3  flip()[to=True]
         on: False -> True
       back to state 1: the loop repeats forever
"""
    )


def test_loop_of_one_step_from_the_start(toggle: System) -> None:
    """The smallest lasso: one state, one step that changes nothing."""
    shown = render_text(toggle, None, replay_labels(toggle, ["stay"], loop=0))
    assert shown == (
        """\
Behaviour of toggle
  model       toggle
  length      1 step, a loop from state 0 on

  0  initial state
         on = False
       the loop starts here
  1  stay()
         (nothing changed)
       back to state 0: the loop repeats forever
"""
    )


def test_mistake_of_the_model(relay: System, stuck: Trace) -> None:
    """The way to a mistake of the model: what it is, its line, what to do about it."""
    error = EvaluationError("n leaves Range(0, 1)", loc=Loc("relay.py", 14), remedy="guard it")
    shown = render_text(relay, None, stuck, about=About(error=error))
    assert shown.startswith("Error of the model: n leaves Range(0, 1)\n  model       relay, variant lossy\n")
    assert shown.endswith("\nGoes wrong in state 2:\n    n leaves Range(0, 1)   relay.py:14\n      guard it\n")


def test_full_states(relay: System, stuck: Trace) -> None:
    """On request the whole state follows every step."""
    shown = render_text(relay, None, stuck, full=True)
    assert shown.endswith(
        """\
  2  receive()[lost=True]   relay.py:18
         wire: <DATA> -> <>
         state
           pool = 0
           backlog = [0: 1, 1: 0]
           wire = <>
"""
    )


def test_equal_changes_share_a_line() -> None:
    """Cells of one variable that change alike are one line, those that change otherwise another."""
    sort = ArraySort(RangeSort(0, 3), RangeSort(0, 2))
    reset = Instance("reset", (), (), (), (("cells", b.const(sort, (0, 0, 0, 1))),))
    system = System("m", (Variable("cells", sort, ((2, 1, 2, 1),)),), (Action("reset", (), Fairness.NONE, (reset,)),))
    shown = render_text(system, None, Trace((((2, 1, 2, 1),),), ()))
    assert "cells = [0: 2, 1: 1, 2: 2, 3: 1]" in shown
    shown = render_text(system, None, replay_labels(system, ["reset"]))
    assert shown.endswith("         cells[0], cells[2]: 2 -> 0\n         cells[1]: 1 -> 0\n")


def test_sets_that_overlap_are_shown_by_what_was_added_and_removed() -> None:
    """A set that gets other elements altogether is shown before and after."""
    sort = SetSort(RangeSort(0, 4))
    grow, swap = (
        Instance(name, (), (), (), (("held", b.const(sort, frozenset(to))),))
        for name, to in (("grow", {1, 2}), ("swap", {2, 3}))
    )
    actions = tuple(Action(i.action, (), Fairness.NONE, (i,)) for i in (grow, swap))
    system = System("m", (Variable("held", sort, (frozenset(),)),), actions)
    shown = render_text(system, None, replay_labels(system, ["grow", "swap", "grow"]))
    assert "held: {} -> {1, 2}\n" in shown
    assert "held: + {3} - {1}\n" in shown
    assert shown.endswith("held: + {1} - {3}\n")


@pytest.mark.parametrize("width", [20, 33, 60, 200])
def test_no_line_is_wider_than_asked(relay: System, stuck: Trace, width: int) -> None:
    """Whatever the width, nothing sticks out and nothing is lost."""
    prop = relay.property("deadlock_free")
    lines = render_text(relay, prop, stuck, width=width).splitlines()
    assert max(map(len, lines)) <= width
    wide = render_text(relay, prop, stuck, width=10_000)
    assert "".join("".join(lines).split()) == "".join(wide.split())


def test_wrapping_keeps_styles_and_indents() -> None:
    """Continuations stand at the hanging indent; a span that is broken keeps its style on both lines."""
    rows = list(wrap([line("name: ", StyledText("one two three four", "new"), indent=2, hang=6)], 20))
    assert rows == [
        (StyledText("  "), StyledText("name: "), StyledText("one two", "new")),
        (StyledText("      "), StyledText("three four", "new")),
    ]


def test_long_words_are_broken() -> None:
    """A word longer than the line is cut, as nothing may be wider than the terminal."""
    assert text([line("x" * 45, indent=0, hang=2)], 20) == f"{'x' * 20}\n  {'x' * 18}\n  {'x' * 7}\n"


def test_source_is_short_and_stable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a package is named from the package, another from the working folder, a foreign one as it is."""
    package = tmp_path / "lib" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert source(Loc(str(package / "credit.py"), 7)) == "pack/credit.py:7"
    assert source(Loc(str(tmp_path / "mine.py"), 3)) == "mine.py:3"
    assert source(Loc("/elsewhere/mine.py", 3)) == "/elsewhere/mine.py:3"
    assert source(None) == ""


def test_plain_text_off_a_terminal(relay: System, stuck: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal the console writes exactly the text form, whatever the environment's width."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    prop = relay.property("deadlock_free")
    print_counterexample(relay, prop, stuck, stream=stream)
    assert stream.getvalue() == render_text(relay, prop, stuck, width=PLAIN_WIDTH)


def test_colours_on_a_terminal(relay: System, stuck: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal there are colours, and without them the text is the same."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    stream = Terminal()
    prop = relay.property("deadlock_free")
    print_counterexample(relay, prop, stuck, stream=stream)
    written = stream.getvalue()
    assert "\x1b[1;31mdeadlock_free is violated: no action is enabled\x1b[0m" in written
    assert re.sub(r"\x1b\[[0-9;]*m", "", written) == render_text(relay, prop, stuck, width=90)


def test_many_instances_are_summed_up(relay: System) -> None:
    """Of many instances that wait for the same reason four are named and the others counted."""
    wire = b.var("wire", relay.variables[2].sort)
    guard = relay.instances[2].guard
    many = tuple(Instance("poll", (("n", n),), (), guard, (("wire", b.pop(wire)),)) for n in range(9))
    system = replace(relay, actions=(Action("poll", ("n",), Fairness.NONE, many),))
    shown = render_text(system, system.property("deadlock_free"), Trace(((1, (1, 0), ()),), ()))
    assert "  poll(n=0), poll(n=1), poll(n=2), poll(n=3) and 5 more   relay.py:20\n" in shown


def test_lines_are_what_the_text_is_made_of(relay: System, stuck: Trace) -> None:
    """The styled lines and the text say the same."""
    lines = counterexample(relay, relay.property("one_buffer"), stuck)
    assert text(lines, 100) == render_text(relay, relay.property("one_buffer"), stuck, width=100)
