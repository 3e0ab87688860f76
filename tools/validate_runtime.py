"""Simulated runs of the runtime with heavy faults, all validated on Spark, and its variants: the tables of a document.

`runs`: seeds go through the jobs of `examples/`, those on graphs with a random one each, random batch jobs, and walks through
the graphs of the catalogue. Each run must have the right result, and every machine must accept it. `variants`: the number of
runs until each variant is caught.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from batch_jobs import batch  # noqa: E402
from graph_jobs import GRAPH_JOBS, graph_job, same  # noqa: E402
from runtime_runs import EXAMPLES as FOLDER  # noqa: E402
from runtime_runs import example  # noqa: E402
from streamproof.conformance import InputError, judge  # noqa: E402
from streamproof_models.scoped_topologies import NAMED  # noqa: E402
from streamproof_runtime.event_log import lines  # noqa: E402
from streamproof_runtime.jobs import walks  # noqa: E402
from streamproof_runtime.jobs.api import Job  # noqa: E402
from streamproof_runtime.jobs.input_policies import POLICIES  # noqa: E402
from streamproof_runtime.jobs.job_file import JobFile  # noqa: E402
from streamproof_runtime.simulator.simulation import Outcome, Simulation  # noqa: E402
from streamproof_runtime.variants import all_variants  # noqa: E402
from streamproof_runtime.variants import checkpoint_variants as checkpointing  # noqa: E402
from streamproof_runtime.variants.baton_variants import VARIANTS  # noqa: E402
from streamproof_runtime.variants.failover_variants import MASTERS  # noqa: E402
from streamproof_runtime.variants.flow_variants import FLOWS  # noqa: E402
from streamproof_runtime.variants.flush_variants import FLUSHES  # noqa: E402
from streamproof_runtime.variants.loop_variants import LOOPS, loop_rules  # noqa: E402
from streamproof_runtime.variants.partition_variants import LEDGERS  # noqa: E402
from streamproof_specs.flink.checkpoints import BINDING as CHECKPOINTS  # noqa: E402
from streamproof_specs.flink.failover import BINDING as FAILOVER  # noqa: E402
from streamproof_specs.flink.partitions import BINDING as PARTITIONS  # noqa: E402
from streamproof_specs.flink.regions import BINDING as REGIONS  # noqa: E402
from streamproof_specs.runtime.baton import BINDING as BATON  # noqa: E402
from streamproof_specs.runtime.credit import BINDING as CREDIT  # noqa: E402
from streamproof_specs.runtime.cyclic import BINDING as CYCLIC  # noqa: E402

PAGE = ROOT / "docs" / "runtime-runs.md"
JOBS = (*GRAPH_JOBS, "collatz", "doubling", "readings", "sales", "batch", "walk")
TIMEOUTS = (None, 0.05, None, 0, None, 0.3, None, -1, None, 100)
"""Buffer timeouts in milliseconds of virtual time, in turn."""
CHECKPOINT_INTERVAL = 200_000
"""Nanoseconds of virtual time between two checkpoints of the job that takes them."""
LIMIT = 100_000
"""Largest number of steps of a run."""
VARIANT_LIMIT = 4_000
"""The same for a variant, many of which never end; a run by the rules takes fewer."""
PROCESSES = 4
NEVER_TAKEN = {
    (
        "credit",
        "stall",
    ): "the environment: a consumer that reads no more. A log that ends while buffers wait does not say "
    "that they would never have been read",
    ("checkpoints", "lose"): "a message is lost only with its connection, and then the task fails",
    ("checkpoints", "publish"): "a result counts when the job has finished: there is no notice of a checkpoint",
    ("failover", "give_up"): "a simulated job may restart without limit; on processes `--restarts 0` reaches it "
    "(`tests/runtime/test_processes.py`)",
    ("regions", "stall"): "the environment",
    **{
        ("partition_lifecycle", action): why
        for why, actions in {
            "a JobMaster that crashes or ends is the end of its behaviour, and the next one begins another": (
                *("crash", "recover", "end"),
            ),
            "the JobMaster keeps its connections until the job is over": ("close",),
            "a TaskExecutor that crashes deletes everything with the loss of its JobMaster": ("crash_executor",),
            "the simulation has no full disk; a write that fails ends the attempt": ("fill_disk",),
            "TCP: messages are lost with their connection only": ("lose_message", "lose_report", "synchronise"),
            "no process lets TaskExecutors go": ("report_empty", "release_executor", "crash_manager"),
            "a simulated job may restart without limit": ("abandon",),
        }.items()
        for action in actions
    },
}
"""Actions that no run takes, by model, with the reason."""


def job_of(name: str, seed: int) -> tuple[Job, Callable[[Outcome], bool]]:
    """A job, and whether an outcome has its results."""
    if name == "batch":
        job, expected = batch(seed)
        return job, lambda o: {n: Counter(records or ()) for n, records in o.results.items()} == expected
    if name == "walk":
        job = walks.walk([*NAMED.values()][seed // len(JOBS) % len(NAMED)])
        return job, lambda o: walks.visits(job, o.results) == walks.expected(job)
    if name in GRAPH_JOBS:
        module, expected = graph_job(name, seed)
        tolerance = getattr(module, "TOLERANCE", 0)
        return module.job(), lambda o: same({k: v or {} for k, v in o.results.items()}, expected, tolerance)
    if name == "readings":  # fewer of them, in small buffers
        readings: Any = example(name)
        readings.NORTH, readings.SOUTH = range(120), range(1_000, 1_060)
        return readings.job(), lambda o: bool(o.results == readings.expected())
    file = JobFile(FOLDER / f"{name}.py")
    return file.job(), lambda o: not file.wrong(o.results)


def run_seed(seed: int, folder: Path) -> tuple[str, str, Counter[str], Counter[str]]:
    """The run of a seed, its log in a folder: the job, what is wrong, if anything, counts, and the faults by kind."""
    name = JOBS[seed % len(JOBS)]
    job, is_right = job_of(name, seed)
    level, timeout = "severe" if seed % 5 == 4 else "heavy", TIMEOUTS[seed // len(JOBS) % len(TIMEOUTS)]
    loops = loop_rules(None, POLICIES[seed // len(JOBS) % len(POLICIES)])
    interval = CHECKPOINT_INTERVAL if name == "readings" else 0
    more: dict[str, Any] = {"timeout": timeout, "loops": loops, "checkpoint_interval": interval}
    outcome = Simulation(job, seed=seed, level=level, eager=seed % 2 == 1, **more).run(LIMIT)
    (folder / f"seed-{seed}-{name}.ndjson").write_text("".join(lines(outcome.entries)), encoding="ascii")
    wrong = outcome.reason if not outcome.finished else "records lost" if outcome.lost else ""
    wrong = wrong or ("" if is_right(outcome) else "wrong result")
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


def rejections(outcome: Outcome, folder: Path) -> Iterable[str]:
    """The machines that reject a run."""
    log = folder / "run.ndjson"
    log.write_text("".join(lines(outcome.entries)), encoding="ascii")
    bindings = {"baton": BATON, "failover": FAILOVER, "regions": REGIONS, "credit": CREDIT, "cyclic": CYCLIC}
    bindings["partition_lifecycle"] = PARTITIONS
    bindings["checkpoints"] = CHECKPOINTS
    for model, binding in bindings.items():
        if model not in ("baton", "credit", "cyclic") and not binding.recognises(log):
            continue
        try:
            if any(v.answer == "rejected" for v in judge(binding.plan(log, None), model)):
                yield model
        except InputError:  # such as two subtasks that are one attempt of one
            yield f"{model} (the log contradicts itself)"


def variant_row(variant: str, most: int) -> str:
    """One line of the table of variants."""
    with tempfile.TemporaryDirectory() as folder:
        return _row(variant, most, Path(folder))


def _row(variant: str, most: int, folder: Path) -> str:
    first: dict[str, int] = {}
    for number in range(most):
        of = {
            **dict.fromkeys([*MASTERS, *LEDGERS], "sales"),
            **dict.fromkeys(FLOWS, "shortest_paths"),
            **dict.fromkeys(LOOPS, "doubling"),
            **dict.fromkeys((*checkpointing.SUBTASKS, *checkpointing.MASTERS), "readings"),
        }
        name = of.get(variant, "walk")
        # Walks go through the catalogue of graphs.
        job, is_right = job_of(name, number * len(JOBS))
        more: dict[str, Any] = {
            "subtask_type": all_variants.subtask_type(variant),
            "timeout": 0.05 if variant in FLUSHES else None,
            "master_type": all_variants.master_type(variant),
            "flow": all_variants.flow_rules(variant),
            "checkpoint_interval": CHECKPOINT_INTERVAL if name == "readings" else 0,
            "loops": loop_rules(variant),
            "ledger": all_variants.ledger_type(variant),
        }
        outcome = Simulation(job, seed=number, level="heavy", **more).run(
            LIMIT if name in ("doubling", "readings") else VARIANT_LIMIT
        )
        if not outcome.finished or outcome.lost or not is_right(outcome):
            first.setdefault("result", number + 1)
        for model in rejections(outcome, folder):
            first.setdefault(model, number + 1)
        if first.keys() - {"result"} or ("result" in first and number - first["result"] > 10):
            break
    by = ", ".join(f"{what} in run {number}" for what, number in sorted(first.items(), key=lambda f: f[1]))
    kind = (
        "baton"
        if variant in VARIANTS
        else "flush rules"
        if variant in FLUSHES
        else "regions and failover"
        if variant in MASTERS
        else "loops"
        if variant in LOOPS
        else "partitions"
        if variant in LEDGERS
        else "checkpoints"
        if variant in (*checkpointing.SUBTASKS, *checkpointing.MASTERS)
        else "credit"
    )
    return f"| `{variant}` | {kind} | {by or f'not in {most} runs'} |\n"


def variants_table(most: int) -> str:
    """The section of the variants."""
    text = f"Up to {most} runs of each, with heavy faults, until a machine rejects one:\n\n"
    text += "| variant | of | caught by |\n|---|---|---|\n"
    with ProcessPoolExecutor(PROCESSES) as pool:
        for row in pool.map(partial(variant_row, most=most), all_variants.NAMES):
            text += row
            print(row, end="", flush=True)
    return text


def placed(page: str, section: str, text: str) -> str:
    """The page with the text of a section replaced. Raises `ValueError` for a page without it."""
    begin = page.index(f"<!-- {section} -->\n") + len(f"<!-- {section} -->\n")
    end = page.index(f"<!-- end of {section} -->")
    return f"{page[:begin]}\n{text}\n{page[end:]}"


def main() -> None:
    """Runs, prints, and writes the page if requested; ends with 1 after a wrong result or a rejected run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", choices=["runs", "variants"])
    parser.add_argument("--seeds", type=int, default=2000, help="Number of runs, or the most for each variant.")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="Spark's master.")
    parser.add_argument("--write", action="store_true", help=f"Replace the section in {PAGE.name}.")
    given = parser.parse_args()
    well = True
    if given.section == "runs":
        text, well = runs_table(given.seeds, given.master)
        print(text)
    else:
        text = variants_table(given.seeds)
    if given.write:
        fresh = PAGE.with_suffix(".fresh")
        fresh.write_text(placed(PAGE.read_text(encoding="utf-8"), given.section, text), encoding="utf-8")
        os.replace(fresh, PAGE)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
