"""``streamproof replay``: replay a recorded trace, and check that it shows its property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamproof.base.errors import Exit, InputError, StreamproofError, UsageError
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models, complete_properties, complete_variants, json_option
from streamproof.cli.verbs import Verb
from streamproof.language.declare.declarations import parameter_types
from streamproof.model_registry import Target, titled, unknown
from streamproof.selection import Selection, expect_once, select
from streamproof.system.model import Kind, Property, System, parameter_json
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
        behaviour, shown = confirmed(loaded, system, claimed)
    except (InputError, UsageError):
        raise
    except StreamproofError as error:
        reason = {"accepted": False, "steps": None, "reason": error.message, "exit_code": int(error.exit_code)}
        write_json(document | reason, json_to)
        raise
    fine = {"accepted": True, "steps": len(behaviour.steps), "reason": None, "exit_code": int(Exit.HOLDS)}
    write_json(document | fine, json_to)
    if not quiet:
        from streamproof.report.console import print_counterexample
        from streamproof.traces.render import About

        print_counterexample(system, shown, behaviour, about=About(replayed=True), full=full, stream=stream)
        stream.write("\n")
    stream.write(f"{loaded.name}: {_outcome(shown, behaviour)}\n")
    return Exit.HOLDS


def confirmed(path: Path | Document, system: System, claimed: str | None) -> tuple[Trace, Property | None]:
    """The trace of a file, replayed on `system`, and the property that it shows.

    Raises `InputError` for a file without a trace of the system, `ReplayError` if the trace is not a behaviour or does not
    show its property, `EvaluationError` for an evaluation error of the model.
    """
    from streamproof.exchange.itf.reading import read_itf
    from streamproof.traces.replay import replay, verify

    behaviour = read_itf(path, system)
    shown = None if claimed is None else system.property(claimed)
    if shown is None:
        replay(system, behaviour)
    else:
        verify(system, shown, behaviour)
    return behaviour, shown


def chosen(
    document: Document, model: str | None, variant: str | None, parameters: Sequence[str], prop: str | None
) -> tuple[Selection, str | None]:
    """The selection of the replay, and the claimed property: options of the command line override those of the file."""
    from streamproof.exchange.itf.reading import read_meta

    meta, path = read_meta(document), document.name
    if model is None and meta.model is None:
        raise InputError(f"{path} names no model", remedy="name it with --model")
    if model is None:
        assert meta.model is not None, "checked above"
        target = titled(meta.model)
        if target is None:
            raise InputError(
                f"{path} is of the model {meta.model!r}, which is not a bundled model",
                remedy="name it with --model path/to/file.py",
            )
        model = target.text
    # With another variant the file's parameters still apply: the trace was found with them.
    selected = select(model, variant if variant is not None else meta.variant, None, parameters)
    recorded = _recorded(path, selected.target, selected.variant, meta.parameters)
    selection = Selection(selected.target, selected.variant, {**recorded, **selected.given}, None, selected.options)
    claimed = prop if prop is not None else meta.property
    known = {p.name: p.kind.value for p in selection.target.properties(selection.variant)}
    if claimed is not None and claimed not in known:
        raise unknown(f"{selection.target.name} has no property", claimed, known, "its properties")
    if claimed is not None and prop is None and meta.kind not in (None, known[claimed]):
        raise InputError(
            f"{path}: #meta.kind: {claimed} is of kind {known[claimed]}, the file says {meta.kind!r}",
            remedy="correct the file, or name the property with --property",
        )
    return selection, claimed


def _recorded(path: str, target: Target, variant: str | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The file's parameters, converted to the types of the model."""
    cls = target.variant(variant)
    types, values = parameter_types(cls), {}
    for name, value in found.items():
        if name not in cls.parameters():
            raise InputError(
                f"{path}: #meta.parameters.{name}: {target.name} has no such parameter",
                remedy=f"its parameters: {', '.join(cls.parameters()) or 'none'}",
            )
        if not types[name].accepts(value):
            raise InputError(f"{path}: #meta.parameters.{name}: {value!r} is not of type {types[name]}")
        values[name] = value
    return values


def _outcome(shown: Property | None, behaviour: Trace) -> str:
    count = len(behaviour.steps)
    steps = f"{count} step{'' if count == 1 else 's'}"
    if shown is None:
        return f"replayed, {steps}; the file names no property"
    verb = "reaches" if shown.kind is Kind.REACHABLE else "violates"
    return f"replayed, {steps}; it {verb} {shown.name}"
