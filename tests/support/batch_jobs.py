"""Random batch jobs for the runtime, and verdicts on their runs."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import changed_logs
from streamproof.conformance import RunVerdict
from streamproof_runtime.jobs.api import BLOCKING, CACHING, Job, Stream
from streamproof_runtime.jobs.functions import Process
from streamproof_runtime.simulator.simulation import Outcome
from streamproof_specs.flink.failover import BINDING


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


def cached(seed: int) -> tuple[Job, dict[str, Counter[int]]]:
    """As `batch`; most of what is stored is kept by caching exchanges."""
    draw = random.Random(seed)
    job, expected = batch(seed)
    for edge in job.edges:
        if edge.is_stored:
            edge.exchange_type = draw.choice((CACHING, CACHING, BLOCKING))
    return job, expected


def verdicts(outcome: Outcome, folder: Path, binding: Any = BINDING, model: str = "failover") -> list[RunVerdict]:
    """The verdicts on the failover of a run."""
    return changed_logs.verdicts(outcome, folder, binding, model)
