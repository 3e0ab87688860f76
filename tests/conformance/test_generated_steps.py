"""Verdicts with generated steps and with those of the interpreter alone are the same; a log is read once for all machines."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runtime_runs import example
from streamproof.conformance import InputError, events, moves, validate_paths
from streamproof.explicit import single_steps
from streamproof_runtime.event_log import lines
from streamproof_runtime.simulator.simulation import Simulation


def answers(log: Path) -> tuple[list[dict[str, Any]], str]:
    """The verdicts of all machines on a log, or why it is none."""
    try:
        return [verdict.record() for verdict in validate_paths([log], model="all")], ""
    except InputError as error:
        return [], error.one_line


def compare(jobs: tuple[str, ...], seeds: range, copies: int, folder: Path, patch: pytest.MonkeyPatch) -> Counter[str]:
    """Runs, and copies of them with an event left out, doubled or moved: the same verdicts either way; how many of each."""
    log, found = folder / "run.ndjson", Counter[str]()
    for seed in seeds:
        draw = random.Random(seed)
        outcome = Simulation(example(jobs[seed % len(jobs)]).job(), seed=seed, level="severe").run(100_000)
        records = [json.loads(line) for line in lines(outcome.entries)]
        for number in range(copies):
            changed = [dict(r) for r in records]
            if number:
                at = draw.randrange(1, len(records))
                event = changed.pop(at)
                for place in (draw.randrange(max(1, at - 9), at + 9),) * draw.randrange(3):
                    changed.insert(place, dict(event))
            numbers = Counter[tuple[str, str]]()
            for r in changed:
                r["seq"] = numbers[r["trace"], r["process"]]
                numbers[r["trace"], r["process"]] += 1
            log.write_text("".join(json.dumps(r) + "\n" for r in changed), encoding="ascii")
            patch.setattr(single_steps, "OFTEN", 0)
            generated = answers(log)
            patch.setattr(single_steps, "_GENERATED", {})
            patch.setattr(single_steps, "OFTEN", 10**9)
            patch.setattr(moves, "PLAIN", True)
            assert answers(log) == generated, (seed, number)
            patch.undo()
            found.update([v["verdict"] for v in generated[0]] or ["error"])
    return found


def test_verdicts_do_not_depend_on_generated_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All machines, on runs and on changed copies."""
    found = compare(("word_count",), range(1), 6, tmp_path, monkeypatch)
    assert min(found["accepted"], found["rejected"] + found["error"]) > 0


@pytest.mark.long
def test_verdicts_do_not_depend_on_generated_steps_in_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more jobs, with loops among them."""
    jobs = ("word_count", "components", "sales", "shortest_paths", "collatz", "readings")
    found = compare(jobs, range(100, 154), 8, tmp_path, monkeypatch)
    assert min(found["accepted"], found["rejected"]) > 200


def test_a_log_is_read_once_for_several_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again by the next command, which may find other events in it."""
    outcome = Simulation(example("word_count").job(), seed=1).run()
    log, read = tmp_path / "run.ndjson", []
    log.write_text("".join(lines(outcome.entries)), encoding="ascii")
    monkeypatch.setattr(events, "_iterate", lambda *given, of=events._iterate: read.append(given) or of(*given))
    answer = {v.answer for v in validate_paths([log], model="all")}
    assert (answer, len(read)) == ({"accepted"}, 1)
    kept = log.read_text(encoding="ascii").splitlines(keepends=True)
    log.write_text("".join(kept[: len(kept) // 2] + kept[len(kept) // 2 + 1 :]), encoding="ascii")
    assert answers(log) != (answer, "")
    assert len(read) == 2
