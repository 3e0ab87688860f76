"""``streamproof replay``: replay a recorded trace, and check that it shows its property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamproof.api.replay import claim_of, confirmed, model_of, with_recorded
from streamproof.base.errors import Exit, InputError, StreamproofError, UsageError
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models, complete_properties, complete_variants
from streamproof.exchange.itf.reading import Document, load, read_meta
from streamproof.report.evidence import print_counterexample
from streamproof.selection import Selection, expect_once, select
from streamproof.system.model import Kind, Property, parameter_json
from streamproof.system.verdict import Trace
from streamproof.traces.render import About

SCHEMA = "streamproof.replay/1"


@dataclass(frozen=True, slots=True)
class ReplayArguments:
    """The arguments of the verb; the options about the model are those of the file if they are not given."""

    trace: Path = argument(type=click.Path(path_type=Path))
    model: str | None = flag("Model to replay on, instead of the file's.", unit="MODEL", shell_complete=complete_models)
    variant: str | None = flag("Variant, instead of the file's.", unit="NAME", shell_complete=complete_variants)
    parameters: tuple[str, ...] = flag("A parameter, instead of the file's.", "-p", unit="NAME=VALUE")
    prop: str | None = flag(
        "Property, instead of the file's.", "--property", unit="NAME", shell_complete=complete_properties
    )
    full: bool = flag("Show the whole state after every step.")
    quiet: bool = flag("Only the outcome.", "-q", "--quiet")
    json_to: str | None = json_flag()


@verb(
    "replay",
    ReplayArguments,
    example="streamproof replay counterexamples/failover/no-versioning/fresh_attempts.itf.json",
)
def command(given: ReplayArguments) -> int:
    """Replay TRACE, an ITF file or - for standard input, on the model, variant and parameters that it names.

    Ends with 0 when every step is a step of the model and the trace violates (or reaches) its property, and with 161
    otherwise.
    """
    json_to = given.json_to
    expect_json_writable(json_to, SCHEMA)
    loaded = load(given.trace)
    selection, claimed = chosen(loaded, given)
    system = selection.system()
    stream = people(json_to)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": selection.target.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "trace": str(given.trace),
        "property": claimed,
    }
    try:
        replayed = confirmed(loaded, system, claimed)
    except (InputError, UsageError):
        raise
    except StreamproofError as error:
        reason = {"accepted": False, "steps": None, "reason": error.message, "exit_code": int(error.exit_code)}
        write_json(document | reason, json_to)
        raise
    behaviour, shown = replayed.trace, replayed.property
    fine = {"accepted": True, "steps": len(behaviour.steps), "reason": None, "exit_code": int(Exit.HOLDS)}
    write_json(document | fine, json_to)
    if not given.quiet:
        print_counterexample(system, shown, behaviour, about=About(replayed=True), full=given.full, stream=stream)
        stream.write("\n")
    stream.write(f"{loaded.name}: {_outcome(shown, behaviour)}\n")
    return Exit.HOLDS


def chosen(document: Document, given: Any) -> tuple[Selection, str | None]:
    """The selection of the replay, and the claimed property: options of the command line override those of the file."""
    meta, text = read_meta(document), model_of(document) if given.model is None else given.model
    variant = given.variant if given.variant is not None else meta.variant
    selection = with_recorded(document, select(text, variant, None, expect_once(given.parameters)))
    return selection, claim_of(document, selection, given.prop)


def _outcome(shown: Property | None, behaviour: Trace) -> str:
    count = len(behaviour.steps)
    steps = f"{count} step{'' if count == 1 else 's'}"
    if shown is None:
        return f"replayed, {steps}; the file names no property"
    verb = "reaches" if shown.kind is Kind.REACHABLE else "violates"
    return f"replayed, {steps}; it {verb} {shown.name}"
