"""``streamproof simulate``: random walks through state spaces that are too large to search."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from streamproof.base.errors import StreamproofError, UsageError
from streamproof.base.files import Folder
from streamproof.base.options import SearchOptions, flag
from streamproof.base.records import dataclass, replace
from streamproof.cli.answer import Output, Request, cautioned, judged_beside, print_left_out, trace_folder
from streamproof.cli.arguments import limited, part, verb
from streamproof.cli.outputs import Status, expect_json_writable
from streamproof.cli.selection import ModelArguments
from streamproof.explicit.simulation import SEEDS, WALKED, Simulation, simulate
from streamproof.system.model import System
from streamproof.system.verdict import Trace


@dataclass(frozen=True, slots=True)
class SimulateArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments)
    options: SearchOptions = part(SearchOptions, "walks", "steps", "seed", "guided", "time_limit")
    traces: Path | None = flag(
        "Also write each walk as ITF, and all as scripts for streamproof drive.", unit="DIR", path={"file_okay": False}
    )
    output: Output = part(Output, "out", "full", "quiet", "json_to")


@verb(
    "simulate",
    SimulateArguments,
    example="streamproof simulate failover --size large --walks 1000 --seed 7",
)
@limited()
def command(given: SimulateArguments) -> int:
    """Take random walks through MODEL and check its properties, for state spaces too large for check.

    Stops at the first violation; its trace is replayed, shortened and printed. Other properties are inconclusive (160),
    except reachability properties whose state was visited.
    """
    begun, options, json_to = time.perf_counter(), given.options, given.output.json_to
    selection = given.chosen.select()
    chosen = tuple(p.name for p in selection.listed() if given.chosen.properties or p.kind in WALKED)
    left_out = [p.name for p in selection.listed() if p.name not in chosen]
    if not chosen:
        raise UsageError(
            f"{selection.target.name} has no property that a walk can decide",
            remedy=f"streamproof check decides the others: {', '.join(left_out)}"
            if left_out
            else "mark one, as @invariant",
        )
    expect_json_writable(json_to, "streamproof.simulate/1")
    seed = random.SystemRandom().randrange(SEEDS) if options.seed is None else options.seed
    folder = trace_folder(given.output.out, selection)
    written = WalkFiles(given.traces)
    request = Request("simulate", "simulation", selection, _words(options, seed), folder, given.output, begun)
    request = replace(request, cautions=cautioned(selection))
    try:
        system = request.system()
        with Status(live=not given.output.quiet) as status:

            def walked(system: System) -> Simulation:
                return simulate(
                    system,
                    seed=seed,
                    properties=chosen,
                    walks=options.walks,
                    steps=options.steps,
                    time_limit=options.time_limit,
                    guided=options.guided,
                    on_walk=None if given.traces is None else written.add,
                    on_progress=lambda e: status(
                        f"{e.elapsed:.0f} s: walk {e.walks} of {options.walks}, {e.steps} steps, "
                        f"{e.distinct} distinct states visited"
                    ),
                )

            beside = judged_beside(request, lambda system, _: walked(system))
            written.clear()
            found = walked(system)
        written.write(system)
        # The command repeats exactly these walks, independent of the speed of the machine.
        request = replace(request, words=_words(replace(options, walks=found.walks), seed))
        code = request.answer(system, found, _more(found, options.steps, left_out), beside=beside)
    except StreamproofError as error:
        request.fail(error)
        raise
    print_left_out(left_out, json_to)
    return code


class WalkFiles:
    """The walks of ``--traces``: one file each as ITF, and all of them as an event log.  Raises `SystemFailure`."""

    def __init__(self, place: Path | None) -> None:
        self.folder = None if place is None else Folder(place)
        if self.folder is not None:
            self.folder.expect_writable(("suite-good.ndjson",))
        self._walks: list[Trace] = []

    def add(self, walk: Trace) -> None:
        """One more walk."""
        self._walks.append(walk)

    def clear(self) -> None:
        """Forgets the walks of variants that are judged beside the model."""
        self._walks.clear()

    def write(self, system: System) -> None:
        """Writes the walks, and removes older ones of the same system."""
        if self.folder is None:
            return
        from streamproof.conformance.events import event_line
        from streamproof.driving.script import events_of
        from streamproof.exchange.itf.writing import itf_text

        names = [f"walk-{number:04}" for number in range(1, len(self._walks) + 1)]
        files = {f"{n}.itf.json": itf_text(system, walk) for n, walk in zip(names, self._walks, strict=True)}
        logs = (events_of(system, n, walk, {}) for n, walk in zip(names, self._walks, strict=True))
        files["suite-good.ndjson"] = "".join(event_line(event) for log in logs for event in log)
        self.folder.announce(dict.fromkeys(files, system.heading))
        for name, text in files.items():
            self.folder.write(name, text, system.heading)
        self.folder.forget([system.heading])


def _words(options: SearchOptions, seed: int) -> tuple[str, ...]:
    """The options that repeat the walks."""
    words = ("--walks", str(options.walks), "--steps", str(options.steps), "--seed", str(seed))
    return words if options.guided else (*words, "--uniform")


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
