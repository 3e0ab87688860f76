"""``streamproof suite``: scripts that cover a model, and wrong logs, for any implementation and any checker."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from streamproof import __version__
from streamproof.base.errors import Exit, UsageError
from streamproof.base.files import Folder
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.cli.arguments import is_given, json_flag, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.conformance.events import event_line
from streamproof.driving.drive import SEEDS
from streamproof.driving.suite import Suite, make_suite, random_suite
from streamproof.driving.testing import subject_of
from streamproof.exchange.itf.writing import itf_text
from streamproof.system.model import parameter_json
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.suite/1"
DEFAULT_STATES = 2_000_000


@dataclass(frozen=True, slots=True)
class SuiteArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments, "model", "variant", "size", "parameters")
    out: Path = flag("Folder for the suite.", unit="DIR", required=True)
    max_states: int = flag("Largest number of states that are searched.", default=DEFAULT_STATES)
    walks: int | None = flag("N random walks instead of a search.", "--random")
    steps: int = flag("With --random: largest number of steps of a walk.", default=50)
    seed: int | None = flag("With --random: seed of the walks.  [default: random]", least=0)
    itf: bool = flag("Also write each script as ITF.", default=False)
    json_to: str | None = json_flag()


@verb("suite", SuiteArguments, example="streamproof suite examples/lease/lease.py --out suite")
def command(given: SuiteArguments) -> int:
    """Write few scripts that cover MODEL: instances of actions, pairs of consecutive actions, branches of rules, refusals.

    suite-good.ndjson has the scripts, one trace each: an event log with the state after each event, in which `refused` events
    must not happen. suite-bad.ndjson has logs that are wrong at their last line: refused events that happened, and the
    counterexamples of variants. suite.json counts what is covered, and names the wrong line of each bad log and the reason.
    `streamproof drive --scripts` runs the scripts on an implementation; `streamproof validate` judges the logs.
    """
    if given.walks is None:
        for name in ("steps", "seed"):
            if is_given(name):
                raise UsageError(f"--{name} needs --random", remedy="add --random N")
    expect_json_writable(given.json_to, SCHEMA)
    folder = Folder(given.out)
    folder.expect_writable(("suite-good.ndjson", "suite-bad.ndjson", "suite.json"))
    subject = subject_of(given.chosen.select())
    seed = None
    with Status() as status:
        status("making the suite")
        if given.walks is None:
            made = make_suite(subject, given.max_states)
        else:
            seed = random.SystemRandom().randrange(SEEDS) if given.seed is None else given.seed
            made = random_suite(subject, given.walks, given.steps, seed)
    document = {"schema": SCHEMA, "version": __version__, "exit_code": 0, **_record(made), "seed": seed}
    about = made.system.heading
    files = {
        "suite-good.ndjson": "".join(event_line(e) for s in made.scripts for e in s.events(made.system)),
        "suite-bad.ndjson": "".join(event_line(e) for bad in made.bad for e in bad.events),
        "suite.json": json.dumps(document, indent=1) + "\n",
    }
    for script in made.scripts if given.itf else ():
        files[f"{script.name}.itf.json"] = itf_text(made.system, script.trace)
    folder.announce(dict.fromkeys(files, about))
    for name, text in files.items():
        folder.write(name, text, about)
    folder.forget([about])
    write_json(document, given.json_to)
    out = people(given.json_to)
    for line in _lines(made, given.out):
        print(line, file=out)
    if seed is not None:
        print(f"seed {seed}", file=out)
    return Exit.HOLDS


def _record(made: Suite) -> dict[str, Any]:
    system = made.system
    return {
        "model": system.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "complete": made.complete,
        "states": made.states,
        "instances": made.instances,
        "pairs": made.pairs,
        "branches": made.branches,
        "refusals": made.refusals,
        "refusals_looked_for_in_states": made.examined,
        "refusals_beyond_bounds": made.beyond,
        "steps": made.steps,
        "least_steps": made.least,
        "scripts": [
            {"name": s.name, "steps": len(s.trace.steps), "refusals": sum(map(len, s.refused.values()))}
            for s in made.scripts
        ],
        "bad": [{"name": b.name, "wrong_event": len(b.events), "because": b.because} for b in made.bad],
        "harmless_variants": [*made.harmless],
    }


def _lines(made: Suite, out: Path) -> list[str]:
    of = f"all {made.states:,} states" if made.complete else f"{made.states:,} states visited"
    bound = f", at least {made.least:,} are necessary" if made.complete else ""
    found = [
        f"{made.system.heading}: {of}",
        f"  {number_of(len(made.scripts), 'script')}, {number_of(made.steps, 'step')}{bound}",
        f"  covered: {number_of(made.instances, 'instance')} of actions, "
        f"{number_of(made.pairs, 'pair')} of consecutive actions, {made.branches:,} outcomes of conditions, "
        f"{number_of(made.refusals, 'refusal')} (looked for in {number_of(made.examined, 'state')})",
        f"  {number_of(len(made.bad), 'wrong log')}",
    ]
    if made.beyond:
        found.append(f"  left out: {number_of(made.beyond, 'refusal')} that a larger instance permits")
    if made.harmless:
        found.append(f"  no wrong log shows these variants: {', '.join(made.harmless)}")
    return [*found, f"written to {out}"]
