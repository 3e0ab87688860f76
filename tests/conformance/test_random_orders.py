"""Logs with overlapping calls and vector clocks are accepted exactly if some order that they allow is one of the model."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from streamproof import Model, Range, State, action, require
from streamproof.conformance import Event, EventLog, JudgedEvents, judge, overlapping


class Cell(Model):
    """A bit that is written and read."""

    def state(self) -> State:
        """Zero."""
        return State(value=Range(0, 1))

    @action(v=[0, 1])
    def write(self, s: Any, v: Any) -> None:
        """Another value."""
        s.value = v

    @action(v=[0, 1])
    def read(self, s: Any, v: Any) -> None:
        """The value."""
        require(s.value == v)


BINDING = EventLog(Cell, {"look": None})
Log = list[dict[str, Any]]


def drawn(rng: random.Random) -> Log:
    """Events of two processes, in an order in which clocks know earlier events only."""
    events: Log = []
    next_seq, counts, clocks = {"p": 0, "q": 0}, {"p": 0, "q": 0}, rng.random() < 0.6
    for _ in range(rng.randint(2, 6)):
        process = rng.choice("pq")
        other = "q" if process == "p" else "p"
        seq = next_seq[process] + rng.choice((0, 0, 1))
        next_seq[process] = seq + 1
        name = rng.choice(("write", "write", "read", "look"))
        event: dict[str, Any] = {"trace": "t", "process": process, "seq": seq, "event": name}
        if name != "look":
            event["args"] = {"v": rng.randrange(2)}
        if name == "look" or rng.random() < 0.3:
            event["state"] = {"value": rng.randrange(2)}
        if seq > 0 and rng.random() < 0.6:
            event["after"] = rng.randint(-1, seq - 1)
        counts[process] += 1
        if clocks and rng.random() < 0.8:
            event["clock"] = {process: counts[process]}
            if counts[other] and rng.random() < 0.5:
                event["clock"][other] = rng.randint(1, counts[other])
        events.append(event)
    return events


def precedes(x: dict[str, Any], y: dict[str, Any], events: Log) -> bool:
    """Whether one event happened before another, by the numbers of its process or by a vector clock."""
    if x["process"] == y["process"]:
        return bool(x["seq"] < y["seq"] and x["seq"] <= y.get("after", x["seq"]))
    name, known = x["process"], y.get("clock", {}).get(x["process"], 0)
    last = [e["seq"] for e in events if e["process"] == name and "clock" in e and e["clock"][name] <= known]
    return bool(last and x["seq"] <= max(last))


def possible(events: Log) -> bool:
    """Whether some order of all events is one of the model: every one is tried."""
    pairs = [(i, j) for i, x in enumerate(events) for j, y in enumerate(events) if i != j and precedes(x, y, events)]
    for order in permutations(range(len(events))):
        if any(order.index(i) > order.index(j) for i, j in pairs):
            continue
        value = 0
        for at in order:
            event = events[at]
            if event["event"] == "write":
                value = event["args"]["v"]
            elif event["event"] == "read" and event["args"]["v"] != value:
                break
            if event.get("state", {"value": value})["value"] != value:
                break
        else:
            return True
    return False


@pytest.mark.parametrize(
    "seeds", [range(600), pytest.param(range(1_000, 12_000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_every_order_is_tried(tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is that of all permutations, also if nodes of the search are forgotten as soon as possible."""
    file, seen = tmp_path / "log.ndjson", Counter[str]()
    for seed in seeds:
        monkeypatch.setattr(overlapping, "FORGET", 1_000 if seed % 2 else 0)
        events = drawn(random.Random(seed))
        file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        (verdict,) = judge(BINDING.plan(file, None), "cell")
        if all(event["event"] == "look" for event in events):
            continue  # nothing is judged
        assert verdict.answer == ("accepted" if possible(events) else "rejected"), f"seed {seed}: {events}"
        seen[verdict.answer] += 1
    assert min(seen["accepted"], seen["rejected"]) > len(seeds) // 5


def test_a_later_call_may_come_before_one_that_waits(tmp_path: Path) -> None:
    """The first call of `q` follows the read of `p`, which read what the second call of `q` wrote: both were under way."""
    events: Log = [
        {"trace": "t", "process": "p", "seq": 0, "event": "read", "args": {"v": 1}, "clock": {"p": 1}},
        {"trace": "t", "process": "q", "seq": 1, "event": "write", "args": {"v": 0}, "clock": {"q": 1, "p": 1}},
        {"trace": "t", "process": "q", "seq": 2, "event": "write", "args": {"v": 1}, "after": -1},
    ]
    file = tmp_path / "log.ndjson"
    for after, answer in ((-1, "accepted"), (1, "rejected")):
        events[2]["after"] = after
        file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        (verdict,) = judge(BINDING.plan(file, None), "cell")
        assert verdict.answer == answer


def test_behaviours_of_one_log_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Processes and numbers are the same in two traces; each rejection is that of its trace alone, and events count once."""
    wrong = [("p", 0, 1), ("p", 1, 1), ("p", 2, 0), ("q", 0, 1), ("p", 3, 0)]
    events: Log = [
        {"trace": "one", "process": p, "seq": n, "event": "read" if p == "q" else "write", "args": {"v": v}}
        for p, n, v in wrong
    ]
    events[3]["clock"] = {"q": 1, "p": 3}
    for at, event in enumerate(event for event in events if event["process"] == "p"):
        event["clock"] = {"p": at + 1}
    other: Log = [{**event, "trace": "two", "args": {"v": 0}} for event in reversed(events)]
    file, found = tmp_path / "log.ndjson", []
    for log in (events, [*events, *other], [*other, *events]):
        file.write_text("".join(f"{json.dumps(event)}\n" for event in log))
        counted = JudgedEvents()
        validated: list[Event] = []
        plan = BINDING.plan(file, None)
        (verdict,) = (v for v in judge(plan, "cell", validated) if v.trace == "one")
        counted.add("run", plan.events, validated)
        counted.finish()
        assert counted.read.total() == len(log)
        assert verdict.rejection is not None
        found.append((str(verdict.rejection.event), verdict.rejection.index, verdict.matched))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == 3
