"""``streamproof simulate``: random walks through state spaces that are too large to search."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from streamproof.base.errors import StreamproofError, UsageError
from streamproof.base.options import WALK_STEPS, WALKS
from streamproof.cli.answer import Request, out_option, print_left_out, trace_folder
from streamproof.cli.beside import cautioned, judged_beside
from streamproof.cli.outputs import Status, expect_json_writable
from streamproof.cli.selection import (
    json_option,
    limited_by,
    model_options,
    number_option,
    property_option,
    timeout_option,
)
from streamproof.cli.verbs import Verb
from streamproof.explicit.simulation import SEEDS, WALKED, Simulation, simulate
from streamproof.selection import select
from streamproof.system.model import System


@click.command(
    "simulate",
    cls=Verb,
    short_help="Look for violations on random walks.",
    example="streamproof simulate failover --size large --walks 1000 --seed 7",
)
@model_options
@property_option
@number_option("--walks", help="Number of walks.", default=WALKS)
@number_option("--steps", help="Largest number of steps of a walk.", default=WALK_STEPS)
@number_option("--seed", help="Seed of the walks; equal seeds give equal walks.  [default: random]", least=0)
@click.option(
    "--guided/--uniform",
    default=True,
    show_default=True,
    help="Prefer new states and actions, or take every step with the same probability.",
)
@timeout_option("Stop after SECONDS.", "time_limit")
@out_option
@click.option("--full", is_flag=True, help="Show the whole state after every step of a counterexample.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no counterexamples, only the outcome.")
@json_option
@limited_by("time_limit")
def command(
    model: str,
    variant: str | None,
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    walks: int,
    steps: int,
    seed: int | None,
    guided: bool,
    time_limit: float | None,
    out: Path | None,
    full: bool,
    quiet: bool,
    json_to: str | None,
) -> int:
    """Take random walks through MODEL and check its properties, for state spaces too large for check.

    Stops at the first violation; its trace is replayed, shortened and printed. Other properties are inconclusive (160),
    except reachability properties whose state was visited.
    """
    begun = time.perf_counter()
    selection = select(model, variant, size, parameters, properties)
    chosen = tuple(p.name for p in selection.listed() if properties or p.kind in WALKED)
    left_out = [p.name for p in selection.listed() if p.name not in chosen]
    if not chosen:
        raise UsageError(
            f"{selection.target.name} has no property that a walk can decide",
            remedy=f"streamproof check decides the others: {', '.join(left_out)}"
            if left_out
            else "mark one, as @invariant",
        )
    expect_json_writable(json_to, "streamproof.simulate/1")
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    folder = trace_folder(out, selection)
    request = Request("simulate", "simulation", selection, (), folder, json_to, full, quiet, begun)
    request = replace(request, words=_words(walks, steps, seed, guided), cautions=cautioned(selection))
    try:
        system = request.system()
        with Status(live=not quiet) as status:

            def walked(system: System) -> Simulation:
                return simulate(
                    system,
                    seed=seed,
                    properties=chosen,
                    walks=walks,
                    steps=steps,
                    time_limit=time_limit,
                    guided=guided,
                    on_progress=lambda e: status(
                        f"{e.elapsed:.0f} s: walk {e.walks} of {walks}, {e.steps} steps, "
                        f"{e.distinct} distinct states visited"
                    ),
                )

            beside = judged_beside(request, out, lambda system, _: walked(system))
            found = walked(system)
        # The command repeats exactly these walks, independent of the speed of the machine.
        request = replace(request, words=_words(found.walks, steps, seed, guided))
        code = request.answer(system, found, _more(found, steps, left_out), beside=beside)
    except StreamproofError as error:
        request.fail(error)
        raise
    print_left_out(left_out, json_to)
    return code


def _words(walks: int, steps: int, seed: int, guided: bool) -> tuple[str, ...]:
    """The options that repeat the walks."""
    return ("--walks", str(walks), "--steps", str(steps), "--seed", str(seed), *(() if guided else ("--uniform",)))


def _more(found: Simulation, steps: int, left_out: list[str]) -> dict[str, Any]:
    """The part of the JSON that only simulate has, without memory, which differs from run to run."""
    estimate = found.estimate
    return {
        "memory": {"peak_bytes": None},
        "not_for_this_engine": left_out,
        "simulation": {
            "seed": found.seed,
            "guided": found.guided,
            "walks": found.walks,
            "steps_per_walk": steps,
            "steps": found.steps,
            "longest": found.longest,
            "distinct": found.distinct,
            "estimate": None
            if estimate is None
            else {
                "method": "chao2",
                "distinct": round(estimate, 3),
                "low": float(found.distinct),
                "high": None,
            },
            "stopped": found.stopped,
        },
    }
