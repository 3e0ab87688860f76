"""``streamproof diff``: what changed between two models, two variants, or two commits of a model."""

from __future__ import annotations

from typing import Any

from streamproof import __version__
from streamproof.api.base_revision import ReadSystem, named_parameters, read_at
from streamproof.base.errors import Exit, UsageError
from streamproof.base.options import SearchOptions, flag
from streamproof.base.records import dataclass, replace
from streamproof.base.text import inner
from streamproof.cli.arguments import argument, json_flag, limited, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import complete_models, complete_parameters, complete_sizes, complete_variants
from streamproof.difference.behaviours import VIEWS
from streamproof.difference.comparing import ModelDifference, compare_systems
from streamproof.difference.rendering import difference_json, difference_lines, difference_markdown, summary
from streamproof.model_registry import find, unknown
from streamproof.report.console import print_lines
from streamproof.selection import Selection, expect_once, select
from streamproof.system.model import System

SCHEMA = "streamproof.diff/1"
USUAL = 1_000_000
"""The limit on states that is not given."""


@dataclass(frozen=True, slots=True)
class DiffArguments:
    """The arguments of the verb. The model after is that before, unless it is given."""

    model: str = argument(shell_complete=complete_models)
    other: str | None = argument(required=False, shell_complete=complete_models)
    base: str | None = flag("Read the model before at this commit, branch or tag of git.", "--base", unit="REV")
    variant: str | None = flag("A variant instead of the model before.", unit="NAME", shell_complete=complete_variants)
    to_variant: str | None = flag(
        "A variant instead of the model after.", unit="NAME", shell_complete=complete_variants
    )
    size: str | None = flag(
        "Named set of parameter values, of both.", unit="small|medium|large", shell_complete=complete_sizes
    )
    parameters: tuple[str, ...] = flag(
        "Set one parameter of both, or of the one that has it; may be repeated. --NAME VALUE is short for it.",
        "-p", unit="NAME=VALUE", shell_complete=complete_parameters,
    )  # fmt: skip
    to: tuple[str, ...] = flag(
        "Set one parameter of the model after alone; may be repeated.", "--to", unit="NAME=VALUE"
    )
    view: str = flag(
        "What is compared of a step: its label and the variables that both have, its label alone, or these variables alone.",
        choices=VIEWS,
    )
    options: SearchOptions = part(
        SearchOptions,
        "max_states",
        "time_limit",
        "memory",
        max_states=f"Stop each search after N distinct states.  [default: {USUAL}]",
    )
    form: str = flag("Output format.", "--format", choices=("text", "markdown", "json"))
    quiet: bool = flag("Only the outcome.", "-q", "--quiet")
    json_to: str | None = json_flag()


@verb(
    "diff",
    DiffArguments,
    example="streamproof diff failover --to-variant no-versioning --size small",
)
@limited()
def command(given: DiffArguments) -> int:
    """Compare MODEL with OTHER, with a variant of itself, or with itself at another commit: what was gained and lost.

    Printed are verdicts before and after, the shortest behaviours that only one of the two has, and actions, variables,
    reachable states and fairness constraints that appear or vanish. Ends with 0 if nothing differs, 163 if behaviours
    differ, or a property is new or restated, and no verdict differs, 164 if a verdict differs, and 160 if a verdict or
    the comparison is open.
    """
    json_to = "-" if given.form == "json" and given.json_to is None else given.json_to
    expect_json_writable(json_to, SCHEMA)
    if given.other is None and not (given.base or given.variant or given.to_variant or given.to):
        raise UsageError(
            "one model is compared with itself",
            remedy="give another model, --to-variant NAME, --to NAME=VALUE or --base REV",
        )
    with Status(live=not given.quiet) as status:
        if given.base is not None:
            status(f"reading the model at {given.base}")
        before, after = _systems(given)
        found = compare_systems(before.system, after.system, _options(given), view=given.view, on_stage=status)
    code = exit_code(found)
    write_json(_document(given, before, after, found, code), json_to)
    if json_to != "-":
        stream = people(json_to)
        if given.quiet:
            stream.write(f"{summary(found)}\n")
        elif given.form == "markdown":
            inner(stream).write(difference_markdown(found, given.base))
        else:
            print_lines(difference_lines(found, given.base), stream)
    return code


def exit_code(found: ModelDifference) -> Exit:
    """0 equal, 163 behaviours or properties differ, 164 verdicts differ, 160 open, 130 interrupted."""
    if found.interrupted:
        return Exit.INTERRUPTED
    if found.verdicts_differ:
        return Exit.VERDICTS_DIFFER
    if (found.behaviours_differ or found.properties_differ) and not found.open:
        return Exit.BEHAVIOURS_DIFFER
    return Exit.HOLDS if found.stopped is None else Exit.INCONCLUSIVE


def _options(given: DiffArguments) -> SearchOptions:
    return replace(given.options, max_states=given.options.max_states or USUAL)


def _systems(given: DiffArguments) -> tuple[ReadSystem, ReadSystem]:
    """The two systems; the one of a commit first, before the working tree's model is read."""
    other = given.model if given.other is None else given.other
    to_variant = given.variant if given.base and given.other is None and not given.to_variant else given.to_variant
    changed = {text.partition("=")[0] for text in given.to}
    kept = [text for text in expect_once(given.parameters) if text.partition("=")[0] not in changed]

    def earlier(text: str) -> Selection:
        """The model before, with the size and the parameters that it has."""
        target = find(text)
        cls = target.variant(given.variant)
        own = [p for p in given.parameters if p.partition("=")[0] in {*cls.parameters(), *target.spec.inputs}]
        return select(text, given.variant, given.size if given.size in cls.sizes else None, own)

    before = _read(earlier(given.model)) if given.base is None else read_at(given.base, given.model, earlier)
    if given.other is not None and given.base is None:
        target, one = find(other), find(given.model)
        names = {*target.variant(to_variant).parameters(), *target.spec.inputs}
        for text in kept:
            name = text.partition("=")[0]
            if name not in names and name not in {*one.variant(given.variant).parameters(), *one.spec.inputs}:
                raise unknown("neither model has a parameter", name, names, "parameters of the one after")
        kept = [text for text in kept if text.partition("=")[0] in names]
    return before, _read(select(other, to_variant, given.size, [*kept, *given.to]))


def _read(selection: Selection) -> ReadSystem:
    system, compared = selection.compared()
    return ReadSystem(system, compared.to_json())


def _side(read: ReadSystem) -> dict[str, Any]:
    system: System = read.system
    return {
        "model": system.name,
        "variant": system.variant,
        "parameters": dict(named_parameters(system)),
        "plain_python": dict(read.compared),
    }


def _document(
    given: DiffArguments, before: ReadSystem, after: ReadSystem, found: ModelDifference, code: Exit
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "base": given.base,
        "before": _side(before),
        "after": _side(after),
        **difference_json(found),
    }
