"""Explanations of traces: the order of steps, what each is needed for, circles of waiting, processes, forms, origins."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import streamproof as sp
from random_systems import random_system
from shares import share
from streamproof import Array, Bool, Enum, Model, Queue, Range, State, action, invariant, require
from streamproof.api.origin import model_at_origin, origin_of
from streamproof.base.errors import InputError
from streamproof.base.options import SearchOptions
from streamproof.cli.verbs import cli
from streamproof.exchange.drawings.mermaid import mermaid_text
from streamproof.exchange.drawings.sequence import sequence_of
from streamproof.exchange.itf.reading import load, read_meta
from streamproof.system import System
from streamproof.system.interpreter import Interpreter
from streamproof.system.verdict import Trace, Verdict
from streamproof.traces.explain import needs
from streamproof.traces.processes import Processes, circle_of_waiting
from streamproof.traces.replay import replay_labels, verify
from streamproof.traces.tidy import fewer_switches, sentences, switches


class Table(Model):
    """Philosophers take the left fork, then the right one."""

    seats: int = 3

    def state(self) -> State:
        """Forks on the table, and how many each philosopher has."""
        return State(taken=Array(self.seats, Bool()), has=Array(self.seats, Range(0, 2)), meals=Range(0, 3))

    @action(seat="seats")
    def left(self, s: Any, seat: int) -> None:
        """The first fork."""
        require(s.has[seat] == 0 and not s.taken[seat])
        s.taken[seat] = True
        s.has[seat] = 1

    @action(seat="seats")
    def right(self, s: Any, seat: int) -> None:
        """The second one."""
        require(s.has[seat] == 1)
        require(not s.taken[(seat + 1) % self.seats])
        s.taken[(seat + 1) % self.seats] = True
        s.has[seat] = 2

    @action(who="seats")
    def put(self, s: Any, who: int) -> None:
        """Both back."""
        require(s.has[who] == 2)
        s.has[who] = 0
        s.taken[who] = False
        s.taken[(who + 1) % self.seats] = False


class Mail(Model):
    """Two sorts of processes with the same numbers."""

    def state(self) -> State:
        """What each clerk has sent, and each box."""
        return State(sent=Array(2, Bool()), box=Array(2, Queue(Enum("LETTER", "END"), capacity=1)))

    @action(clerk=Range(0, 1))
    def send(self, s: Any, clerk: int) -> None:
        """A letter to the box of the same number."""
        require(not s.sent[clerk])
        s.sent[clerk] = True
        s.box[1 - clerk].append("LETTER")

    @action(postman=Range(0, 1))
    def empty(self, s: Any, postman: int) -> None:
        """Take it out."""
        require(len(s.box[postman]) > 0)
        s.box[postman].popleft()

    @invariant
    def never_both(self, s: Any) -> bool:
        """False after two letters that were taken out."""
        return not (s.sent[0] and s.sent[1] and len(s.box[0]) == 0 and len(s.box[1]) == 0)


def finding(system: System, name: str) -> Trace:
    """The trace of a violation."""
    trace = sp.explore(system, SearchOptions(properties=name)).finding(name).trace
    assert trace is not None
    return trace


def test_circle_of_waiting() -> None:
    """Each philosopher waits for the next one; what would help is true by plain evaluation."""
    system = Table.system()
    trace = finding(system, "deadlock")
    interpreter, state = Interpreter(system), trace.states[-1]
    circle = circle_of_waiting(interpreter, state)
    assert [(wait.process, wait.label, wait.other, wait.helper) for wait in circle] == [
        (f"seat {k}", f"right(seat={k})", f"seat {(k + 1) % 3}", f"put(who={(k + 1) % 3})") for k in range(3)
    ]
    for wait in circle:
        helper = next(i for i in system.instances if i.label == wait.helper)
        after = list(state)
        for name, term in helper.updates:
            after[system.index[name]] = interpreter.value(term, state)
        assert not interpreter.value(wait.condition.expr, state)
        assert interpreter.value(wait.condition.expr, tuple(after))


def test_processes_have_names_and_kinds() -> None:
    """Parameters that index the same array are one kind; those of different arrays are two, with equal values too."""
    table, mail = Table.system(), Mail.system()
    assert {Processes(table).of(i) for i in table.instances} == {("seat 0",), ("seat 1",), ("seat 2",)}
    assert {Processes(mail).of(i)[0] for i in mail.instances} == {"clerk 0", "clerk 1", "postman 0", "postman 1"}
    diagram = sequence_of(mail, finding(mail, "never_both"))
    assert diagram.lanes == ["clerk 0", "clerk 1", "postman 0", "postman 1"]


def test_steps_of_a_process_stand_together() -> None:
    """Steps that commute are exchanged; steps, last state and property stay."""
    system = Mail.system()
    scattered = replay_labels(system, ["send(0)", "send(1)", "empty(1)", "empty(0)"])
    assert switches(system, scattered) == 3
    table = Table.system()
    mixed = replay_labels(table, ["left(0)", "left(2)", "right(0)", "put(0)", "left(1)"])
    tidied = fewer_switches(table, None, mixed)
    assert [s.label for s in tidied.steps] == [
        "left(seat=0)",
        "right(seat=0)",
        "put(who=0)",
        "left(seat=2)",
        "left(seat=1)",
    ]
    assert tidied.states[-1] == mixed.states[-1]


@pytest.mark.parametrize("begin", share(range(0, 300, 20), of=15))
def test_random_behaviours_keep_what_they_show(begin: int) -> None:
    """Of random systems: the same steps, a behaviour that shows the property, no more switches; slices are those shown."""
    sliced = 0
    for seed in range(begin, begin + 20):
        system = random_system(Random(seed))
        if not any(Interpreter(system).initial_states()):
            continue
        found = sp.explore(system, SearchOptions(max_states=2_000))
        for one in found.findings:
            if one.trace is None or one.verdict is Verdict.ERROR or found.mistake is not None:
                continue
            prop = system.property(one.property)
            tidied = fewer_switches(system, prop, one.trace)
            verify(system, prop, tidied)
            assert Counter(s.label for s in tidied.steps) == Counter(s.label for s in one.trace.steps)
            assert switches(system, tidied) <= switches(system, one.trace)
            wanted = needs(system, prop, tidied)
            told = sentences(tidied, wanted, prop.kind)
            assert not wanted or set(told) == set(range(1, len(tidied.steps) + 1))
            for step, places in wanted.items():
                assert all(step < reader <= len(tidied.steps) + 1 for _, reader in places)
            sliced += bool(wanted)
    assert sliced > 1


def test_mermaid_has_no_markup_of_models() -> None:
    """Text of models has no meaning in Mermaid."""
    system = Mail.system()
    text = mermaid_text(system, replay_labels(system, ["send(0)", "empty(1)", "send(1)"]))
    assert text.startswith("sequenceDiagram\n    participant P0 as clerk 0\n")
    assert "    P0->>P2: LETTER\n    Note over P2: 2. empty(postman=1)\n" in text
    assert "LETTER (not received)" in text
    assert ";" not in text.replace("#62;", "").replace("#101;", "").replace("#60;", "")


# --- origins and the command line

MODEL = """
from streamproof import Model, Range, State, action, invariant, require


class Counter(Model):
    def state(self):
        return State(n=Range(0, 3))

    @action
    def up(self, s):
        require(s.n < 3)
        s.n += 1

    @invariant
    def low(self, s):
        return s.n < 2
"""


def said(*words: str) -> tuple[int, str]:
    """The exit code and the output of the program."""
    done = CliRunner().invoke(cli, list(words), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def test_own_traces_say_where_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace names the file of its model; only with the seal of the user that file is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMPROOF_CACHE", str(tmp_path / "cache"))
    (tmp_path / "counter.py").write_text(MODEL)
    said("check", "counter.py", "-q", "--out", "traces")
    code, text = said("replay", "traces/low.itf.json", "-q")
    assert (code, text) == (0, "traces/low.itf.json: replayed, 2 steps; it violates low\n")
    monkeypatch.chdir(tmp_path / "traces")
    assert said("replay", "low.itf.json", "-q")[0] == 0
    monkeypatch.chdir(tmp_path)
    for form, word in (
        ("text", "needed: step 2 reads n"),
        ("markdown", "```mermaid"),
        ("mermaid", "sequenceDiagram"),
        ("svg", "<svg"),
        ("html", "<!doctype html>"),
        ("pytest", "def test_behaviour"),
        ("itf", '"source": "counter.py"'),
    ):
        code, text = said("explain", "traces/low.itf.json", "--format", form)
        assert code == 0
        assert word in text, form
        assert sp.explain("traces/low.itf.json", form) == text
    own = tmp_path / "traces" / "low.itf.json"
    own.write_text(own.read_text().replace('"source": "counter.py"', '"source": "other.py"'))
    (tmp_path / "other.py").write_text("raise SystemExit(3)")
    assert model_at_origin(read_meta(load(own)).origin, str(own)) is None
    with pytest.raises(InputError, match="is of the model"):
        said("replay", str(own))
    own.write_text(own.read_text().replace('"source": "other.py"', '"source": "counter.py"'))
    monkeypatch.setenv("STREAMPROOF_CACHE", str(tmp_path / "another"))
    with pytest.raises(InputError, match="named by another user"):
        said("replay", str(own))
    monkeypatch.setenv("STREAMPROOF_CACHE", "")
    origin = origin_of("counter.py")
    assert origin is not None
    assert origin.seal is None
    assert origin_of("failover") is None
