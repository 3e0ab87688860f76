"""The variants of the reference runtime, each in simulated runs until a machine rejects its log: a table of a document.

Every variant of `all_variants` has a row. What it is of decides the jobs and the faults.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]

from batch_jobs import is_prefix, unending  # noqa: E402
from offloading_jobs import offloaded  # noqa: E402
from page_section import write_section  # noqa: E402
from runtime_mix import JOBS, crashing, job_of, looping, rejections, slow_slots, wrong  # noqa: E402
from session_jobs import is_right  # noqa: E402
from session_jobs import ran as session_of  # noqa: E402
from spanning_jobs import KINDS, spanned  # noqa: E402
from streamproof_runtime.durations import MILLISECOND  # noqa: E402
from streamproof_runtime.simulator.simulation import Outcome, Simulation  # noqa: E402
from streamproof_runtime.variants import baton_variants, slot_variants  # noqa: E402
from streamproof_runtime.variants.all_variants import FAMILIES, simulated  # noqa: E402

MOST = 199
"""Largest number of runs of a variant."""
HARMLESS = baton_variants.HARMLESS | slot_variants.HARMLESS
HARMLESS_RUNS = 60
"""The same for those that no log tells from the rules."""
AFTER = 10
"""Number of further runs, once a result has been wrong, for a log that is rejected."""
LIMIT = 8_000
"""Largest number of steps of a run, many of which never end; a run by the rules takes fewer."""

Run = Callable[[str, int], tuple[Outcome, str]]
"""Of a variant and the number of a run: the outcome, and what is wrong with it."""


def mixed(*jobs: str, level: str = "heavy", **more: Any) -> Run:
    """Runs of jobs in turn."""

    def run(variant: str, number: int) -> tuple[Outcome, str]:
        job, check = job_of(jobs[number % len(jobs)], number)
        outcome = Simulation(job, seed=number, level=level, **simulated(variant), **more).run(LIMIT)
        return outcome, wrong(outcome, check)

    return run


def slots(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of small jobs with slow slot messages, and of larger ones with all faults, in turn."""
    if number % 2:
        return mixed("sales", "collatz", level="severe")(variant, number // 2)
    return mixed("word_count", "cached", faults_given=slow_slots(number))(variant, number)


def budgeted(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of random jobs that survive one failure of each operator; that a job is given up is not wrong."""
    job, check = job_of("batch", number)
    job.max_failures_per_task = 1
    outcome = Simulation(job, seed=number, level="heavy", **simulated(variant)).run(LIMIT)
    return outcome, "" if "budget" in outcome.reason else wrong(outcome, check)


def endless(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of a job without end that is stopped."""
    stop = (1 + number % 9) * MILLISECOND // 6
    outcome = Simulation(unending(), seed=number, level="heavy", stop_after=stop, **simulated(variant)).run(LIMIT)
    return outcome, wrong(outcome, is_prefix)


def special(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of a job of which an operator needs a slot of one TaskExecutor."""
    job, check = job_of("narrow", number)
    job.operators["both"].slot_sharing_group = "special"
    job.resources["special"] = {"gpu": 1}
    profiles = {"tm-2": {"gpu": 1}}
    outcome = Simulation(job, seed=number, level="heavy", executors=4, resources=profiles, **simulated(variant)).run(
        LIMIT
    )
    return outcome, wrong(outcome, check)


def in_session(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of a session; that what a job has promoted is lost is not wrong."""
    outcome = session_of(number, "severe", variant)
    return outcome, "" if is_right(outcome) else outcome.reason


def spans(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs with records that span buffers and with checkpoints, of unaligned barriers if the variant is of these."""
    return spanned(number, variant, **KINDS["unaligned" if variant == "cut-forgotten" else "aligned"])


def pools(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs with small pools at senders."""
    return spanned(number, variant, **{**KINDS["pools"], "sender_buffers": 3})


def blobs(variant: str, number: int) -> tuple[Outcome, str]:
    """Runs of jobs whose descriptors are blobs, of which a TaskExecutor keeps one."""
    return offloaded(JOBS.index(("sales", "cached")[number % 2]) + number * len(JOBS), variant, cached_blobs=1)


RUNS: dict[str, tuple[Run, tuple[str, ...]]] = {
    "baton": (mixed("walk"), ("baton",)),
    "flush rules": (mixed("walk", timeout=0.05), ("baton", "credit")),
    "credit": (mixed("shortest_paths"), ("credit",)),
    "pools of senders": (pools, ("buffer_shares",)),
    "records that span buffers": (spans, ("record_spans", "checkpoints", "loop_checkpoint_counts")),
    "loops": (mixed("doubling"), ("cyclic",)),
    "regions and failover": (mixed("sales"), ("failover", "regions")),
    "failure budgets": (budgeted, ("failover",)),
    "regions of subtasks": (mixed("subtasks"), ("failover", "regions")),
    "partitions": (mixed("sales", "cached", level="severe"), ("partition_lifecycle",)),
    "cluster partitions": (in_session, ("partition_lifecycle",)),
    "checkpoints": (lambda variant, number: crashing(number, variant), ("checkpoints",)),
    "unaligned checkpoints": (lambda variant, number: crashing(number, variant, unaligned=True), ("checkpoints",)),
    "loop checkpoints": (lambda variant, number: looping(number, variant), ("checkpoints", "loop_checkpoint_counts")),
    "slots": (slots, ("slot_pool",)),
    "resource profiles": (special, ("slot_pool",)),
    "unbounded sources": (endless, ("baton",)),
    "offloaded descriptors": (blobs, ("task_descriptors",)),
}
"""By what a variant is of: its runs, and the machines that judge each; the first one caught is judged by all."""


def row(named: tuple[str, str], most: int) -> str:
    """One line of the table, of what a variant is of and its name."""
    family, variant = named
    most = min(most, HARMLESS_RUNS) if variant in HARMLESS else most
    first: dict[str, int] = {}
    run, own = RUNS[family]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(1, most + 1):
            outcome, fault = run(variant, number - 1)
            found = [*rejections(outcome, folder, own)]
            if fault and "result" not in first:
                first["result"], found = number, [*rejections(outcome, folder)]
            elif found:
                found = [*rejections(outcome, folder)]
            first.update((model, number) for model in found if model not in first)
            if first.keys() - {"result"} or number - first.get("result", number) >= AFTER:
                break
    by = [f"{what} in run {number}" for what, number in sorted(first.items(), key=lambda f: f[1])]
    none = f"not in {most} runs" + (": harmless" if variant in HARMLESS else "")
    return f"| `{variant}` | {family} | {', '.join(by) or none} |\n"


def table(most: int) -> str:
    """The section of the variants."""
    text = f"Up to {most} runs of each, until a machine rejects one, or {AFTER} more after the first wrong result:\n\n"
    text += "| variant | of | caught by |\n|---|---|---|\n"
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(partial(row, most=most), [(f, v) for f, family in FAMILIES.items() for v in family]):
            text += line
            print(line, end="", flush=True)
    return text


def main() -> None:
    """Prints the rows, and writes the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=MOST, help="the most for each variant")
    parser.add_argument("--only", metavar="NAME", help="print the row of one variant, or those of what they are of")
    parser.add_argument("--write", action="store_true", help="replace the section in docs/runtime-runs.md")
    given = parser.parse_args()
    if given.only:
        for family, variants in FAMILIES.items():
            for variant in variants:
                if given.only in (variant, family):
                    print(row((family, variant), given.runs), end="", flush=True)
        return
    text = table(given.runs)
    if given.write:
        write_section("variants", text)


if __name__ == "__main__":
    main()
