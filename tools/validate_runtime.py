"""Simulated runs of the runtime with heavy faults, all validated on Spark: the tables of a document.

The seeds go through the jobs of `tests/support/runtime_mix.py`. Each run must have the right result, and every machine must
accept it. Actions of the machines that no run takes have a reason, or a test that reaches them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]

from page_section import write_section  # noqa: E402
from runtime_mix import JOBS, run_of  # noqa: E402
from streamproof.language.declare.model import Model, marked  # noqa: E402
from streamproof.language.declare.primitives import ActionMark  # noqa: E402
from streamproof_models.checkpoints.machine import Checkpoints  # noqa: E402
from streamproof_runtime.event_log import lines  # noqa: E402
from streamproof_specs.partitions.runtime.recorded_machine import RecordedPartitions  # noqa: E402
from streamproof_specs.regions.runtime import ScheduledJob  # noqa: E402
from streamproof_specs.slots.runtime.recorded_machine import RecordedSlotPool  # noqa: E402

ON_DEMAND: tuple[type[Model], ...] = (Checkpoints, RecordedPartitions, ScheduledJob, RecordedSlotPool)
"""Machines whose actions are made for the arguments of a log, so that no verdict lists them."""
NEVER_TAKEN = {
    ("credit", "stall"): (
        "the environment: a consumer that reads no more. A log that ends while buffers wait does not say that they "
        "would never have been read"
    ),
    ("checkpoints", "lose"): "a message is lost only with its connection, and then the task fails",
    ("checkpoints", "publish"): "a result counts when the job has finished: there is no notice of a checkpoint",
    ("failover", "give_up"): "a simulated job may restart without limit; on processes `--restarts 0` reaches it "
    "(`tests/runtime/test_processes.py`)",
    ("regions", "load"): "a descriptor is in the message of a deployment: the runtime has no blob server",
    **{
        ("slot_pool", action): why
        for why, actions in {
            "finer actions take its place: a message, and with it what it says, is one event (`slots/runtime/recorded.py`)": (
                *("declare", "disconnect", "offer_again", "receive_held", "receive_slot_report", "send_held"),
                *("send_slot_report", "lose_available", "lose_free"),
            ),
            "a region returns its slots when its subtasks have ended": ("abandon",),
            "subtasks end with the loss of the JobMaster, and with their region, before their slot is freed": (
                "stop_task",
            ),
        }.items()
        for action in actions
    },
    **{
        ("partition_lifecycle", action): why
        for why, actions in {
            "a JobMaster that crashes or ends is the end of its behaviour, and the next one begins another": (
                *("crash", "recover", "end"),
            ),
            "a TaskExecutor that crashes deletes everything with the loss of its JobMaster": ("crash_executor",),
            "a full disk ends the attempt that writes; in the machine it ends the TaskExecutor": ("fill_disk",),
            "TCP: messages are lost with their connection only": ("lose_message", "lose_report", "synchronise"),
            "a JobMaster keeps its connections; variant `close-connection-early` closes one "
            "(`tests/runtime/test_partition_runs.py`)": ("close",),
            "another ResourceManager asks again: its loss is in no log of partitions": ("crash_manager",),
            "a simulated job may restart without limit": ("abandon",),
        }.items()
        for action in actions
    },
}
"""Actions that no run takes, by model, with the reason."""


def run_seed(seed: int, folder: Path) -> tuple[str, str, Counter[str], Counter[str]]:
    """The run of a seed, its log in a folder: the job, what is wrong, if anything, counts, and the faults by kind."""
    name, outcome, wrong = run_of(seed)
    (folder / f"seed-{seed}-{name}.ndjson").write_text("".join(lines(outcome.entries)), encoding="ascii")
    counts = Counter(runs=1, right=not wrong, attempts=outcome.attempts, events=len(outcome.entries))
    return name, wrong, counts, Counter(fault.kind for fault in outcome.faults if fault.at <= outcome.time)


def runs_table(seeds: int, master: str) -> tuple[str, bool]:
    """The section of the runs, and whether all is well."""
    jobs: dict[str, Counter[str]] = defaultdict(Counter)
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, answer = Path(name, "runs"), Path(name, "verdicts.json")
        folder.mkdir()
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            done_runs = pool.map(partial(run_seed, folder=folder), range(seeds), chunksize=len(JOBS))
            for seed, (job, wrong, counts, happened) in enumerate(done_runs):
                jobs[job].update(counts)
                faults.update(happened)
                if wrong:
                    print(f"seed {seed} of {job}: {wrong}", file=sys.stderr)
        command = [
            sys.executable,
            "-m",
            "streamproof",
            "validate",
            *map(str, sorted(folder.iterdir())),
            "--model",
            "all",
        ]
        command += ["--master", master, "--json", str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.exists():
            raise SystemExit(done.stderr)
        verdicts = json.loads(answer.read_text(encoding="utf-8"))["verdicts"]
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for machine in ON_DEMAND:
        rules = (name for name, (mark, _) in marked(machine).items() if isinstance(mark, ActionMark))
        taken[machine.name].update(dict.fromkeys(rules, 0))
    for verdict in verdicts:
        answers[verdict["model"]][verdict["verdict"]] += 1
        actions = taken[verdict["model"]]
        actions.update(dict.fromkeys(verdict.get("model_actions") or (), 0))
        actions.update(verdict.get("actions") or {})
        if verdict["verdict"] not in ("accepted", "inconclusive"):
            print(f"{verdict['run']} {verdict['title']}: {verdict['reason']}", file=sys.stderr)
    well = all(c["right"] == c["runs"] for c in jobs.values()) and not any(
        a["rejected"] or a["error"] for a in answers.values()
    )
    text = f"{seeds:,} runs, seeds 0 to {seeds - 1:,}, validated on Spark (`{master}`). Faults that happened: "
    text += ", ".join(f"{number:,} {kind}" for kind, number in sorted(faults.items())) + ".\n\n"
    text += "| job | runs | right results | attempts | events |\n|---|---|---|---|---|\n"
    for job, counts in jobs.items():
        text += (
            f"| {job} | {counts['runs']:,} | {counts['right']:,} | {counts['attempts']:,} | {counts['events']:,} |\n"
        )
    text += "\n| machine | behaviours | accepted | rejected | inconclusive | error |\n|---|---|---|---|---|---|\n"
    for model, found in sorted(answers.items()):
        cells = " | ".join(f"{found[kind]:,}" for kind in ("accepted", "rejected", "inconclusive", "error"))
        text += f"| {model} | {found.total():,} | {cells} |\n"
    text += "\nHow often the runs took each action of the machines:\n\n| machine | actions |\n|---|---|\n"
    for model, actions in sorted(taken.items()):
        shown = ", ".join(f"`{action}` {number:,}" for action, number in sorted(actions.items()) if number)
        text += f"| {model} | {shown} |\n"
    missing = [(m, a) for m, actions in sorted(taken.items()) for a, number in sorted(actions.items()) if not number]
    text += "\nActions that no run took:\n\n| machine | action | why |\n|---|---|---|\n"
    for model, action in missing:
        text += f"| {model} | `{action}` | {NEVER_TAKEN.get((model, action), 'not explained')} |\n"
    return text, well


def main() -> None:
    """Runs, prints, and writes the page if requested; ends with 1 after a wrong result or a rejected run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="number of runs")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark's master")
    parser.add_argument("--write", action="store_true", help="replace the section in docs/runtime-runs.md")
    given = parser.parse_args()
    text, well = runs_table(given.seeds, given.master)
    print(text)
    if given.write:
        write_section("runs", text)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
