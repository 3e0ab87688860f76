"""Input policies measured in simulation: spill, waits and pipelining of a loop that amplifies, the median over seeds.

`table` writes the section of a document, the same on every machine.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from streamproof_runtime.event_log import Entry
from streamproof_runtime.jobs.api import Job, Stream
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.variants.loop_variants import loop_rules

PAGE = Path(__file__).resolve().parents[1] / "docs" / "runtime-runs.md"
SEEDS = 9
RECORDS = 40
ROUNDS = 3
BUFFERS = 2
"""Exclusive buffers of a channel; in simulation a feedback channel has as many in memory."""


def amplifying(records: int, copies: int) -> Job:
    """A loop that makes `copies` of each record in each of its rounds."""
    job = Job("amplifying")

    def loop(stream: Stream) -> tuple[Stream, Stream]:
        grown = stream.process("grow", lambda _, r: ((r[0], r[1] + 1),) * copies)
        return grown.filter(lambda r: r[1] < ROUNDS), grown.filter(lambda r: r[1] == ROUNDS)

    job.source("numbers", [(n, 0) for n in range(records)]).iterate("Loop", loop).collect("all")
    return job


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run does, in buffers of one record."""

    largest_spill: int
    """Most items on disk at a time."""
    spilled: int
    """Items that were ever written to disk."""
    forward_wait: int
    """Most feedback items that are taken while an item waits on the forward input."""
    feedback_wait: int
    """Most forward items that are taken while an item waits on the feedback channel."""
    in_loop: int
    """Most records in the loop at a time."""
    time: int
    """Virtual time of the run in nanoseconds."""


@lru_cache(maxsize=1024)
def measured(policy: str, records: int, copies: int, seed: int) -> Measured:
    """The measures of one run. Raises `RuntimeError` for a run that does not finish."""
    run = Simulation(amplifying(records, copies), seed=seed, buffers=BUFFERS, loops=loop_rules(None, policy))
    run.records = 1
    outcome = run.run()
    if not outcome.finished or len(outcome.results["all"]) != records * copies**ROUNDS:
        raise RuntimeError(f"seed {seed} with {policy}: {outcome.reason or 'a wrong result'}")
    return _measured(outcome.entries, outcome.time)


def _measured(entries: list[Entry], time: int) -> Measured:
    waiting = {"forward": 0, "feedback": 0}
    waited = {"forward": 0, "feedback": 0}
    most = {"forward": 0, "feedback": 0}
    in_loop = most_in_loop = largest = spilled = 0
    for _, process, event, args, state, _ in entries:
        if process == "grow" and event == "record_processed":
            in_loop += sum("~" in channel for channel in args["channels"]) - 1
        if process == "loop":
            side, other = _sides(args)
            if event in ("buffer_received", "feedback_received"):
                waiting[side] += 1
            elif event in ("record_received", "baton_received", "channel_released"):
                waiting[side] -= 1
                waited[side] = 0
                waited[other] = waited[other] + 1 if waiting[other] else 0
                most[other] = max(most[other], waited[other])
                in_loop += side == "forward" and event == "record_received"
            if event == "feedback_received":
                largest = max(largest, state["spilled"])
            elif event == "spill_read":
                spilled += len(args["numbers"])
        most_in_loop = max(most_in_loop, in_loop)
    return Measured(largest, spilled, most["forward"], most["feedback"], most_in_loop, time)


def _sides(args: Mapping[str, Any]) -> tuple[str, str]:
    return ("feedback", "forward") if "~" in str(args.get("channel")) else ("forward", "feedback")


def middle(what: str, policy: str, records: int, copies: int) -> float:
    """The median of one of the measures over all seeds."""
    return float(median(getattr(measured(policy, records, copies, seed), what) for seed in range(SEEDS)))


def table() -> str:
    """The section of the measures."""
    heads = ("policy", "copies", "largest spill", "ever spilled", "forward wait", "feedback wait", "in the loop", "ms")
    text = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for policy in POLICIES:
        for copies in (1, 2):
            names = ("largest_spill", "spilled", "forward_wait", "feedback_wait", "in_loop")
            cells = [f"{middle(name, policy, RECORDS, copies):g}" for name in names]
            time = middle("time", policy, RECORDS, copies) / 1e6
            text += f"| `{policy}` | {copies} | {' | '.join(cells)} | {time:.2f} |\n"
    return text


def main() -> None:
    """Prints the table, and writes it to the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"Replace the section in {PAGE.name}.")
    given = parser.parse_args()
    text = table()
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = page.index("<!-- policies -->\n"), page.index("<!-- end of policies -->")
        fresh = PAGE.with_suffix(".fresh")
        fresh.write_text(f"{page[:begin]}<!-- policies -->\n\n{text}\n{page[end:]}", encoding="utf-8")
        os.replace(fresh, PAGE)


if __name__ == "__main__":
    main()
