"""Prints the table of lies: for each machine and kind of edit, how many tampered copies validation rejects, and where.

    python tools/lies.py                           every machine, a few copies of each kind of the runs in tests/data
    python tools/lies.py --machine regions RUN...  all copies of some runs; RUN is a folder of logs or traces
    python tools/lies.py --machine runtime         event logs of the reference runtime, judged by all machines together
    ... --list                                     also every copy that was not rejected at its line

A copy has one edit. Caught at the line: the edited line is rejected, or, if a line was removed, one that depends on it.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS / "support"))

from tampering import (  # noqa: E402
    checkpoint_lies,
    credit_lies,
    failover_lies,
    partition_lies,
    region_lies,
    runtime_lies,
    slot_lies,
)
from tampering.edits import table  # noqa: E402

DATA = TESTS / "data" / "flink"
LIES = (failover_lies, slot_lies, region_lies, partition_lies, checkpoint_lies, credit_lies, runtime_lies)
MACHINES: dict[str, ModuleType] = {m.MODEL: m for m in LIES}


def outcomes(
    machine: ModuleType, folder: Path, *, every: int = 1, most: int | None = None, kind: str = ""
) -> Iterator[Any]:
    """The verdicts on every n-th edit of each kind of a run, `most` of each at most."""
    seen, made = Counter[str](), Counter[str]()
    for edit in machine.edits(folder):
        seen[edit.kind] += 1
        if kind in edit.kind and (seen[edit.kind] - 1) % every == 0 and (most is None or made[edit.kind] < most):
            made[edit.kind] += 1
            yield machine.outcome(folder, edit)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument(
        "--machine", choices=MACHINES, action="append", help="machine whose lies are made; default: all"
    )
    parser.add_argument("--list", action="store_true", help="print the copies that were not rejected at their line")
    parser.add_argument("--kind", default="", help="only kinds of edits with this text in their name")
    parser.add_argument("--every", type=int, default=1, help="only every n-th edit of a kind in a run")
    parser.add_argument("--most", type=int, help="copies of each kind of a run; default: all, without RUN one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.machine or MACHINES:
            machine = MACHINES[name]
            runs = given.runs or recorded_runs(machine, Path(scratch))
            most = given.most if given.most or given.runs else 1
            found: list[Any] = []
            for folder in runs:
                for outcome in outcomes(machine, folder, every=given.every, most=most, kind=given.kind):
                    found.append(outcome)
                    if given.list and outcome.is_missed:
                        print(f"{folder.name}: {outcome.kind}: {outcome.what[:300].strip()}")
                        where = f"{outcome.place}, expected {sorted(outcome.expected)}"
                        print(f"    {outcome.verdict} at {where}: {outcome.message[:300]}")
            shown = getattr(machine, "table", table)(found, places=True)
            print(f"{name}\n\n{shown}\n", flush=True)


def recorded_runs(machine: ModuleType, scratch: Path) -> list[Path]:
    """The runs of a machine: simulated ones of the runtime, or those in the data of the tests."""
    if machine is runtime_lies:
        return runtime_lies.recorded(scratch)
    return [unpacked(run, scratch) for run in machine.RUNS]


def unpacked(run: str, scratch: Path) -> Path:
    """The folder of a recorded run of the tests."""
    archive = run.partition("/")[0]
    if not (scratch / archive).exists():
        with tarfile.open(DATA / f"{archive}.tar.xz") as packed:
            packed.extractall(scratch, filter="data")
    return scratch / run


if __name__ == "__main__":
    main()
