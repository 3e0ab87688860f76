"""``streamproof replay``: replay a recorded trace, and check that it shows its property."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamproof.api.replay import claim_of, confirmed, model_of, with_recorded
from streamproof.base.errors import Exit, InputError, StreamproofError, UsageError
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models, complete_properties, complete_variants, json_option
from streamproof.cli.verbs import Verb
from streamproof.selection import Selection, expect_once, select
from streamproof.system.model import Kind, Property, parameter_json
from streamproof.system.verdict import Trace

if TYPE_CHECKING:
    from streamproof.exchange.itf.reading import Document

SCHEMA = "streamproof.replay/1"


@click.command(
    "replay",
    cls=Verb,
    short_help="Replay a recorded trace.",
    example="streamproof replay counterexamples/failover/no-versioning/fresh_attempts.itf.json",
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--model", metavar="MODEL", shell_complete=complete_models, help="Model to replay on, instead of the file's."
)
@click.option("--variant", metavar="NAME", shell_complete=complete_variants, help="Variant, instead of the file's.")
@click.option("-p", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter, instead of the file's.")
@click.option(
    "--property", "prop", metavar="NAME", shell_complete=complete_properties, help="Property, instead of the file's."
)
@click.option("--full", is_flag=True, help="Show the whole state after every step.")
@click.option("-q", "--quiet", is_flag=True, help="Only the outcome.")
@json_option
def command(
    trace: Path,
    model: str | None,
    variant: str | None,
    parameters: Sequence[str],
    prop: str | None,
    full: bool,
    quiet: bool,
    json_to: str | None,
) -> int:
    """Replay TRACE, an ITF file or - for standard input, on the model, variant and parameters that it names.

    Ends with 0 when every step is a step of the model and the trace violates (or reaches) its property, and with 161
    otherwise.
    """
    expect_json_writable(json_to, SCHEMA)
    from streamproof.exchange.itf.reading import load

    loaded = load(trace)
    selection, claimed = chosen(loaded, model, variant, expect_once(parameters), prop)
    system = selection.system()
    stream = people(json_to)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": selection.target.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
        "trace": str(trace),
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
    if not quiet:
        from streamproof.report.console import print_counterexample
        from streamproof.traces.render import About

        print_counterexample(system, shown, behaviour, about=About(replayed=True), full=full, stream=stream)
        stream.write("\n")
    stream.write(f"{loaded.name}: {_outcome(shown, behaviour)}\n")
    return Exit.HOLDS


def chosen(
    document: Document, model: str | None, variant: str | None, parameters: Sequence[str], prop: str | None
) -> tuple[Selection, str | None]:
    """The selection of the replay, and the claimed property: options of the command line override those of the file."""
    from streamproof.exchange.itf.reading import read_meta

    text = model_of(document) if model is None else model
    meta = read_meta(document)
    selection = select(text, variant if variant is not None else meta.variant, None, parameters)
    selection = with_recorded(document, selection)
    return selection, claim_of(document, selection, prop)


def _outcome(shown: Property | None, behaviour: Trace) -> str:
    count = len(behaviour.steps)
    steps = f"{count} step{'' if count == 1 else 's'}"
    if shown is None:
        return f"replayed, {steps}; the file names no property"
    verb = "reaches" if shown.kind is Kind.REACHABLE else "violates"
    return f"replayed, {steps}; it {verb} {shown.name}"
