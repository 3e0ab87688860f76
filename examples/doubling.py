"""A loop that amplifies: each round makes two records of one, until they have been around often enough."""

from __future__ import annotations

from streamproof_runtime import Job, Stream

NUMBERS, ROUNDS = 20, 4


def job() -> Job:
    """How many records each number has become."""
    made = Job("doubling")

    def doubling(records: Stream) -> tuple[Stream, Stream]:
        doubled = records.process("double", lambda _, r: ((r[0], r[1] + 1),) * 2)
        return doubled.filter(lambda r: r[1] < ROUNDS), doubled.filter(lambda r: r[1] == ROUNDS)

    numbers = made.source("numbers", [(n, 0) for n in range(NUMBERS)])
    doubles = numbers.iterate("Loop", doubling).map(lambda r: (r[0], 1)).key_by(lambda r: r[0])
    doubles.reduce("count", lambda a, b: (a[0], a[1] + b[1])).collect_latest("counts")
    return made


def expected() -> dict[str, object]:
    """As many as doubling makes."""
    return {"counts": dict.fromkeys(range(NUMBERS), 2**ROUNDS)}
