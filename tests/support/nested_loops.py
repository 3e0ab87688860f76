"""A job with several levels of loops, and loops one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from streamproof_runtime import Connected, Job, Stream


def levels() -> tuple[Job, dict[str, Counter[Any]]]:
    """Three nested loops, two loops one after the other in the outermost, a loop with another type of feedback behind it, and
    what the sinks receive. A record counts down in each loop: (name, rounds left of L, of M, of N, of O)."""
    job = Job("levels")

    def counting(at: int, *inner: Callable[[Stream], Stream]) -> Callable[[Stream], tuple[Stream, Stream]]:
        def build(stream: Stream) -> tuple[Stream, Stream]:
            for add in inner:
                stream = add(stream)
            name = f"count_{at}"
            down = stream.rebalance().process(
                name, lambda _, r: [(*r[:at], r[at] - 1, *r[at + 1 :])], parallelism=1 + (at == 1)
            )
            return down.filter(lambda r: r[at] > 0), down.filter(lambda r: r[at] <= 0)

        return build

    def reset(at: int, value: int) -> Callable[[Stream], Stream]:
        return lambda stream: stream.map(lambda r: (*r[:at], value, *r[at + 1 :]))

    def innermost(stream: Stream) -> Stream:
        return reset(3, 2)(stream).iterate("N", counting(3))

    def middle(stream: Stream) -> Stream:
        return reset(2, 2)(stream).iterate("M", counting(2, innermost))

    def second(stream: Stream) -> Stream:
        return reset(4, 3)(stream).iterate("O", counting(4))

    def summed(connected: Connected) -> tuple[Stream, Stream]:
        both = connected.process(
            "sum", lambda _, r: [("new", r[0], len(r))], lambda _, text: [("back", text, len(text))], parallelism=2
        )
        return both.filter(lambda r: r[0] == "new").map(lambda r: f"{r[1]}!"), both.map(lambda r: (r[1], r[2]))

    records = [(f"r{n}", 1 + n % 3, 0, 0, 0) for n in range(5)]
    out = job.source("records", records, parallelism=2).iterate("L", counting(1, middle, second))
    out.collect("counted")
    out.iterate_with_feedback("P", summed).collect("summed")
    return job, {
        "counted": Counter((name, 0, 0, 0, 0) for name, *_ in records),
        "summed": Counter([*((name, 5) for name, *_ in records), *((f"{name}!", 3) for name, *_ in records)]),
    }
