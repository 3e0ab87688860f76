"""``streamproof mutate``: how good is a specification? Small changes of the rules, which its properties must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from streamproof import __version__
from streamproof.base.errors import Exit, UsageError
from streamproof.base.options import SearchOptions, flag
from streamproof.base.records import dataclass, replace
from streamproof.base.text import BLANK, Line, StyledText, aligned, line, parameters_text
from streamproof.cli.answer import Output
from streamproof.cli.arguments import limited, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.mutation.judging import (
    ANSWERS,
    EQUIVALENT,
    NEEDED,
    NO_EFFECT,
    NOT_NEEDED,
    OPEN,
    SURVIVED,
    UNDECIDED,
    JudgedMutant,
    Mutation,
    mutate,
)
from streamproof.mutation.mutants import Mutant, kinds
from streamproof.report.console import print_lines
from streamproof.selection import Selection
from streamproof.system.verdict import number_of

SCHEMA = "streamproof.mutate/1"
USUAL = SearchOptions(max_states=1_000_000, time_limit=None)
"""The limits of the search of each mutant that are not given."""
LAST_STEPS = 6
"""Number of steps of a behaviour that are printed."""
MOST_DIFFERENT = 3
"""Number of steps that only one of the two has that are printed."""


@dataclass(frozen=True, slots=True)
class MutateArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments)
    kinds: tuple[str, ...] = flag(
        f"Only this kind of mutant; may be repeated: {', '.join(kinds())}.", "--kind", unit="KIND"
    )
    actions: tuple[str, ...] = flag("Only mutants of this action; may be repeated.", "--action", unit="NAME")
    properties_too: bool = flag("Also judge the parts of the properties.", "--properties")
    least: float = flag(
        "Least score in percent with which the exit code is 0.",
        default=100.0,
        unit="PERCENT",
        type=click.FloatRange(0, 100),
    )
    options: SearchOptions = part(SearchOptions, "max_states", "time_limit", "memory")
    output: Output = part(Output, "quiet", "json_to")


@verb(
    "mutate",
    MutateArguments,
    example="streamproof mutate credit --size small",
)
@limited()
def command(given: MutateArguments) -> int:
    """Change the rules of MODEL in small ways, and see which properties notice it.

    A mutant has one guard left out, negated or with equality exchanged, one update left out or off by one, an action that is
    never possible, no fairness, or another initial value. A mutant that no property notices is equivalent to the model, or is
    printed with the shortest behaviour by which it differs. Ends with 161 if the score, the share of noticed ones among those
    that differ, is below --least, and with 160 if a mutant is undecided. With --properties, the conditions in the properties
    are judged, too: one has no effect if the property holds with a stronger one in its place, and is not needed if the
    property without it notices the same mutants. These are hints, on which the exit code does not depend.
    """
    json_to = given.output.json_to
    expect_json_writable(json_to, SCHEMA)
    unknown = [kind for kind in given.kinds if kind not in kinds()]
    if unknown:
        raise UsageError(f"no kind of mutants is called {unknown[0]!r}", remedy=f"the kinds are: {', '.join(kinds())}")
    selection = given.chosen.select()
    system, compared = selection.compared()
    names = [action.name for action in system.actions]
    for name in given.actions:
        if name not in names:
            raise UsageError(f"{selection.name} has no action {name!r}", remedy=f"its actions: {', '.join(names)}")

    def wanted(mutant: Mutant) -> bool:
        return (not given.kinds or mutant.kind in given.kinds) and (not given.actions or mutant.action in given.actions)

    options = replace(
        given.options, properties=selection.properties, max_states=given.options.max_states or USUAL.max_states
    )
    with Status(live=not given.output.quiet) as status:
        found = mutate(
            system,
            options,
            only=wanted,
            on_judged=lambda judged, number: status(f"{number}: {judged.answer}: {judged.mutant.label}"),
            parts=given.properties_too,
        )
    code = _code(found, given.least)
    document = _document(selection, found, code, given.least)
    write_json({**document, "plain_python": compared.to_json()}, json_to)
    if json_to != "-":
        print_lines(_lines(selection, found), people(json_to))
    return code


def _code(found: Mutation, least: float) -> Exit:
    if found.interrupted:
        return Exit.INTERRUPTED
    if found.score is not None and 100 * found.score < least and not found.counts[UNDECIDED]:
        return Exit.REJECTED
    return Exit.INCONCLUSIVE if found.counts[UNDECIDED] or not found.judged else Exit.HOLDS


def _document(selection: Selection, found: Mutation, code: Exit, least: float) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "model": selection.target.name,
        "variant": selection.variant,
        "parameters": selection.parameters,
        "states": found.states,
        "properties": list(found.properties),
        "left_out": list(found.left_out),
        "mutants": len(found.judged),
        **{answer: found.counts[answer] for answer in ANSWERS},
        "score": found.score,
        "least": least,
        "notice_nothing": list(found.idle),
        "judged": [_one(one) for one in found.judged],
        "parts": [
            {
                "property": one.part.property,
                "part": one.part.what,
                "line": None if one.part.loc is None else one.part.loc.line,
                "answer": one.answer,
                "needed_by": one.mutant or None,
            }
            for one in found.parts
        ],
    }


def _one(judged: JudgedMutant) -> dict[str, Any]:
    mutant, difference = judged.mutant, judged.difference
    return {
        "kind": mutant.kind,
        "action": mutant.action,
        "change": mutant.what,
        "file": None if mutant.loc is None else mutant.loc.file,
        "line": None if mutant.loc is None else mutant.loc.line,
        "answer": judged.answer,
        "noticed_by": list(judged.by),
        "because": judged.because or None,
        "difference": None
        if difference is None
        else {
            "behaviour": [step.label for step in difference.trace.steps],
            "gained": [label for label, _ in difference.gained],
            "lost": [label for label, _ in difference.lost],
        },
    }


def _lines(selection: Selection, found: Mutation) -> Iterator[Line]:
    yield line(StyledText(selection.name, "title"))
    if selection.parameters:
        yield line(parameters_text(selection.parameters), indent=2)
    yield BLANK
    noticed = Counter(name for one in found.judged for name in one.by)
    rows = [
        ("property", "notices"),
        *((name, str(noticed[name])) for name in noticed | dict.fromkeys(found.properties, 0)),
    ]
    for row in aligned(rows, right={1}):
        yield line("  ".join(row), indent=2)
    if found.left_out:
        yield line(f"not asked, since they do not hold: {', '.join(found.left_out)}", indent=2)
    for answer, title in ((SURVIVED, "noticed by no property"), (UNDECIDED, "undecided")):
        chosen = [one for one in found.judged if one.answer == answer]
        if chosen:
            yield BLANK
            yield line(StyledText(title, "title"))
        for one in chosen:
            yield from _survivor(one)
    for answer, title in (
        (NO_EFFECT, "no effect: the property holds with a stronger condition in its place"),
        (NOT_NEEDED, "not needed: the property without it notices the same mutants"),
        (OPEN, "undecided, of properties"),
    ):
        some = [one for one in found.parts if one.answer == answer]
        if some:
            yield BLANK
            yield line(StyledText(title, "title"))
        yield from (line(f"{one.part.property}: {one.part.what}", indent=2) for one in some)
    yield BLANK
    if found.parts:
        answers = Counter(one.answer for one in found.parts)
        said = ", ".join(f"{answers[a]} {a}" for a in (NEEDED, NO_EFFECT, NOT_NEEDED, OPEN) if answers[a])
        yield line(f"{number_of(len(found.parts), 'part')} of properties: {said}")
    counts = found.counts
    score = "no score" if found.score is None else f"score {100 * found.score:.1f} %"
    yield line(
        f"{number_of(len(found.judged), 'mutant')}: {', '.join(f'{counts[a]} {a}' for a in ANSWERS if counts[a])}; {score}"
    )
    if counts[EQUIVALENT]:
        yield line(f"equivalent: the same steps from all {number_of(found.states, 'reachable state')}", indent=2)


def _survivor(one: JudgedMutant) -> Iterator[Line]:
    mutant, difference = one.mutant, one.difference
    place = "" if mutant.loc is None else f" ({mutant.loc.short})"
    yield line(f"{mutant.label}{place}", indent=2)
    if one.because:
        yield line(StyledText(one.because, "faint"), indent=6)
    elif difference is None:
        yield line(StyledText("no property needs this fairness; the steps are the same", "faint"), indent=6)
    else:
        steps = [step.label for step in difference.trace.steps]
        shown = ", ".join(["...", *steps[-LAST_STEPS:]] if len(steps) > LAST_STEPS else steps)
        after = f"after {number_of(len(steps), 'step')}: {shown}" if steps else "in an initial state"
        yield line(StyledText(after, "faint"), indent=6)
        for who, some in (("only the mutant", difference.gained), ("only the model", difference.lost)):
            for label, does in some[:MOST_DIFFERENT]:
                yield line(StyledText(f"{who}: {label} {does}", "faint"), indent=6, hang=8)
            if len(some) > MOST_DIFFERENT:
                yield line(StyledText(f"{who}: {len(some) - MOST_DIFFERENT} steps more", "faint"), indent=6)
