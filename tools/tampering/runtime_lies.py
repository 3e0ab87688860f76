"""Edits of the event logs of the reference runtime: every event and every field, judged by all machines together.

An event is left out, doubled, or swapped with the next one of its process, with all events numbered anew; or one field of its
arguments, its state or its clock is changed: a number by one, a truth to its contrary, a text to another one of that field,
a list or mapping by an entry less, more or changed.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batch_jobs import batch
from changed_logs import Records, numbered, records_of, verdicts
from runtime_runs import example
from streamproof.conformance import InputError
from streamproof_models.scoped_topologies import NAMED
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.loop_variants import loop_rules
from streamproof_specs.flink.checkpoints import BINDING as CHECKPOINTS
from streamproof_specs.flink.failover import BINDING as FAILOVER
from streamproof_specs.flink.partitions import BINDING as PARTITIONS
from streamproof_specs.flink.regions import BINDING as REGIONS
from streamproof_specs.flink.slots import BINDING as SLOTS
from streamproof_specs.runtime.baton import BINDING as BATON
from streamproof_specs.runtime.credit import BINDING as CREDIT
from streamproof_specs.runtime.cyclic import BINDING as CYCLIC

MODEL = "runtime"
MACHINES: dict[str, Any] = {
    "baton": BATON,
    "credit": CREDIT,
    "cyclic": CYCLIC,
    "failover": FAILOVER,
    "regions": REGIONS,
    "partition_lifecycle": PARTITIONS,
    "checkpoints": CHECKPOINTS,
    "slot_pool": SLOTS,
}
NOT_CAUGHT: Mapping[str, str] = {}
"""Kinds of edits of which some copies are accepted, with the reason."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a log."""

    kind: str
    what: str
    records: Records


@dataclass(frozen=True, slots=True)
class Outcome:
    """The machines that do not accept an edit: rejected, or as a log that contradicts itself."""

    kind: str
    what: str
    rejected: frozenset[str]
    errors: frozenset[str]
    message: str

    @property
    def is_missed(self) -> bool:
        """Whether all machines accept the edit."""
        return not self.rejected and not self.errors

    verdict = "accepted"
    place = None
    expected = ()


def recorded(scratch: Path) -> list[Path]:
    """Small simulated runs that have every kind of event, one log each."""
    readings: Any = example("readings")
    readings.NORTH, readings.SOUTH = range(24), range(1_000, 1_012)
    doubling: Any = example("doubling")
    doubling.NUMBERS, doubling.ROUNDS = 7, 4
    jobs: dict[str, tuple[Job, dict[str, Any]]] = {
        "walk": (walks.walk(NAMED["nested"]), {"seed": 3, "level": "heavy"}),
        "sales": (example("sales").job(), {"seed": 60, "level": "severe", "eager": True, "timeout": 0.1}),
        "batch-20": (batch(20)[0], {"seed": 20, "level": "severe", "eager": True}),
        "batch-69": (batch(69)[0], {"seed": 69, "level": "severe", "timeout": 0.1}),
        "words": (example("word_count").job(), {"seed": 1, "buffers": 1, "timeout": 0.1}),
        "loop": (doubling.job(), {"seed": 2, "loops": loop_rules(None, "fair")}),
        "readings": (readings.job(), {"seed": 8, "level": "heavy", "checkpoint_interval": 50_000}),
    }
    found = []
    for name, (job, given) in jobs.items():
        found.append(scratch / f"{name}.ndjson")
        write(records_of(Simulation(job, **given).run(100_000)), found[-1])
    return found


def write(records: Records, file: Path) -> None:
    """Writes a log."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="ascii")


def edits(run: Path) -> Iterator[Edit]:
    """All edits of a log, event by event in a random order that is always the same."""
    records: Records = [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]
    draw = random.Random(0)
    pool = defaultdict(list)
    following: dict[int, int] = {}
    last: dict[tuple[str, str], int] = {}
    for at, record in enumerate(records):
        for part, name, value in fields(record):
            pool[_family(record), part, name].append(value)
        place = record["trace"], record["process"]
        if place in last:
            following[last[place]] = at
        last[place] = at
    for at in draw.sample(range(len(records)), len(records)):
        record, event = records[at], _family(records[at])
        what = f"line {at + 1}: {json.dumps(record)}"
        yield Edit(f"{event}: left out", what, numbered([*records[:at], *records[at + 1 :]]))
        yield Edit(f"{event}: twice", what, numbered([*records[: at + 1], *records[at:]]))
        after = following.get(at)
        if after is not None and any(records[after].get(n) != record.get(n) for n in ("event", "args", "state")):
            swapped = [*records]
            swapped[at], swapped[after] = records[after], record
            yield Edit(f"{event}: after the next event of the process", what, numbered(swapped))
        for part, name, value in fields(record):
            for kind, other in altered(draw, value, pool[event, part, name]):
                changed = {**record, part: {**record[part], name: other}}
                copy = [*records[:at], changed, *records[at + 1 :]]
                yield Edit(f"{event}.{name}: {kind}", f"{what} -> {other}", copy)


def _family(record: Mapping[str, Any]) -> str:
    """The name of an event; two processes have one of the same name."""
    name: str = record["event"]
    return f"{name} of slots" if record["trace"].endswith("/slots") and name == "registered" else name


def fields(record: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Part, name and value of each field of an event."""
    for part in ("args", "state"):
        yield from ((part, name, value) for name, value in record.get(part, {}).items())


def altered(draw: random.Random, value: Any, pool: list[Any]) -> Iterator[tuple[str, Any]]:
    """Other values of the kind, from the values that the field has elsewhere."""
    others = [v for v in pool if v != value]
    if isinstance(value, bool):
        yield "contrary", not value
    elif isinstance(value, int):
        yield "more", value + 1
        if value:
            yield "less", value - 1
    elif isinstance(value, str):
        if others:
            yield "another", draw.choice(others)
    elif isinstance(value, list):
        if value:
            gone = draw.randrange(len(value))
            yield "one less", [*value[:gone], *value[gone + 1 :]]
        more = [v for found in pool for v in found if v not in value]
        if more:
            yield "one more", [*value, draw.choice(more)]
    elif isinstance(value, dict):
        if value:
            name = draw.choice([*value])
            yield "one less", {k: v for k, v in value.items() if k != name}
            for _, other in altered(draw, value[name], [v for found in pool for v in found.values()]):
                yield "one changed", {**value, name: other}
        more = [item for found in pool for item in found.items() if item[0] not in value]
        if more:
            yield "one more", dict([*value.items(), draw.choice(more)])


def outcome(run: Path, edit: Edit) -> Outcome:
    """What all machines say about an edit."""
    rejected, errors, message = set(), set(), ""
    with tempfile.TemporaryDirectory() as scratch:
        for model, binding in MACHINES.items():
            if not binding.recognises(run):
                continue
            try:
                found = verdicts(edit.records, Path(scratch), binding, model)
            except InputError as error:
                errors.add(model)
                message = message or str(error)
                continue
            lie = next((v for v in found if v.answer == "rejected"), None)
            if lie is not None:
                rejected.add(model)
                message = message or lie.reason or ""
    return Outcome(edit.kind, edit.what, frozenset(rejected), frozenset(errors), message)


def table(outcomes: Iterable[Outcome], **_: Any) -> str:
    """Numbers of edits and of those that a machine rejects, or that make the log contradict itself, by kind; Markdown."""
    made, missed = Counter[str](), Counter[str]()
    by: dict[str, Counter[str]] = defaultdict(Counter)
    for o in outcomes:
        made[o.kind] += 1
        missed[o.kind] += o.is_missed
        by[o.kind].update(o.rejected)
        by[o.kind].update(["the log contradicts itself"] if o.errors and not o.rejected else [])
    rows = ["| lie | copies | not caught | caught by |", "|---|--:|--:|---|"]
    for kind in sorted(made):
        found = ", ".join(f"{name} {number}" for name, number in sorted(by[kind].items()))
        rows.append(f"| {kind} | {made[kind]} | {missed[kind] or ''} | {found} |")
    return "\n".join([*rows, f"\n{made.total():,} copies, {missed.total():,} of them not caught"])
