"""Following logs of Flink of real size: processor time and memory of `streamproof validate`, one process, reading included.

The logs are made by `tests/support/synthetic_flink.py`; each job ends with FINISHED. A case that takes longer than the
limit, or ends with an error, has no figure. Published figures of trace validators stand below the table; they were
measured on other machines and other traces: compare orders of magnitude.

A second table has what does not depend on a job: reading a million lines, and event logs of the reference runtime, in which
the events determine the state.
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
import gc, json, resource, sys
from pathlib import Path
from streamproof.__main__ import GARBAGE
gc.set_threshold(GARBAGE)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2]) + 5))
from streamproof.conformance import validate_paths
found, = validate_paths([Path(sys.argv[1])])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([found.answer, len(found.recoveries), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
READ = """
import gc, json, resource, sys
from pathlib import Path
gc.set_threshold(200_000)
from streamproof.conformance.flink import read_run
found = read_run(Path(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([len(found.events), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
EVENTS = """
import gc, json, resource, sys
from pathlib import Path
gc.set_threshold(200_000)
from streamproof.conformance import read_events, validate_paths
used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
logs, start = sorted(Path(sys.argv[1]).glob("*.ndjson")), used()
events, read = sum(len(read_events(log)) for log in logs), used()
found = validate_paths([Path(sys.argv[1])], model="baton")
assert {verdict.answer for verdict in found} == {"accepted"}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([events, read - start, used() - read, peak]))
"""
MONITOR = """
import json, resource, sys
from pathlib import Path
used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
start, events, read = used(), 0, 0.0
for log in sorted(Path(sys.argv[1]).glob("*.ndjson")):
    held = {}
    before = used()
    lines = [json.loads(line) for line in log.open()]
    read += used() - before
    for event in lines:
        events += 1
        of, args = event["trace"], event.get("args", {})
        if event["event"] == "gate_opened":
            held.update({(of, channel): args["exclusive"] for channel in args["channels"]})
        elif event["event"] == "credits_received":
            held[of, args["channel"]] += args["credits"] - args["sent"]
            assert held[of, args["channel"]] >= 0, event
        elif event["event"] == "buffers_sent":
            for channel, number in args["sent"].items():
                if (of, channel) in held:
                    held[of, channel] -= number
                    assert held[of, channel] >= 0, event
print(json.dumps([events, read, used() - start - read]))
"""
"""A monitor written by hand for one property: no sender sends more buffers than it has credits."""
SEEDS = 10
LINES = 1_000_000
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


def child(code: str, folder: Path) -> list[float]:
    """What a process of its own prints of a folder."""
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def others(folder: Path) -> None:
    """Prints the second table."""
    from streamproof_models.failover.graph import Exchange
    from synthetic_flink import Cluster, chain, repeated

    print("| input | events | read, seconds | followed, seconds | events a second | MB |\n|---|---|---|---|---|---|")
    job, trace = HERE.parent / "examples" / "pagerank.py", folder / "traces"
    words = ("run", str(job), "--simulate", "--seeds", str(SEEDS), "--trace", str(trace))
    subprocess.run([sys.executable, "-m", "streamproof", *words], check=True, capture_output=True)
    events, read, followed, memory = child(EVENTS, trace)
    rate = f"{events / followed:,.0f}"
    checked, parsed, judged = child(MONITOR, trace)
    print(f"| {SEEDS} simulated runs of PageRank | {events:,} | {read:.1f} | {followed:.1f} | {rate} | {memory:.0f} |")
    rate = f"{checked / judged:,.0f}"
    print(f"| the same, by a monitor for one property | {checked:,.0f} | {parsed:.1f} | {judged:.2f} | {rate} | |")
    lines = repeated(Cluster(chain(10, 10, exchange=Exchange.PIPELINED_BOUNDED)), "B", 7_000).lines[:LINES]
    (folder / "lines").mkdir()
    (folder / "lines" / "flink-jobmanager.log").write_text("\n".join([*lines, ""]), encoding="utf-8")
    del lines
    events, seconds, memory = child(READ, folder / "lines")
    print(
        f"| {LINES:,} lines of a JobManager | {events:,} | {seconds:.1f} | | {events / seconds:,.0f} | {memory:.0f} |\n"
    )


def main() -> None:
    """Prints the tables."""
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
    with tempfile.TemporaryDirectory() as place:
        others(Path(place))
    for name, figure, source in PUBLISHED:
        print(f"{name}: {figure} ({source})")


if __name__ == "__main__":
    main()
