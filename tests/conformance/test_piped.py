"""A log that comes through a pipe has the verdict of the same file, and its rejections are known as they happen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from random_systems import random_system
from streamproof.conformance import (
    Event,
    EventLog,
    InputError,
    RunVerdict,
    judge,
    overlapping,
    read_events,
    validate_paths,
    write_ndjson,
)
from streamproof.conformance.found_runs import ValidationRequest
from streamproof.conformance.piped import LiveLog, follow_piped, piped_log
from streamproof.conformance.recorded_values import value_json
from streamproof.system import Interpreter, StreamproofError, System

MODEL = '''"""Counters."""

from streamproof import Array, Model, Range, State, action, require


class Counters(Model):
    """Counters from 0 to 2."""

    n: int = 2

    def state(self):
        return State(x=Array(range(self.n), Range(0, 2)))

    @action(c=lambda self: range(self.n))
    def up(self, s, c):
        require(s.x[c] < 2)
        s.x[c] += 1

    @action(c=lambda self: range(self.n))
    def down(self, s, c):
        require(s.x[c] > 0)
        s.x[c] -= 1
'''


def walk(system: System, random: Random, trace: str, most: int) -> list[Event]:
    """The log of a random behaviour, mostly of one process."""
    interpreter = Interpreter(system)
    state = random.choice(list(interpreter.initial_states()))
    processes = "p" if random.random() < 0.8 else "pq"
    clocks, found, seqs = random.random() < 0.2, list[Event](), Counter[str]()
    for _ in range(random.randint(1, most)):
        steps = list(interpreter.steps(state))
        if not steps:
            break
        taken = random.choice(steps)
        state, process = taken.state, random.choice(processes)
        shown = {v.name: value_json(v.sort, state[i]) for i, v in enumerate(system.variables) if random.random() < 0.1}
        clock = {process: seqs[process] + 1} if clocks else None
        args = dict(taken.instance.args)
        found.append(Event(trace, process, seqs[process], taken.instance.action, args, None, clock, shown or None))
        seqs[process] += 1 + (random.random() < 0.1)
    return found


def changed(events: list[Event], system: System, random: Random) -> list[Event]:
    """The log with a line left out, moved, refused, or of another action."""
    lied, at = list(events), random.randrange(len(events))
    match random.randrange(5):
        case 0:
            del lied[at]
        case 1:
            lied.insert(random.randrange(len(lied)), lied.pop(at))
        case 2:
            lied[at] = replace(lied[at], refused=True)
        case 3:
            lied[at] = replace(lied[at], after=random.randint(-1, max(lied[at].seq - 1, -1)))
        case 4:
            other = random.choice([i for a in system.actions for i in a.instances])
            lied[at] = replace(lied[at], event=other.action, args=dict(other.args))
    return lied


def records(verdicts: list[RunVerdict]) -> list[Any]:
    """Verdicts as their JSON."""
    return [verdict.record() for verdict in verdicts]


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 4000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_followed_log_has_the_verdicts_of_its_file(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts are those of the file, and each rejection those of the lines up to it, which no later line changes."""
    seen, file, start = Counter[str](), tmp_path / "stdin", tmp_path / "part" / "stdin"
    start.parent.mkdir()
    for seed in seeds:
        random = Random(seed)
        with suppress(StreamproofError):  # a mistake in the random system
            system = random_system(random)
            if "frozenset" in repr([i.args for action in system.actions for i in action.instances]):
                continue  # sets as arguments have no form in a log
            if not [*Interpreter(system).initial_states()]:
                continue
            logs = [walk(system, random, trace, 25) for trace in "abc"[: random.randint(1, 3)]]
            logs = [changed(log, system, random) if log and random.random() < 0.5 else log for log in logs]
            events: list[Event] = []
            while any(logs):
                events.append(random.choice([log for log in logs if log]).pop(0))
            names = sorted({event.event for event in events})
            hidden = frozenset(random.sample(names, 1)) if names and random.random() < 0.2 else frozenset()
            events = [event for event in events if event.event not in hidden]
            if not events:
                continue
            file.unlink(missing_ok=True)
            write_ndjson(events, file)
            binding = EventLog(system, hidden=hidden, ordered=random.random() < 0.2)
            live, early = LiveLog("random", binding), dict[str, tuple[int, RunVerdict]]()
            monkeypatch.setattr(overlapping, "FORGET", 1_000)
            try:
                expected = judge(binding.plan(file, None), "random")
            except InputError:
                expected = []
            monkeypatch.setattr(overlapping, "FORGET", random.choice((0, 3, 1_000)))
            if expected:
                for number, event in enumerate(read_events(file), 1):
                    reported = live.take(event)
                    if reported is not None:
                        early[event.trace] = number, reported
            verdicts = live.verdicts()
            if verdicts is None:
                seen["not followed"] += 1
            elif expected:
                assert records(verdicts) == records(expected), seed
                assert set(early) == {v.trace for v in expected if v.answer == "rejected"}, seed
                seen.update(v.answer for v in verdicts)
            for trace, (number, rejected) in early.items():
                if rejected.answer == "inconclusive":
                    seen["open again"] += 1
                    continue
                start.unlink(missing_ok=True)
                write_ndjson(events[:number], start)
                (alike,) = (v for v in judge(binding.plan(start, None), "random") if v.trace == trace)
                assert json.dumps(records([rejected])).replace(str(file), str(start)) == json.dumps(records([alike]))
                assert "rejected" in {v.answer for v in expected if v.trace == trace}, seed
    assert min(seen[of] for of in ("accepted", "rejected", "not followed")) > len(seeds) / 10, seen
    assert seen["open again"] > 0 or len(seeds) < 100


@contextmanager
def piped(text: bytes, random: Random) -> Iterator[None]:
    """Inside, standard input is a pipe to which a thread writes chunks of random sizes."""
    reading, writing = os.pipe()
    before = os.dup(0)
    os.dup2(reading, 0)
    os.close(reading)

    def write() -> None:
        at = 0
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            while at < len(text):
                size = random.choice((1, 7, 100, 5_000))
                pipe.write(text[at : at + size])
                at += size

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 600), marks=pytest.mark.long)], ids=["few", "many"])
def test_chunks_change_nothing(seeds: range, tmp_path: Path) -> None:
    """A log in random chunks, correct, tampered or damaged, has the verdict or the error of the same file, which lacks a last
    line that is cut."""
    model, file, seen = tmp_path / "counters.py", tmp_path / "stdin", Counter[str]()
    model.write_text(MODEL, encoding="utf-8")
    for seed in seeds:
        random, lines, x = Random(seed), list[bytes](), [0, 0]
        for seq in range(random.randint(1, 200)):
            c = random.randrange(2)
            name = "up" if x[c] == 0 or (x[c] < 2 and random.random() < 0.5) else "down"
            x[c] += 1 if name == "up" else -1
            event: dict[str, Any] = {"trace": "t", "process": "p", "seq": seq, "event": name, "args": {"c": c}}
            if random.random() < 0.1:
                event["state"] = {"x": list(x)}
            lines.append(f"{json.dumps(event)}\n".encode())
        kind = random.choice(("correct", "left out", "swapped", "broken", "torn", "blank", "another process"))
        at = random.randrange(len(lines))
        match kind:
            case "left out":
                del lines[at]
            case "swapped":
                lines[at], lines[0] = lines[0], lines[at]
            case "broken":
                lines.insert(at, b"{\n")
            case "torn":
                lines[-1] = lines[-1][: random.randrange(len(lines[-1]) - 1)]
            case "blank":
                lines.insert(at, b"\n")
            case "another process":
                lines[at] = lines[at].replace(b'"p"', b'"q"')
        cut = kind == "torn" and len(lines) > 1 and bool(lines[-1])
        file.write_bytes(b"".join(lines[:-1] if cut else lines))
        request = ValidationRequest(str(model))
        try:
            expected: Any = records(validate_paths([file], model=str(model)))
        except InputError as error:
            expected = error.one_line
        found: Any
        with piped(b"".join(lines), random), piped_log() as log:
            try:
                verdicts = follow_piped(log, request, lambda verdict, number: None)
                found = records(verdicts or validate_paths([Path("/dev/stdin")], model=str(model)))
            except InputError as error:
                found = error.one_line
            assert log.torn == cut
        assert json.dumps(found) == json.dumps(expected).replace(str(file), "/dev/stdin"), (seed, kind)
        seen["error" if isinstance(found, str) else found[0]["verdict"]] += 1
    assert len(seen) > 1, seen


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The verb with a pipe as standard input."""
    (folder / "counters.py").write_text(MODEL, encoding="utf-8")
    command = [sys.executable, "-m", "streamproof", "validate", "-", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)


def line(seq: int, event: str) -> bytes:
    """A line of a log."""
    return f'{{"trace": "t", "process": "p", "seq": {seq}, "event": "{event}", "args": {{"c": 0}}}}\n'.encode()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_rejection_is_printed_as_it_happens(number: signal.Signals, tmp_path: Path) -> None:
    """While the pipe is open; a signal then ends the input, and a line that it cuts is left out."""
    with started(tmp_path, "--model", "counters.py") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(line(0, "up") + line(1, "down") + line(2, "down") + line(3, "up")[:20])
        running.stdin.flush()
        early = [running.stdout.readline() for _ in range(3)]
        assert early[0] == b"after 3 lines:\n"
        assert early[2].strip() == b"/dev/stdin:3: p#2 down(c=0)"
        assert running.stderr is not None
        running.send_signal(number)
        printed, warned = running.stdout.read(), running.stderr.read()  # the input stays open: the signal alone ends it
        running.wait(timeout=60)
        assert b"\n1 behaviour: 1 rejected\n" in printed
        assert warned == b"streamproof: warning: the input ends within a line, which is left out\n"
        assert running.returncode == 161


def test_a_signal_after_the_end_of_the_input_takes_no_verdict(tmp_path: Path) -> None:
    """Ctrl-C on a terminal reaches both ends of a pipe, and the writer may close it first."""
    with started(tmp_path, "--model", "counters.py") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(line(0, "up") + line(1, "down") + line(2, "down") + line(3, "up")[:20])
        running.stdin.close()
        assert running.stderr.readline().startswith(b"streamproof: warning")
        running.send_signal(signal.SIGTERM)
        assert b"\n1 behaviour: 1 rejected\n" in running.stdout.read()
        assert running.wait(timeout=60) == 161


@pytest.mark.long
def test_a_log_that_is_judged_as_a_whole_is_judged_before_its_end(tmp_path: Path) -> None:
    """Events of two processes may come later than they happened: the lines so far are judged when no more are there, also if
    only one of them is new."""
    lines = [line(seq, "up" if seq % 2 == 0 else "down") for seq in range(120)]
    lines[2:4] = [lines[2].replace(b'"p"', b'"q"'), lines[3].replace(b'"p"', b'"q"')]
    with started(tmp_path, "--model", "counters.py", "--json", "-") as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"".join(lines))
        running.stdin.flush()
        time.sleep(3)
        running.stdin.write(line(120, "down"))
        running.stdin.flush()
        assert running.stderr.readline() == b"after 121 lines:\n"
        printed, _ = running.communicate(timeout=60)
        assert json.loads(printed)["verdicts"][0]["verdict"] == "rejected"
        assert running.returncode == 161
