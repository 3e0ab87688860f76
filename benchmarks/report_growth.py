"""Reports on many runs: elapsed time, and memory of the driver and of all processes, for growing numbers of runs.

One recorded run of Flink is validated; its verdict, with its history, and its first events are copied under other names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path

LOGS = Path(__file__).parents[1] / "tests" / "data" / "flink" / "logs.tar.xz"
RUN = "a-taskfail-1"
EVENTS = 30
"""Number of events of each run."""
EACH = 1000
"""Number of runs in one file."""
OTHER = 97
"""Every run of this number is rejected."""


def inputs(folder: Path, runs: int) -> None:
    """Writes verdicts and events of that many runs as NDJSON."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        with tarfile.open(LOGS) as archive:
            archive.extractall(home, [m for m in archive if f"/{RUN}/" in m.name], filter="data")
        (log,) = home.rglob(RUN)
        command = [*_streamproof("validate"), str(log), "--json", f"{home}/v.json", "--events", f"{home}/events"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (verdict,) = json.loads((home / "v.json").read_text())["verdicts"]
        events = [json.loads(line) for line in (home / "events" / f"{RUN}.ndjson").open()][:EVENTS]
    for start in range(0, runs, EACH):
        numbers = range(start, min(start + EACH, runs))
        with (folder / f"verdicts-{start:08}.ndjson").open("w") as file:
            for number in numbers:
                verdict |= {"run": f"run-{number}", "verdict": "accepted" if number % OTHER else "rejected"}
                file.write(json.dumps(verdict) + "\n")
        with (folder / f"events-{start:08}.ndjson").open("w") as file:
            for number in numbers:
                file.writelines(json.dumps({**event, "run": f"run-{number}"}) + "\n" for event in events)


def measured(arguments: list[str]) -> tuple[float, float, float]:
    """Elapsed seconds, the largest memory of a Python process in MB, and that of all processes together."""
    began = time.monotonic()
    process = subprocess.Popen([*_streamproof("report"), *arguments], stdout=subprocess.DEVNULL)
    driver = together = 0.0
    while process.poll() is None:
        used = [_resident(pid) for pid in _tree(process.pid)]
        driver = max([driver, *(size for size, python in used if python)])
        together = max(together, sum(size for size, _ in used))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.monotonic() - began, driver, together


def _streamproof(verb: str) -> list[str]:
    return [str(Path(sys.executable).with_name("streamproof")), verb]


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found


def _resident(pid: int) -> tuple[float, bool]:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return 0.0, False
    return pages * 4096 / 1e6, b"python" in command and b"java" not in command


def main() -> None:
    """Prints a row for each number of runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=int)
    parser.add_argument("--master", help="Spark master; without it, the processes of this machine.")
    given = parser.parse_args()
    print("| runs | input, MB | seconds | largest Python process, MB | all processes, MB | page, KB |")
    print("|---|---|---|---|---|---|")
    for runs in given.runs:
        with tempfile.TemporaryDirectory() as name:
            folder, out = Path(name, "in"), Path(name, "out")
            folder.mkdir()
            inputs(folder, runs)
            size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            place = ["--master", given.master] if given.master else []
            seconds, driver, together = measured([str(folder), "--out", str(out), *place])
            page = (out / "report.html").stat().st_size / 1e3
            print(
                f"| {runs:,} | {size:,.0f} | {seconds:.1f} | {driver:.0f} | {together:,.0f} | {page:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
