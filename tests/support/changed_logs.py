"""Changed copies of the runtime's logs, and the comparison of a machine's verdict on them with a second judge's."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from streamproof.conformance import InputError, RunVerdict, judge
from streamproof_runtime.event_log import lines
from streamproof_runtime.simulator.simulation import Outcome

Records = list[dict[str, Any]]


def numbered(records: Iterable[dict[str, Any]]) -> Records:
    """A copy whose events are numbered in their order, by trace and process."""
    numbers = Counter[tuple[str, str]]()
    found = []
    for record in records:
        place = record["trace"], record["process"]
        found.append({**record, "seq": numbers[place]})
        numbers[place] += 1
    return found


def records_of(outcome: Outcome) -> Records:
    """The events of a run."""
    return [json.loads(line) for line in lines(outcome.entries)]


def verdicts(log: Outcome | Iterable[dict[str, Any]], folder: Path, binding: Any, model: str) -> list[RunVerdict]:
    """The verdicts of a machine on a run or a log. Raises `InputError` for one that is no log."""
    file = folder / "run.ndjson"
    texts = lines(log.entries) if isinstance(log, Outcome) else (json.dumps(record) + "\n" for record in log)
    file.write_text("".join(texts), encoding="ascii")
    return judge(binding.plan(file, None), model)


def is_accepted(records: Iterable[dict[str, Any]], folder: Path, binding: Any, model: str) -> bool:
    """Whether a machine accepts a log; numbered anew. One that is no log is not accepted."""
    try:
        return {v.answer for v in verdicts(numbered(records), folder, binding, model)} <= {"accepted"}
    except InputError:
        return False


def rearranged(draw: random.Random, records: Records, at: int, distances: Callable[[], int]) -> Records | None:
    """A copy with an event left out, doubled or moved; None, in one of four cases, if it is its arguments' turn."""
    record, rest = records[at], [*records[:at], *records[at + 1 :]]
    match draw.randrange(4):
        case 0:
            return rest
        case 1:
            return [*records[:at], record, *records[at:]]
        case 2:
            to = min(len(rest), max(1, at + distances()))
            return [*rest[:to], record, *rest[to:]]
    return None


def with_args(records: Records, at: int, args: dict[str, Any]) -> Records:
    """A copy in which an event has other arguments."""
    return [*records[:at], {**records[at], "args": args}, *records[at + 1 :]]


def compared(
    records: Records,
    changed: Callable[[Records], Records],
    changes: int,
    judges: tuple[Callable[[Records], bool], Callable[[Records], bool]],
    where: Any,
) -> tuple[int, int]:
    """Both judges accept a run, and agree on changed copies of it; how many copies were accepted and rejected."""
    machine, second = judges
    assert machine(records), where
    assert second(records), where
    good = 0
    for number in range(changes):
        copy = changed(records)
        answer = machine(copy)
        assert answer is second(copy), (where, number, answer)
        good += answer
    return good, changes - good


def total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sums of copies that were accepted and rejected, which are printed."""
    accepted, rejected = map(sum, zip(*counts, strict=True))
    print(f"copies: {accepted + rejected:,}, accepted {accepted:,}, rejected {rejected:,}")
    return accepted, rejected
