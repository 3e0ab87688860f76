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
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from batch_jobs import batch
from changed_logs import Records, numbered, records_of, verdicts
from runtime_runs import example
from spanning_jobs import SIZE, spanning
from streamproof.conformance import InputError
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.jobs import walks
from streamproof_runtime.simulator.faults import Fault
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.loop_variants import loop_rules
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.checkpoints.runtime.binding import BINDING as CHECKPOINTS
from streamproof_specs.checkpoints.runtime.loop_logs import BINDING as LOOP_LOGS
from streamproof_specs.credit.runtime import BINDING as CREDIT
from streamproof_specs.credit.runtime_pools import BINDING as POOLS
from streamproof_specs.credit.runtime_spans import BINDING as SPANS
from streamproof_specs.cyclic.runtime.binding import BINDING as CYCLIC
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.partitions.runtime.binding import BINDING as PARTITIONS
from streamproof_specs.regions.runtime import BINDING as REGIONS
from streamproof_specs.slots.runtime.binding import BINDING as SLOTS

MODEL = "runtime"
MACHINES: dict[str, Any] = {
    "baton": BATON,
    "credit": CREDIT,
    "record_spans": SPANS,
    "buffer_shares": POOLS,
    "cyclic": CYCLIC,
    "failover": FAILOVER,
    "regions": REGIONS,
    "partition_lifecycle": PARTITIONS,
    "checkpoints": CHECKPOINTS,
    "loop_checkpoint_counts": LOOP_LOGS,
    "slot_pool": SLOTS,
}
LAST = "the log may end before it"
NOT_CAUGHT = {
    "*: after the next event of the process": "events that do not depend on each other have no order",
    **dict.fromkeys(("channel_released: left out", "credits_received: left out"), LAST),
    "terminated: left out": "its END has not been taken",
    **dict.fromkeys(("record_*.content*", "buffers_flushed.contents*"), "nobody has received the buffer"),
    **dict.fromkeys(
        ("backlog_received: left out", "requirements_received: left out", "report_received: left out"), LAST
    ),
    "checkpoint_acknowledged: left out": "the checkpoint is never completed",
    "barrier_received.checkpoint: *": "a barrier is not compared with the snapshot that it leads to",
    **dict.fromkeys(("region_canceled: left out", "region_canceled: twice"), "there is nothing to cancel"),
    "job_started.exchanges: one less": "the regions are the same without it",
    "job_started.checkpoint_interval: *": "no machine has a clock",
    **dict.fromkeys(
        ("executor_lost: twice", "master_lost: twice", "master_lost.connection: *"),
        "of a TaskExecutor without partitions",
    ),
    **dict.fromkeys(
        ("request_answered: left out", "executor_registered: left out", "started: left out"),
        LAST,
    ),
    **dict.fromkeys(("executor_lost: left out", "master_lost: left out"), "the next registration says the same"),
    **dict.fromkeys(("gate_opened: left out", "gate_opened.*"), "nothing has come through this gate yet"),
    **dict.fromkeys(("release_received: left out", "slot_available: left out", "partition_opened: left out"), LAST),
    **dict.fromkeys(("tasks_ended.slots: one less", "requirements_cleared: left out"), LAST),
    "requirements_cleared: twice": "it changes nothing",
    **dict.fromkeys(("region_deployed: left out", "region_running: left out"), "a region can fail before"),
    **dict.fromkeys(("started: twice", "deployed: *", "deployed.graph: *"), "the attempt has failed before it began"),
    **dict.fromkeys(("partitions_abandoned*", "partitions_canceled*"), "of a TaskExecutor without the partitions"),
    "loop_opened.*": "bounds that the loop does not reach",
    "pool_opened.largest: *": "a bound that no share reaches",
    "buffers_flushed.why: another": "no machine has the timer",
    "backlog_announced: twice": "a message that nobody has received yet",
    "slots_reported: twice": "a message that nobody has received yet",
    **dict.fromkeys(("slots_listed: left out", "slots_listed.executor: another"), "an empty list, or one not received"),
    "slots_listed: twice": "a message that nobody has received yet",
    "deployed.placement: *": "where a subtask runs is in no machine, but for its slot and what it stores",
    "snapshot_taken: left out": "of a checkpoint that is aborted",
    "checkpoint_aborted.reason: another": "the reason is in no machine",
    "failed*": "the reason is in no machine; `region_failed` has the consequences",
    "registered.slots: *": "how many slots a TaskExecutor has is followed in the trace of slots",
    **dict.fromkeys(("registered: *", "registered.*"), "TaskExecutors are followed only if they store partitions"),
    **dict.fromkeys(
        ("registered of slots: left out", "registered of slots: twice"),
        "the slots are known from another registration, or never used",
    ),
    "registered of slots.*": "of a single TaskExecutor: a slot that is never allocated is not seen",
    "registering*": "TaskExecutors are followed only if they store partitions",
    "partitions_created*": "of a TaskExecutor that stores none of the partitions",
    "tasks_deployed.slots: one less": "a region uses its slots one by one",
}
"""Kinds of edits of which some copies are accepted, with the reason."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a log."""

    kind: str
    what: str
    records: Records
    is_of_slots: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first machine that does not accept an edit, empty if all do, and its answer."""

    kind: str
    what: str
    by: str
    verdict: str
    message: str

    @property
    def is_missed(self) -> bool:
        """Whether all machines accept the edit."""
        return not self.by

    place = None
    expected = ()


USUAL = ("walk", "sales", "batch-20", "batch-69", "words", "loop", "readings", "looped")
"""Small runs, which have together nearly every kind of event."""
JOBS = (*USUAL, "spans")
"""Also one with small buffers: records span them, and senders have pools."""
LOOPED = "a L:b L:c z; a>b b>c c>z; c~b"
LOSS = Fault("disconnect", 700_000, ("tm-1", "jobmaster"))
"""By which the run goes on from a checkpoint."""


def recorded(folder: Path, names: Iterable[str] = JOBS) -> list[Path]:
    """Logs of some of the runs, simulated."""
    return [write(records_of(_simulation(name).run(100_000)), folder / f"{name}.ndjson") for name in names]


def _simulation(name: str) -> Simulation:
    if name.startswith("batch"):
        seed = int(name.removeprefix("batch-"))
        return Simulation(batch(seed)[0], seed=seed, level="severe", eager=seed == 20, timeout=0.1)
    if name == "walk":
        return Simulation(walks.walk(NAMED["nested"]), seed=3, level="heavy")
    if name == "sales":
        return Simulation(example("sales").job(), seed=60, level="severe", eager=True, timeout=0.1)
    if name == "words":
        return Simulation(example("word_count").job(), seed=1, buffers=1, timeout=0.1)
    if name == "loop":
        doubling: Any = example("doubling")
        doubling.NUMBERS, doubling.ROUNDS = 4, 3
        return Simulation(doubling.job(), seed=2, loops=loop_rules(None, "fair"))
    if name == "spans":
        job = spanning(0, records=5, loop=False)[0]
        return Simulation(job, seed=1, buffers=1, buffer_size=SIZE, sender_buffers=3)
    if name == "looped":
        job = walks.walk(LOOPED, records=6, steps=12)
        return Simulation(job, seed=21, faults_given=[LOSS], checkpoint_interval=50_000)
    readings: Any = example("readings")
    readings.NORTH, readings.SOUTH = range(24), range(1_000, 1_012)
    return Simulation(readings.job(), seed=8, level="heavy", checkpoint_interval=50_000)


def write(records: Records, file: Path) -> Path:
    """Writes a log; its file."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="ascii")
    return file


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
        what, of_slots = f"line {at + 1}: {json.dumps(record)}", record["trace"].endswith("/slots")

        def edit(kind: str, copy: Records, change: str = "", what: str = what, of_slots: bool = of_slots) -> Edit:
            return Edit(kind, f"{what}{change}", copy, of_slots)

        yield edit(f"{event}: left out", numbered([*records[:at], *records[at + 1 :]]))
        yield edit(f"{event}: twice", numbered([*records[: at + 1], *records[at:]]))
        after = following.get(at)
        if after is not None and any(records[after].get(n) != record.get(n) for n in ("event", "args", "state")):
            swapped = [*records]
            swapped[at], swapped[after] = records[after], record
            yield edit(f"{event}: after the next event of the process", numbered(swapped))
        for part, name, value in fields(record):
            for kind, other in altered(draw, value, pool[event, part, name]):
                changed = {**record, part: {**record[part], name: other}}
                copy = [*records[:at], changed, *records[at + 1 :]]
                yield edit(f"{event}.{name}: {kind}", copy, f" -> {other}")


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


@lru_cache(maxsize=64)
def machines(run: Path) -> tuple[str, ...]:
    """Those that follow a log, and accept it."""
    records: Records = [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]
    found = []
    for model in MACHINES:
        by, answer, message = answer_of(records, [model])
        if answer in ("rejected", "error"):
            raise ValueError(f"{run}: {by} does not accept the log: {message}")
        found += [model] if answer == "accepted" else []
    return tuple(found)


def answer_of(records: Records, models: Iterable[str]) -> tuple[str, str, str]:
    """The first of some machines that does not accept a log, its answer and message."""
    with tempfile.TemporaryDirectory() as scratch:
        for model in models:
            try:
                found = verdicts(records, Path(scratch), MACHINES[model], model)
            except InputError as error:
                return model, "error", str(error)
            for verdict in found:
                if verdict.answer != "accepted":
                    return model, verdict.answer, verdict.reason or ""
    return "", "accepted", ""


def outcome(run: Path, edit: Edit) -> Outcome:
    """What the machines say about an edit; those of slots, or all the others: neither reads the events of the other."""
    models = [m for m in machines(run) if (m == "slot_pool") == edit.is_of_slots]
    return Outcome(edit.kind, edit.what, *answer_of(edit.records, models))


def reason(kind: str) -> str:
    """Why a kind of edit may be accepted; empty if it may not."""
    return next((why for pattern, why in NOT_CAUGHT.items() if fnmatchcase(kind, pattern)), "")


def table(outcomes: Iterable[Outcome], **_: Any) -> str:
    """The kinds of edits that some copies of were accepted, and numbers of all by the first machine that caught them."""
    found = [*outcomes]
    made, missed = Counter(o.kind for o in found), Counter(o.kind for o in found if o.is_missed)
    rows = ["| lie | copies | not caught | why |", "|---|--:|--:|---|"]
    rows += [f"| {kind} | {made[kind]} | {missed[kind]} | {reason(kind)} |" for kind in sorted(missed)]
    by = Counter(f"{o.by} {o.verdict}" for o in found if not o.is_missed)
    caught = ", ".join(f"{name} {number:,}" for name, number in by.most_common())
    kinds = f"{len(found):,} copies of {len(made):,} kinds"
    return "\n".join([*rows, "", f"{kinds}, {missed.total():,} of them not caught; caught first by: {caught}"])
