"""Collatz numbers by a loop in a loop: the inner one halves even numbers, the outer one takes odd ones to 3 n + 1."""

from __future__ import annotations

from streamproof_runtime import Job, Stream

NUMBERS = [3, 6, 7, 9, 12]


def job() -> Job:
    """For each number the steps until 1; a record is the number, where it is now, and the steps so far."""
    made = Job("collatz")

    def halving(numbers: Stream) -> tuple[Stream, Stream]:
        halved = numbers.process("halve", lambda _, r: ((r[0], r[1] // 2, r[2] + 1) if r[1] % 2 == 0 else r,))
        return halved.filter(lambda r: r[1] % 2 == 0), halved.filter(lambda r: r[1] % 2)

    def tripling(numbers: Stream) -> tuple[Stream, Stream]:
        odd = numbers.iterate("Inner", halving).process("odd", lambda _, r: (r,))
        back = odd.filter(lambda r: r[1] > 1).map(lambda r: (r[0], 3 * r[1] + 1, r[2] + 1))
        return back, odd.filter(lambda r: r[1] == 1)

    numbers = made.source("numbers", [(n, n, 0) for n in NUMBERS])
    numbers.iterate("Outer", tripling).map(lambda r: (r[0], r[2])).collect_latest("steps")
    return made


def expected() -> dict[str, object]:
    """The steps, counted directly."""

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    return {"steps": {n: steps(n) for n in NUMBERS}}
