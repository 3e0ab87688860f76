"""Processor time of a record in the runtime on processes, beside a plain asyncio pipe and, if it is installed, Bytewax.

A keyed sum, streaming and batch, with one TaskExecutor and with three, with event logs and without; the same sum by two
processes that send msgpack by an asyncio stream in pieces of 512 records, and by Bytewax (`pip install bytewax`, not a
dependency) in one process. Processor time is that of all processes, less that of a run with a few records. All settings take
turns; medians of the rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runtime_loopback import children

from streamproof_runtime.command import Processes

FEW = 10
SUM = """
from streamproof_runtime import Job

def job():
    made = Job("sums", mode="{mode}")
    pairs = made.source("numbers", range({records})).map(lambda n: (n % 100, n)).key_by(lambda r: r[0])
    pairs.reduce("sum", lambda a, b: (a[0], a[1] + b[1]), parallelism=2).collect_latest("sums")
    return made

def expected():
    sums = {{}}
    for n in range({records}):
        sums[n % 100] = sums.get(n % 100, 0) + n
    return {{"sums": sums}}
"""
PIPE = """
import asyncio, os, struct, sys
import msgpack

RECORDS = {records}

async def summed(reader, writer):
    sums = {{}}
    while head := await reader.read(4):
        head += await reader.readexactly(4 - len(head))
        (size,) = struct.unpack(">I", head)
        for key, value in msgpack.unpackb(await reader.readexactly(size)):
            sums[key] = sums.get(key, 0) + value
    assert sum(sums.values()) == RECORDS * (RECORDS - 1) // 2
    writer.close()

async def receiver():
    done = asyncio.Event()
    async def served(reader, writer):
        await summed(reader, writer)
        done.set()
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await done.wait()

async def sender(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for first in range(0, RECORDS, 512):
        data = msgpack.packb([(n % 100, n) for n in range(first, min(RECORDS, first + 512))])
        writer.write(struct.pack(">I", len(data)) + data)
        await writer.drain()
    writer.write_eof()
    await reader.read()

if len(sys.argv) > 1:
    asyncio.run(receiver())
else:
    import subprocess
    other = subprocess.Popen([sys.executable, __file__, "receive"], stdout=subprocess.PIPE)
    asyncio.run(sender(int(other.stdout.readline())))
    sys.exit(other.wait())
"""
BYTEWAX = """
import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSource, TestingSink, run_main

flow, out = Dataflow("sums"), []
pairs = op.map("pairs", op.input("numbers", flow, TestingSource(range({records}), 512)), lambda n: (str(n % 100), n))
sums = op.stateful_map("sum", pairs, lambda state, n: ((state or 0) + n, (state or 0) + n))
op.output("out", sums, TestingSink(out))
run_main(flow)
assert len(out) == {records}
"""


def job_seconds(records: int, mode: str, executors: int, traced: bool) -> float:
    """Processor time of a run on processes."""
    with tempfile.TemporaryDirectory() as folder:
        job, logs = Path(folder, "job.py"), Path(folder, "logs")
        logs.mkdir()
        job.write_text(SUM.format(records=records, mode=mode), encoding="utf-8")
        before = children()
        slots = 2 if executors > 1 else 8
        run = Processes(job, executors=executors, slots=slots, variant=None, kills=(), restarts=0, seconds=600.0)
        found = run.run(logs if traced else None, lambda _: None)
    if found["wrong"]:
        raise SystemExit(found["wrong"])
    return children() - before


def script_seconds(records: int, text: str) -> float:
    """Processor time of a program."""
    with tempfile.TemporaryDirectory() as folder:
        script, before = Path(folder, "script.py"), children()
        script.write_text(text.format(records=records), encoding="utf-8")
        subprocess.run([sys.executable, str(script)], check=True)
        return children() - before


def settings() -> dict[str, Callable[[int], float]]:
    """What is measured, by name: the processor time of a run with that many records."""
    made: dict[str, Callable[[int], float]] = {"plain asyncio pipe": partial(script_seconds, text=PIPE)}
    if importlib.util.find_spec("bytewax"):
        made["Bytewax"] = partial(script_seconds, text=BYTEWAX)
    for mode, name in (("streaming", "keyed sum"), ("batch", "batch")):
        for executors in (1, 3):
            for traced in (False, True):
                title = f"{name}, {executors} TaskExecutor{'s' * (executors > 1)}{', with trace' * traced}"
                made[title] = partial(job_seconds, mode=mode, executors=executors, traced=traced)
    return made


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    found = defaultdict[str, list[float]](list)
    for _ in range(given.rounds):
        for name, run in settings().items():
            found[name].append((run(given.records) - run(FEW)) / (given.records - FEW) * 1e6)
    pipe = statistics.median(found["plain asyncio pipe"])
    print("| keyed sum | processor time of a record | ratio to the pipe |\n| --- | --- | --- |")
    for name, times in found.items():
        median = statistics.median(times)
        print(f"| {name} | {median:.2f} µs | {median / pipe:.1f} |")


if __name__ == "__main__":
    main()
