"""Logs with overlapping restarts, true and false, are judged alike with all combinations and with numbered decisions."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamproof.conformance.judging as judging
import streamproof_specs.failover.flink.binding as binding
import streamproof_specs.failover.flink.jobmanager_log as jobmanager_log
from streamproof import System
from streamproof.conformance import RunVerdict, StateReader, compile_model, judge
from streamproof.conformance.tracker import Tracker
from streamproof_models.failover.flink import FlinkRules
from streamproof_specs.failover.flink.binding import BINDING
from streamproof_specs.failover.flink.recorded_machine import RecordedFailover, RecordedGraph
from synthetic_flink import random_run

PLAIN = 100_000
"""More states than there are, so that all combinations are made."""


class Numbered(RecordedFailover):
    """Decisions and versions as in the verified machine: none is taken over by leaving, and no place is used twice."""

    state = FlinkRules.state
    places = FlinkRules.places
    place = FlinkRules.place
    begin_restart = FlinkRules.begin_restart
    take_over = FlinkRules.take_over
    restarts_task = FlinkRules.restarts_task


def numbered_system(recorded: RecordedGraph, model: RecordedFailover) -> System:
    """The machine with numbered decisions, narrowed alike."""
    kind: Any = Numbered
    numbered = kind(recorded.graph, restarts=model.decisions)
    missable = {(t, p) for t, parts in model.missable.items() for p in parts}
    numbered.narrow(model.failing, missable, bool(model.globally))
    return compile_model(numbered)


def pending(look: StateReader) -> bool:
    """Whether a task waits for its newest decision."""
    return any(look("version", t) == k for k, tasks in enumerate(look("restarting")) for t in tasks)


def judged(folder: Path) -> list[RunVerdict]:
    """The verdicts on a folder."""
    return [v for run in BINDING.runs(folder) for v in judge(BINDING.plan(run, None), "failover")]


def essence(verdict: RunVerdict) -> tuple[Any, ...]:
    """The verdict, the rejected line, and the confirmed restart sets."""
    rejected = verdict.rejection
    line = (rejected.event.line if rejected.event else None, rejected.index) if rejected else None
    return verdict.answer, line, verdict.recoveries


def tampered(random: Random, lines: list[str]) -> list[str]:
    """A log with a line less, one twice, two exchanged, another count or another attempt."""
    lines, at = list(lines), random.randrange(3, len(lines))
    match random.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(random.randrange(3, len(lines)), lines[at])
        case 2:
            other = min(at + random.randint(1, 4), len(lines) - 1)
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            decisions = [i for i, line in enumerate(lines) if " tasks will be restarted" in line]
            if decisions:
                at = random.choice(decisions)
                start, _, rest = lines[at].partition("[] - ")
                count, _, rest = rest.partition(" ")
                lines[at] = f"{start}[] - {int(count) + random.choice([-1, 1])} {rest}"
        case _:
            at = random.choice([i for i, line in enumerate(lines) if " switched from " in line])
            lines[at] = lines[at].replace("RUNNING.", "FINISHED.").replace("CANCELED.", "FINISHED.")
    return lines


def compare(seeds: range, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Judges random logs both ways."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        cluster = random_run(random)
        if seed % 2:
            cluster.lines = tampered(random, cluster.lines)
        cluster.write(folder)
        with monkeypatch.context() as patched:
            patched.setattr(judging, "Tracker", partial(Tracker, eager=-1))
            late = judged(folder)
        with monkeypatch.context() as patched:
            patched.setattr(judging, "Tracker", partial(Tracker, eager=PLAIN, limit=PLAIN))
            patched.setattr(binding, "recorded_system", numbered_system)
            patched.setattr(jobmanager_log, "_pending", pending)
            plain = judged(folder)
        assert [essence(v) for v in late] == [essence(v) for v in plain], (seed, late, plain)
        seen.update(v.answer + (" tampered" if seed % 2 else "") for v in late)
        seen["restarts"] += sum(len(v.recoveries) for v in late)
        seen["states"] += sum(v.followed.belief for v in plain if v.followed)
        seen["states kept"] += sum(v.followed.belief for v in late if v.followed)
    return seen


@pytest.mark.long
def test_overlapping_restarts_are_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small jobs with up to six failures, half of them tampered with."""
    seen = compare(range(24), tmp_path, monkeypatch)
    assert seen["accepted"] == 12, seen
    assert seen["rejected tampered"] > 5, seen


@pytest.mark.long
def test_many_overlapping_restarts_are_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with more logs."""
    seen = compare(range(100, 400), tmp_path, monkeypatch)
    assert seen["accepted"] == 150, seen
