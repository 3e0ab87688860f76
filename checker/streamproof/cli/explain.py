"""``streamproof explain``: explain a trace file, as text, as a diagram, as a page or as a test."""

from __future__ import annotations

from pathlib import Path

import click

from streamproof.api.explain import FORMS, explanation
from streamproof.api.replay import confirmed
from streamproof.base.errors import Exit
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.base.text import inner, standard_output
from streamproof.cli.arguments import argument, verb
from streamproof.cli.replay import chosen
from streamproof.cli.selection import complete_models, complete_properties, complete_variants
from streamproof.exchange.itf.reading import load


@dataclass(frozen=True, slots=True)
class ExplainArguments:
    """The arguments of the verb; the options about the model are those of the file if they are not given."""

    trace: Path = argument(type=click.Path(path_type=Path))
    form: str = flag("Form of the explanation.", "--format", choices=FORMS)
    model: str | None = flag("Model to replay on, instead of the file's.", unit="MODEL", shell_complete=complete_models)
    variant: str | None = flag("Variant, instead of the file's.", unit="NAME", shell_complete=complete_variants)
    parameters: tuple[str, ...] = flag("A parameter, instead of the file's.", "-p", unit="NAME=VALUE")
    prop: str | None = flag(
        "Property, instead of the file's.", "--property", unit="NAME", shell_complete=complete_properties
    )


@verb(
    "explain",
    ExplainArguments,
    example="streamproof explain counterexamples/failover/no-versioning/fresh_attempts.itf.json",
)
def command(given: ExplainArguments) -> int:
    """Replay TRACE, an ITF file or - for standard input, and print what it shows and what each step is needed for.

    Neighbouring steps that commute are exchanged, so that the steps of a process stand together. Ends with 161 if the
    trace is not one of the model, or does not show its property.
    """
    document = load(given.trace)
    selection, claimed = chosen(document, given)
    replayed = confirmed(document, selection.system(), claimed)
    text = explanation(selection, replayed.system, replayed.property, replayed.trace, given.form)
    inner(standard_output()).write(text)
    return Exit.HOLDS
