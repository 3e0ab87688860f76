"""A job whose records are of many sizes, most of them larger than a small buffer, and runs of it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from streamproof_runtime import Job
from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.jobs.streams import Stream
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.variants.all_variants import simulated

SIZE = 64
"""Bytes of a small buffer."""
INTERVAL = MILLISECOND // 10
"""Between two checkpoints."""


def spanning(seed: int, *, records: int = 14, loop: bool = True, blocking: bool = False) -> tuple[Job, Counter[Any]]:
    """The job, and what it collects of this number of records."""
    draw = random.Random(seed)
    made = Job("spanning")
    texts = [(i, f"x{i}" * draw.choice((1, 1, 20, 60, 200))) for i in range(records)]
    grown = [(i, text + "y" * (i % 5) * 20) for i, text in texts]
    stream = made.source("texts", texts, parallelism=2).key_by(lambda r: r[0])
    stream = stream.process("grow", lambda _, r: [(r[0], r[1] + "y" * (r[0] % 5) * 20)], parallelism=2)
    if blocking:
        stream = stream.blocking()
    if not loop:
        stream.rebalance().collect("all")
        return made, Counter(grown)

    def turns(inside: Stream) -> tuple[Stream, Stream]:
        turned = inside.process("turn", lambda _, r: [(*r[:2], (r[2] if len(r) > 2 else 0) + 1)], parallelism=2)
        return turned.filter(lambda r: r[2] < 3).rebalance(), turned.filter(lambda r: r[2] >= 3)

    stream.rebalance().iterate("Loop", turns).rebalance().collect("all")
    return made, Counter((*record, 3) for record in grown)


def spanned(
    seed: int, variant: str | None = None, *, job: dict[str, bool] | None = None, **more: Any
) -> tuple[Outcome, str]:
    """A run with small buffers and heavy faults, and what is wrong with it, if anything."""
    made, expected = spanning(seed, **(job or {}))
    settings = {"level": "heavy", "executors": 4, "slots": 3, "buffer_size": SIZE, **simulated(variant), **more}
    outcome = Simulation(made, seed=seed, **settings).run(200_000)
    if not outcome.finished:
        return outcome, outcome.reason
    right = not outcome.lost and Counter(outcome.results["all"] or ()) == expected
    return outcome, "" if right else "wrong result"


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pools": {"sender_buffers": 2, "buffers": 1},
    "stored": {"sender_buffers": 3, "timeout": 0.3, "job": {"blocking": True}},
    "aligned": {"sender_buffers": 2, "buffers": 1, "checkpoint_interval": INTERVAL},
    "unaligned": {
        "sender_buffers": 2,
        "buffers": 1,
        "checkpoint_interval": INTERVAL,
        "unaligned": True,
        "job": {"loop": False},
    },
}
"""Arguments of `spanned`."""
