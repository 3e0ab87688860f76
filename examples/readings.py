"""Sums of sensor readings, a streaming job of one pipelined region: with checkpoints it goes on after a failure.

    streamproof run examples/readings.py --simulate --seed 8 --faults heavy --checkpoint-interval 0.1

Each reading counts once, whatever fails: a reading that were lost, or counted twice, would change a sum.
"""

from __future__ import annotations

from streamproof_runtime import Job

NORTH, SOUTH = range(400), range(10_000, 10_200)
SENSORS = 7


def job() -> Job:
    """Two sources, their readings by sensor, sums and numbers of readings, and a report of both."""
    made = Job("readings")
    north = made.source("north", NORTH, parallelism=2)
    readings = north.union(made.source("south", SOUTH))
    by_sensor = readings.map(lambda n: (n % SENSORS, n)).key_by(lambda pair: pair[0])

    def total(context, pair):
        context.state["sum"] = context.state.get("sum", 0) + pair[1]
        return ((pair[0], context.state["sum"]),)

    def number(context, pair):
        context.state["number"] = context.state.get("number", 0) + 1
        return ((pair[0], context.state["number"]),)

    sums = by_sensor.process("total", total, parallelism=2)
    sums.collect_latest("sums")
    numbers = by_sensor.process("number", number)
    numbers.collect_latest("numbers")
    return made


def expected() -> dict[str, object]:
    """What comes of adding up all readings."""
    found: dict[int, list[int]] = {}
    for n in (*NORTH, *SOUTH):
        found.setdefault(n % SENSORS, []).append(n)
    return {"sums": {k: sum(v) for k, v in found.items()}, "numbers": {k: len(v) for k, v in found.items()}}
