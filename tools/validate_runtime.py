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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

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
    ("regions", "load"): "what blobs have in the runtime is whole descriptors: `task_descriptors` follows them",
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
            "the end of a JobMaster is the end of its behaviour": ("end",),
            "TCP: messages are lost with their connection only": ("lose_message", "lose_report"),
            "without a message that is lost alone it changes no reachable state "
            "(`tests/runtime/test_partition_relation.py`): heartbeats list no partitions": ("synchronise",),
            "a JobMaster keeps its connections; variant `close-connection-early` closes one "
            "(`tests/runtime/test_partition_runs.py`)": ("close",),
            "another ResourceManager asks again: its loss is in no log of partitions": ("crash_manager",),
            "a simulated job may restart without limit": ("abandon",),
        }.items()
        for action in actions
    },
}
"""Actions that no run takes, by model, with the reason."""
PART = 100
"""Number of seeds that are simulated, then judged, at a time."""


def run_seed(seed: int, folder: Path) -> tuple[str, str, Counter[str], Counter[str]]:
    """The run of a seed, its log in a folder: the job, what is wrong, if anything, counts, and the faults by kind."""
    name, outcome, wrong = run_of(seed)
    (folder / f"seed-{seed}-{name}.ndjson").write_text("".join(lines(outcome.entries)), encoding="ascii")
    counts = Counter(runs=1, right=not wrong, attempts=outcome.attempts, events=len(outcome.entries))
    return name, wrong, counts, Counter(fault.kind for fault in outcome.faults if fault.at <= outcome.time)


def judged(seeds: range, master: str) -> dict[str, Any]:
    """The runs of these seeds, simulated and judged: counters by name, as JSON has them, and the `problems`."""
    jobs: dict[str, Counter[str]] = defaultdict(Counter)
    faults: Counter[str] = Counter()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder, answer = Path(name, "runs"), Path(name, "verdicts.json")
        folder.mkdir()
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            done_runs = pool.map(partial(run_seed, folder=folder), seeds, chunksize=len(JOBS))
            for seed, (job, wrong, counts, happened) in zip(seeds, done_runs, strict=True):
                jobs[job].update(counts)
                faults.update(happened)
                if wrong:
                    problems.append(f"seed {seed} of {job}: {wrong}")
        command = [sys.executable, "-m", "streamproof", "validate", *map(str, sorted(folder.iterdir()))]
        command += ["--model", "all", "--master", master, "--json", str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.exists():
            raise SystemExit(done.stderr)
        verdicts = json.loads(answer.read_text(encoding="utf-8"))["verdicts"]
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        answers[verdict["model"]][verdict["verdict"]] += 1
        actions = taken[verdict["model"]]
        actions.update(dict.fromkeys(verdict.get("model_actions") or (), 0))
        actions.update(verdict.get("actions") or {})
        if verdict["verdict"] != "accepted":
            problems.append(f"{verdict['run']} {verdict['title']}: {verdict['verdict']}: {verdict['reason']}")
    return {"jobs": jobs, "faults": {"all": faults}, "answers": answers, "taken": taken, "problems": problems}


def part_of(seeds: range, master: str, parts: Path | None) -> dict[str, Any]:
    """`judged`, kept in a file of the folder `parts`, from which it is read if it is there."""
    file = parts and parts / f"seeds-{seeds.start}-{seeds.stop - 1}.json"
    if file and file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    found = judged(seeds, master)
    if file:
        fresh = file.with_suffix(".fresh")
        fresh.write_text(json.dumps(found), encoding="utf-8")
        os.replace(fresh, file)
    return found


def ranges(text: str) -> list[range]:
    """The seeds that a text names: their number, or the first and last ones, as in ``0-299,700-1999``."""
    if "-" not in text:
        return [range(int(text))]
    ends = [[int(end) for end in each.split("-")] for each in text.split(",")]
    return [range(first, last + 1) for first, last in ends]


def runs_table(seeds: Sequence[range], master: str, parts: Path | None = None) -> tuple[str, bool]:
    """The section of the runs, and whether all is well."""
    totals: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for machine in ON_DEMAND:
        rules = (name for name, (mark, _) in marked(machine).items() if isinstance(mark, ActionMark))
        totals["taken"][machine.name].update(dict.fromkeys(rules, 0))
    for first, end in ((first, each.stop) for each in seeds for first in range(each.start, each.stop, PART)):
        part = part_of(range(first, min(first + PART, end)), master, parts)
        for problem in part.pop("problems"):
            print(problem, file=sys.stderr, flush=True)
        for kind, counters in part.items():
            for name, counts in counters.items():
                totals[kind][name].update(counts)
    jobs, faults, answers, taken = totals["jobs"], totals["faults"]["all"], totals["answers"], totals["taken"]
    well = all(c["right"] == c["runs"] for c in jobs.values()) and not any(
        a["rejected"] or a["error"] for a in answers.values()
    )
    named = " and ".join(f"{each.start:,} to {each.stop - 1:,}" for each in seeds)
    text = f"{sum(map(len, seeds)):,} runs, seeds {named}, validated on Spark (`{master}`). Faults that happened: "
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
    parser.add_argument(
        "--seeds", type=ranges, default="2000", metavar="SEEDS", help="number of runs, or 0-299,700-1999"
    )
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark's master")
    parser.add_argument(
        "--parts", type=Path, metavar="DIR", help="folder that keeps the counts of each part, to go on from"
    )
    parser.add_argument("--write", action="store_true", help="replace the section in docs/runtime-runs.md")
    given = parser.parse_args()
    if given.parts:
        given.parts.mkdir(parents=True, exist_ok=True)
    text, well = runs_table(given.seeds, given.master, given.parts)
    print(text)
    if given.write:
        write_section("runs", text)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
