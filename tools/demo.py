"""The tour of `make demo`: prove a protocol, break it, validate runs of Flink and of the runtime, write the report.

Every command is printed before it runs and can be repeated by hand. Some commands must find a violation: any other result
stops the demo with exit code 1. Files are written to `build/demo/` only.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "demo"
RECORDED = ROOT / "tests" / "data" / "flink" / "logs.tar.xz"
PROGRAM = ROOT / ".venv" / "bin" / "streamproof"


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the tour: its title, its arguments and its required exit code."""

    shows: str
    arguments: tuple[str, ...]
    exit_code: int = 0


def unpack_runs() -> Path:
    """Unpack the recorded Flink runs; returns `build/demo/runs`, which has one folder per run."""
    with tarfile.open(RECORDED) as packed:
        packed.extractall(OUT / "runs", filter="data")
    return OUT / "runs" / "logs"


def steps(runs: Path) -> list[Step]:
    """The tour in order; paths are relative to the root, where the commands run."""
    out = OUT.relative_to(ROOT)
    verdicts, events = str(out / "verdicts.json"), str(out / "events")
    return [
        Step(
            "Pipelined-region failover satisfies its properties in every reachable state.",
            ("check", "failover", "-q", "--out", str(out / "failover")),
        ),
        Step(
            "The published pseudo-code, taken literally, can restart without end: the shortest counterexample.",
            ("check", "failover", "--variant", "literal-pseudocode", "--out", str(out / "literal-pseudocode")),
            exit_code=13,
        ),
        Step(
            "Without versions of attempts, another property is violated.",
            ("check", "failover", "--variant", "no-versioning", "-q", "--out", str(out / "no-versioning")),
            exit_code=12,
        ),
        Step(
            "Safety and deadlock freedom by induction, without visiting the states.",
            ("prove", "failover", "--timeout", "inf"),
        ),
        Step(
            f"{sum(1 for _ in runs.iterdir())} recorded runs of Apache Flink, validated against the same model.",
            ("validate", str(runs.relative_to(ROOT)), "--json", verdicts, "--events", events),
        ),
        Step(
            "Connected components as a loop on five processes, one of which is killed twice: the result is right.",
            ("run", "examples/components.py", "--kill", "tm-1@8", "--kill", "tm-1@2", "--trace", str(out / "loop")),
        ),
        Step(
            "The log of that run, validated against every protocol that the runtime follows.",
            ("validate", str(out / "loop"), "--model", "all"),
        ),
        Step("The verdicts as an HTML page.", ("report", verdicts, events, "--out", str(out / "report"))),
    ]


def run(number: int, step: Step) -> bool:
    """Print and run one step; returns whether its exit code is the required one."""
    print(f"\n[{number}] {step.shows}\n$ streamproof {shlex.join(step.arguments)}", flush=True)
    code = subprocess.run([PROGRAM, *step.arguments], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
    if code == step.exit_code:
        print(f"-> exit code {code}, as expected", flush=True)
        return True
    print(f"-> exit code {code}, expected {step.exit_code}: the demo stops here", file=sys.stderr, flush=True)
    return False


def summary(verdicts: Path) -> str:
    """What the tour has shown, in three sentences; the totals are those of the file of verdicts."""
    records = json.loads(verdicts.read_text(encoding="utf-8"))["verdicts"]
    runs = len({record["run"] for record in records})
    units = Counter(record["unit"] for record in records)
    accepted = sum(record["verdict"] == "accepted" for record in records)
    return (
        "Flink's failover protocol has all its properties in every reachable state, by search and by proof.\n"
        "Two variants, one of them published, violate a property: streamproof printed the shortest executions.\n"
        f"{runs} recorded runs got {len(records)} verdicts, one for each of {units['job']} jobs and, where a run was "
        f"traced in detail,\none for each of {units['channel']} network channels: {accepted} are accepted."
    )


def main() -> int:
    """Run the whole tour in a fresh `build/demo/`; returns 0 if every exit code is the required one."""
    if not PROGRAM.exists():
        print(f"{PROGRAM.relative_to(ROOT)} is missing: run `make demo` (or `make venv` first)", file=sys.stderr)
        return 2
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    tour = steps(unpack_runs())
    if not all(run(number, step) for number, step in enumerate(tour, start=1)):
        return 1
    print(f"\n{summary(OUT / 'verdicts.json')}")
    print(f"\nreport: {(OUT / 'report' / 'report.html').as_uri()}")
    print("next:   docs/tutorial.md, a protocol of your own in fifteen minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
