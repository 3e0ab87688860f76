"""``streamproof check``: decide every property of a model, by exhaustive search or by bounded model checking."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from streamproof import interrupts
from streamproof.base.errors import StreamproofError, TooLarge, UsageError
from streamproof.base.files import CERTIFICATE, DOT, expect_writable, write
from streamproof.base.options import SOLVER_DEPTH, TIERS, SearchOptions, bytes_text, given_of
from streamproof.base.records import replace
from streamproof.base.text import visible
from streamproof.cli.answer import Request, out_option, print_left_out, trace_folder
from streamproof.cli.beside import cautioned, judged_beside
from streamproof.cli.outputs import EngineProgress, ci_options, expect_json_writable, people
from streamproof.cli.selection import (
    certificate_option,
    choice_option,
    json_option,
    limited_by,
    model_options,
    number_option,
    path_option,
    property_option,
    resource_options,
    timeout_option,
)
from streamproof.cli.verbs import Verb
from streamproof.engines.registry import CHECKS, RegisteredEngine, explored
from streamproof.selection import Selection, select
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Finding, Measure, Measured


@click.command(
    "check",
    cls=Verb,
    short_help="Decide every property of a model.",
    example="streamproof check failover --variant no-versioning --size small",
)
@model_options
@property_option
@choice_option(
    "--engine",
    choices=CHECKS,
    help="Search all reachable states, or all behaviours of up to --depth steps with a solver.",
)
@number_option("--max-states", help="Stop after N distinct states.")
@click.option("--max-depth", type=click.IntRange(min=1), hidden=True, help="Stop after N breadth-first levels.")
@number_option("--max-violations", help="Stop after N violated properties.")
@click.option("--first", is_flag=True, help="Stop at the first violation: --max-violations 1.")
@number_option(
    "--depth", help=f"Stop N steps after the initial states.  [default: no limit, with bmc {SOLVER_DEPTH}]", least=0
)
@timeout_option("Stop after SECONDS.", "time_limit")
@out_option
@path_option("--dot", "FILE", "Draw the graph of reachable states.")
@click.option(
    "--coverage", is_flag=True, help="Count every condition of every guard, and list actions, conditions and levels."
)
@click.option("--symmetry", is_flag=True, help="Symmetry reduction: search one state of each orbit under renaming.")
@click.option("--por", is_flag=True, help="Partial-order reduction: leave out redundant orders of independent steps.")
@click.option("--explore-only", is_flag=True, help="Search and count the states; check no property.")
@resource_options
@certificate_option
@click.option("--agree", is_flag=True, help="Run every engine and compare the results.")
@click.option(
    "--agree-limit",
    "agree_limits",
    multiple=True,
    metavar="ENGINE=N",
    help="With --agree: largest number of states for interpreter, python, spin or tlc.",
)
@click.option("--full", is_flag=True, help="Show the whole state after every step of a counterexample.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no counterexamples, only the outcome.")
@json_option
@ci_options
@limited_by("time_limit")
def command(
    model: str,
    variant: str | None,
    size: str | None,
    parameters: Sequence[str],
    properties: Sequence[str],
    engine: str,
    max_states: int | None,
    max_depth: int | None,
    max_violations: int | None,
    first: bool,
    depth: int | None,
    time_limit: float | None,
    out: Path | None,
    dot: Path | None,
    coverage: bool,
    symmetry: bool,
    por: bool,
    explore_only: bool,
    resources: SearchOptions,
    certificate: Path | None,
    agree: bool,
    agree_limits: Sequence[str],
    full: bool,
    quiet: bool,
    json_to: str | None,
) -> int:
    """Decide every property of MODEL, and show a shortest counterexample to each violated one.

    Counterexamples are printed, and written to a folder as ITF (NAME.itf.json) and as text (NAME.txt). An expected
    violation, such as that of a variant, has the same exit code as any other.
    """
    begun = time.perf_counter()
    selection = select(model, variant, size, parameters, properties, answering=True)
    if explore_only:
        _expect_exploration(properties, engine, certificate, {"--symmetry": symmetry, "--por": por})
        selection = replace(selection, properties=())
    facts, cautions = selection.facts(), cautioned(selection)
    if not quiet:
        people(json_to).writelines(f"{visible(text)}\n" for text in facts)
    if agree:
        from streamproof.cli.agree import limits_of, run_agree

        _expect_no_more()
        _expect_something(selection, selection.listed())
        for other in selection.beside():
            why = f"--agree compares engines on one machine, and variant {other.variant} is judged beside this one"
            raise UsageError(why, remedy=f"leave out --agree, or add --variant {other.variant}")
        return run_agree(selection, limits_of(agree_limits, depth, time_limit), json_to, quiet=quiet)
    if agree_limits:
        raise UsageError("--agree-limit requires --agree", remedy="add --agree")
    if max_depth is not None and depth is not None:
        raise UsageError("--max-depth is an older name of --depth", remedy="leave out --max-depth")
    if first and max_violations is not None:
        raise UsageError("--first is --max-violations 1", remedy="leave out one of the two")
    options = replace(
        resources,
        properties=selection.properties,
        max_states=max_states,
        max_depth=max_depth if depth is None else depth + 1,  # levels: the initial states are the first
        time_limit=time_limit,
        stop_when_decided=bool(selection.properties) and not coverage and dot is None,
        max_violations=1 if first else max_violations,
        symmetry=symmetry,
        por=por,
    )
    chosen = CHECKS[engine]
    chosen.expect(options)
    expect_json_writable(json_to, "streamproof.check/1")
    if engine == "bmc" and (coverage or dot is not None):
        wanted = "--coverage" if coverage else "--dot"
        raise UsageError(f"bmc has no {wanted}: it visits no states", remedy=f"leave out {wanted}, or --engine bmc")
    if (symmetry or por) and (coverage or dot is not None):
        raise UsageError(
            "a reduced search does not visit all states and steps",
            remedy=f"leave out {given_of('--coverage', '--dot')}, or {given_of('--symmetry', '--por')}",
        )
    if dot is not None:
        expect_writable(dot, DOT)
    if certificate is not None:
        expect_writable(certificate, CERTIFICATE)
    folder = trace_folder(out, selection)
    flags = {"--coverage": coverage, "--explore-only": explore_only}
    words = (*_option_words(engine, options), *(name for name, given in flags.items() if given))
    most = options.max_violations
    ending = () if most is None else ("--first",) if most == 1 else ("--max-violations", str(most))
    request = Request(
        *("check", engine, selection, words, folder, json_to, full, quiet, begun, coverage, ending), cautions=cautions
    )
    limited = time_limit is not None or max_states is not None or options.max_depth is not None
    try:
        selection.target.expect_feasible(variant, selection.given, search=not limited and not (first or max_violations))
        beside = judged_beside(request, out, lambda s, r: _run(chosen, s, options, r)) if not explore_only else ()
        system, quantities = request.system(), selection.measures()
        _expect_something(selection, system.properties or quantities or explore_only)
        result = _run(chosen, system, options, request)
        names = ", ".join(p.name for p in selection.listed())
        if names and not (result.findings or result.mistake or result.interrupted):
            why = f"{engine} supports none of the properties: {names}"
            raise UsageError(why, remedy=f"leave out --engine {engine}, or choose other properties")
        with interrupts.unlimited():  # the results are reported even if the search used up the time
            decided = {finding.property for finding in result.findings}
            left_out = [p.name for p in selection.listed() if p.name not in decided]
            more: dict[str, Any] = {"not_for_this_engine": left_out, "facts": facts}
            if certificate is not None:
                from streamproof.cli.certificate import certificate_json, certify, print_certificate

                written = certify(certificate, selection, system, result)
                more["certificate"] = certificate_json(written)
            found = _measured(quantities, result)
            undrawn = None if dot is None else _too_large_to_draw(result, dot)
            code = request.answer(system, result, more, found, beside, undrawn)
    except StreamproofError as error:
        request.fail(error, {"facts": facts})
        raise
    print_left_out(left_out, json_to)
    if certificate is not None:
        print_certificate(written, selection, json_to)
    if undrawn is not None:
        sys.stderr.write(f"streamproof: error: {visible(undrawn.message)}\n  {undrawn.remedy}\n")
    elif dot is not None:
        _draw(result, dot)
    return code


def _expect_something(selection: Selection, asked: object) -> None:
    """Raises `UsageError` for a model without a property and a quantity, unless its states alone are asked for."""
    if not asked:
        remedy = "mark one, as @invariant; or count its states with --explore-only"
        raise UsageError(f"{selection.name} has no property to check", remedy=remedy)


def _expect_exploration(
    properties: Sequence[str], engine: str, certificate: Path | None, reductions: Mapping[str, bool]
) -> None:
    """Raises `UsageError` for options that a search without properties does not support."""
    asked = {"--property": properties, "--certificate": certificate, "--engine bmc": engine == "bmc", **reductions}
    for name in (name for name, given in asked.items() if given):
        raise UsageError(
            f"--explore-only counts all states: it has no {name}", remedy=f"leave out {name}, or --explore-only"
        )


WITH_AGREE = {
    *("model", "variant", "size", "parameters", "properties", "depth", "time_limit"),
    *("agree", "agree_limits", "quiet", "json_to"),
}
"""The parameters of this command that --agree supports."""


def _expect_no_more() -> None:
    """Raises `UsageError` for an option that --agree does not support."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in WITH_AGREE and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--agree does not support {parameter.opts[-1]}", remedy=f"leave out {parameter.opts[-1]}, or --agree"
            )


def _option_words(engine: str, options: SearchOptions) -> tuple[str, ...]:
    """The command-line words for the engine and its options; --resume is left out, so a repetition starts from the
    beginning."""
    given = {
        "--engine": None if engine == next(iter(CHECKS)) else engine,
        "--max-states": options.max_states,
        "--depth": None if options.max_depth is None else options.max_depth - 1,
        "--timeout": None if options.time_limit is None else f"{options.time_limit:g}",
        "--tier": None if options.tier == TIERS[0] else options.tier,
        "--workers": options.workers,
        "--memory": None if options.memory is None else bytes_text(options.memory),
        "--spill": options.spill,
    }
    flags = {"--symmetry": options.symmetry, "--por": options.por}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return (*words, *(name for name, wanted in flags.items() if wanted))


def _run(engine: RegisteredEngine, system: System, options: SearchOptions, request: Request) -> CheckResult:
    """The result of an engine; shows its progress unless the request is quiet, and reports each violation as it is found."""
    progress = None if request.quiet else EngineProgress()

    def report(finding: Finding) -> None:
        if progress is not None:
            progress.close()
        request.report(system, finding)

    try:
        found = engine.run(system, options, on_progress=progress, on_violation=report)
    finally:
        if progress is not None:
            progress.close()
    states = explored(found)
    return replace(found, coverage=states.detailed_coverage()) if states is not None and request.detailed else found


def _measured(measures: Sequence[Measure], result: CheckResult) -> tuple[Measured, ...]:
    """The largest values of the model's quantities, if states were visited and the run was not interrupted."""
    states = explored(result)
    if states is None or result.interrupted or not measures:
        return ()
    from streamproof.explicit.exploration import measured

    return measured(states, measures)


def _too_large_to_draw(result: CheckResult, path: Path) -> TooLarge | None:
    """The error for a graph of too many states."""
    from streamproof.exchange.drawings.dot import MAX_STATES

    states = result.counts.distinct if result.counts is not None else 0
    if states <= MAX_STATES:
        return None
    return TooLarge(
        f"{path} is not written: {states} states are more than the {MAX_STATES} that make a picture",
        remedy="choose smaller parameters, or leave out --dot",
    )


def _draw(result: CheckResult, path: Path) -> None:
    from streamproof.exchange.drawings.dot import MAX_STATES, search_dot

    search = explored(result)
    assert search is not None, "drawing is refused for engines that visit no states"
    write(path, search_dot(search.system, search.states(), result.findings, limit=MAX_STATES), DOT)
