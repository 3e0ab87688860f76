"""Following logs of Flink of real size: processor time and memory of `streamproof validate`, one process, reading included.

The logs are made by `tests/support/synthetic_flink.py`; each job ends with FINISHED. A case that takes longer than the
limit, or ends with an error, has no figure. Published figures of trace validators stand below the table; they were
measured on other machines and other traces: compare orders of magnitude.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 180
"""Seconds of processor time for a case."""
CHILD = """
import json, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2]) + 5))
from streamproof.conformance import validate_paths
found, = validate_paths([Path(sys.argv[1])])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([found.answer, len(found.recoveries), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
PUBLISHED = (
    ("TLC on traces of CCF", "7 to 16 s for a scenario", "github.com/microsoft/CCF/pull/6015"),
    ("TLC on traces of etcd-raft", "a few minutes for 3,000 entries, not linear beyond", "etcd-io/raft, tla/README.md"),
    ("PObserve, a deterministic monitor", "10,000 events in 0.18 s, 55,000 a second", "documentation of P"),
)


def measured(folder: Path) -> tuple[str, int, float, float] | str:
    """The verdict, the number of restarts, seconds and MB; or why there is none."""
    command = [sys.executable, "-c", CHILD, str(folder), str(LIMIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return f"none within {LIMIT} s"
    if done.returncode:
        return next((line for line in done.stderr.splitlines() if "Error: " in line), "an error")
    answer, restarts, seconds, memory = json.loads(done.stdout)
    return answer, restarts, seconds, memory


def main() -> None:
    """Prints the table."""
    sys.path.insert(0, str(HERE.parent / "tests" / "support"))
    from synthetic_flink import CASES

    print("| case | lines | verdict | restarts | seconds | MB |\n|---|---|---|---|---|---|")
    for name, build in CASES.items():
        cluster = build()
        with tempfile.TemporaryDirectory() as folder:
            found = measured(cluster.write(Path(folder) / "run"))
        rest = f"{found} | | | " if isinstance(found, str) else "{} | {} | {:.1f} | {:.0f}".format(*found)
        print(f"| {name} | {len(cluster.lines):,} | {rest} |", flush=True)
    print()
    for name, figure, source in PUBLISHED:
        print(f"{name}: {figure} ({source})")


if __name__ == "__main__":
    main()
