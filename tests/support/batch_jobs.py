"""Random batch jobs for the runtime, and verdicts on their runs."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import changed_logs
from runtime_runs import example
from streamproof.conformance import RunVerdict
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobs.api import BLOCKING, CACHING, MEMORY_ONLY, Job, Stream
from streamproof_runtime.jobs.functions import Process
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants import all_variants
from streamproof_specs.failover.runtime import BINDING


def adding(number: int) -> Process:
    """A function that adds a number."""
    return lambda _, record: (record + number,)


def batch(seed: int) -> tuple[Job, dict[str, Counter[int]]]:
    """A random job of operators that add their number, with every kind of exchange, and what its sinks receive."""
    draw = random.Random(seed)
    job = Job("batch")
    streams: list[tuple[Stream, Counter[int]]] = []
    for number in range(draw.randint(1, 2)):
        items = [draw.randrange(5) for _ in range(draw.randrange(6))]
        streams.append((job.source(f"s{number}", items, draw.randint(1, 2)), Counter(items)))
    for number in range(draw.randint(1, 4)):
        stream, records = draw.choice(streams)
        if draw.random() < 0.3:
            other, more = draw.choice([s for s in streams if s[0].job is job])
            if other is not stream:
                stream, records = stream.union(other), records + more
        stream = draw.choice((stream, stream.rebalance(), stream.key_by(lambda r: r)))
        stream = stream.blocking() if draw.random() < 0.6 else stream
        add = number + 1
        made = stream.process(f"p{number}", adding(add), draw.randint(1, 2))
        streams.append((made, Counter({r + add: n for r, n in records.items()})))
    expected = {}
    for number, (stream, records) in enumerate(streams):
        if number >= 2 or len(streams) <= 2:
            (stream.blocking() if draw.random() < 0.3 else stream).collect(f"sink{number}")
            expected[f"sink{number}"] = records
    return job, expected


def cached(seed: int, kinds: Sequence[str] = (CACHING, CACHING, BLOCKING)) -> tuple[Job, dict[str, Counter[int]]]:
    """As `batch`; what is stored is stored in ways drawn from these, by default kept in most cases."""
    draw = random.Random(seed)
    job, expected = batch(seed)
    for edge in job.edges:
        if edge.is_stored:
            edge.exchange_type = draw.choice(kinds)
    return job, expected


def of_subtasks(seed: int) -> tuple[Job, dict[str, Counter[int]]]:
    """A random job of wider operators, some of whose exchanges rescale, with regions of subtasks."""
    draw = random.Random(seed)
    job, _ = batch(seed)
    made = Job("wide", regions_of_subtasks=True)
    streams: dict[str, tuple[Stream, Counter[int]]] = {}
    expected = {}

    def exchanged(stream: Stream, stored: bool) -> Stream:
        stream = draw.choice((stream, *[stream.rescale()] * 2, stream.rebalance(), stream.key_by(lambda r: r)))
        return stream.blocking() if stored or draw.random() < 0.3 else stream

    for name, operator in job.operators.items():
        first = next((edge for edge in job.edges if edge.target == name), None)
        if first is None:
            items = [*(operator.items or ())]
            streams[name] = made.source(name, items, draw.randint(1, 4)), Counter(items)
            continue
        stream, records = streams[first.source]
        stream = exchanged(stream, first.is_stored)
        if operator.is_sink:
            stream.collect(name)
            expected[name] = records
        else:
            add = int(name[1:]) + 1
            width = draw.choice((1, 2, 2, 3, 4))
            streams[name] = stream.process(name, adding(add), width), Counter({n + add: k for n, k in records.items()})
    return made, expected


def chain(length: int, exchange_type: str = MEMORY_ONLY) -> Job:
    """Numbers to which one is added again and again, stored in between."""
    job = Job("chain")
    stream = job.source("numbers", range(10), 2).exchanged(exchange_type)
    for at in range(length):
        stream = stream.process(f"p{at}", adding(1), 2).exchanged(exchange_type)
    stream.collect("all")
    return job


def narrow() -> Job:
    """A job of two sources, of which one is soon done, a region that reads both, and one that needs one slot."""
    made = Job("narrow", mode="batch")
    few = made.source("few", range(4), parallelism=2).map(lambda n: n + 1)
    many = made.source("many", range(4, 40)).map(lambda n: n + 1)
    both = few.union(many).key_by(lambda n: n).process("both", lambda c, n: [n])
    both.key_by(lambda n: 0).process("all", lambda c, n: [n]).collect("sorted")
    return made


def grouped(seed: int) -> tuple[Job, dict[str, Counter[int]]]:
    """As `batch`, with random slot sharing groups and co-locations; some are refused."""
    draw = random.Random(seed)
    job, expected = batch(seed)
    for operator in job.operators.values():
        if draw.random() < 0.5:
            operator.slot_sharing_group = draw.choice(("red", "blue", "green"))
    found = job.slot_sharing_groups()
    for edge in job.edges:
        one, other = job.operators[edge.source], job.operators[edge.target]
        same = found[one.name] == found[other.name] and one.parallelism == other.parallelism
        if same and not edge.is_stored and not one.co_location and draw.random() < 0.5:
            one.co_location = other.co_location = f"with_{one.name}"
    return job, expected


def verdicts(outcome: Outcome, folder: Path, binding: Any = BINDING, model: str = "failover") -> list[RunVerdict]:
    """The verdicts on the failover of a run."""
    return changed_logs.verdicts(outcome, folder, binding, model)


def stored_events(seed: int, level: str) -> changed_logs.Records:
    """The events of a run without those of subtasks; none if the job stores nothing."""
    job = example("sales").job() if seed % 2 else batch(seed)[0]
    outcome = Simulation(job, seed=seed, level=level, eager=seed % 3 == 0).run(100_000)
    records = [json.loads(line) for line in lines(outcome.entries)]
    stores = any(kind != "PIPELINED" for _, _, kind in records[0]["args"]["exchanges"])
    return [r for r in records if "#" not in r["trace"]] if stores else []


def narrowed(seed: int, variant: str | None = None, level: str = "severe") -> Outcome:
    """A run of it in which idle TaskExecutors are released."""
    about = {**all_variants.simulated(variant), "idle": 5 * MILLISECOND}
    simulation = Simulation(narrow(), seed=seed, level=level, executors=4, slots=1, **about)
    outcome = simulation.run(4_000 if variant else 100_000)
    if variant is None:
        assert outcome.finished, (seed, outcome.reason)
        assert sorted(outcome.results["sorted"]) == [*range(1, 41)], seed
    return outcome


def about_partitions(outcome: Outcome) -> changed_logs.Records:
    """Its events without those of subtasks and slots."""
    return [r for r in map(json.loads, lines(outcome.entries)) if "#" not in r["trace"] and "/" not in r["trace"]]


def unending() -> Job:
    """Numbers without end, and a sum that is stored when they have been stopped."""
    made = Job("unending")
    numbers = made.unbounded_source("numbers", lambda n: n, parallelism=2)
    doubled = numbers.rebalance().process("double", adding(0), parallelism=2)
    doubled.collect("all")
    doubled.blocking().reduce("sum", lambda a, b: a + b).collect("sums")
    return made


def is_prefix(outcome: Outcome) -> bool:
    """Whether its results are those of the first records of each source."""
    records = sorted(outcome.results["all"] or ())
    even, odd = ([n for n in records if n % 2 == parity] for parity in (0, 1))
    sums = outcome.results["sums"] or [0]
    return even == [*range(0, 2 * len(even), 2)] and odd == [*range(1, 2 * len(odd), 2)] and sums[-1] == sum(records)
