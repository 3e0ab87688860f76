"""``streamproof check``: decide every property of a model, by exhaustive search or by bounded model checking."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from streamproof import interrupts
from streamproof.base.errors import Exit, StreamproofError, TooLarge, UsageError
from streamproof.base.files import CERTIFICATE, DOT, expect_writable, write
from streamproof.base.options import DEFAULTS, SearchOptions, flag, flag_words, given_of
from streamproof.base.records import dataclass, replace
from streamproof.base.text import visible
from streamproof.cli.answer import (
    Output,
    Request,
    cautioned,
    certificate_json,
    judged_beside,
    print_certificate,
    print_left_out,
    trace_folder,
)
from streamproof.cli.arguments import certificate_flag, given_options, limited, part, verb
from streamproof.cli.outputs import EngineProgress, expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.engines.registry import CHECKS, RegisteredEngine, explored
from streamproof.report.check_report import CheckReport, Result
from streamproof.selection import Selection
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Finding, Verdict


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments)
    engine: str = flag(
        "Search all reachable states, on one machine or on Spark, or all behaviours of up to --depth steps with a solver.",
        choices=CHECKS,
    )
    options: SearchOptions = part(
        SearchOptions,
        *("max_states", "max_violations", "max_depth", "time_limit", "symmetry", "por", "view", "tier", "workers"),
        *("memory", "spill", "master", "checkpoint", "resume"),
    )
    levels: int | None = flag("Stop after N breadth-first levels.", "--max-depth", hidden=True)
    first: bool = flag("Stop at the first violation: --max-violations 1.")
    dot: Path | None = flag("Draw the graph of reachable states.", unit="FILE")
    coverage: bool = flag("Count every condition of every guard, and list actions, conditions and levels.")
    watch: bool = flag("Check again whenever a Python file beside the model is saved, until Ctrl-C.")
    explore_only: bool = flag("Search and count the states; check no property.")
    certificate: Path | None = certificate_flag()
    agree: bool = flag("Run every engine and compare the results.")
    agree_limits: tuple[str, ...] = flag(
        "With --agree: largest number of states for interpreter, python, spin or tlc.",
        "--agree-limit",
        unit="ENGINE=N",
    )
    job_graph: str | None = flag(
        "A job of yours instead of a topology, for models of Flink's jobs: the REST API's answer about it.", unit="FILE"
    )
    what_if: str | None = flag(
        "With --job-graph: what restarts if lose=TASK, fail=TASK or lose-tm=ID, several with ; between them.",
        unit="QUESTION",
    )
    output: Output = part(Output)

    @property
    def selected(self) -> ModelArguments:
        """The model with its parameters, a job graph and a question among them."""
        asked = (("job_graph", self.job_graph), ("what_if", self.what_if))
        words = tuple(f"{name}={value}" for name, value in asked if value is not None)
        return replace(self.chosen, parameters=(*words, *self.chosen.parameters))


@verb(
    "check",
    CheckArguments,
    example="streamproof check failover --variant no-versioning --size small",
)
@limited()
def command(given: CheckArguments) -> int:
    """Decide every property of MODEL, and show a shortest counterexample to each violated one.

    Counterexamples are printed, and written to a folder as ITF (NAME.itf.json) and as text (NAME.txt). An expected
    violation, such as that of a variant, has the same exit code as any other.

    Models of Flink's jobs (failover, regions) also check a job of yours, and whether it can hang: --job-graph FILE. They
    answer questions about it without a search: --what-if 'lose=TASK'.
    """
    if given.watch:
        from streamproof.cli.watching import watch

        with interrupts.unlimited():
            watch(given.chosen.model, [word for word in sys.argv[1:] if word != "--watch"])
    begun, engine, options, output = time.perf_counter(), given.engine, given.options, given.output
    if options.master is not None and engine == next(iter(CHECKS)):
        engine = "spark"
    coverage, dot, certificate, json_to = given.coverage, given.dot, given.certificate, output.json_to
    selection = given.selected.select(answering=True)
    if given.explore_only:
        _expect_exploration(given)
        selection = replace(selection, properties=())
    # No verdict depends on a question: what the model has otherwise than Flink is nothing that its answer says.
    facts, cautions = selection.facts(), () if selection.questions else cautioned(selection)
    if not output.quiet:
        people(json_to).writelines(f"{visible(text)}\n" for text in facts)
    if selection.questions:
        return _answered(selection, [*facts, *selection.answers()], len(facts), json_to)
    if given.agree:
        from streamproof.cli.agree import limits_of, run_agree

        _expect_no_more(WITH_AGREE, "--agree")
        _expect_something(selection, selection.listed())
        for other in selection.beside():
            why = f"--agree compares engines on one machine, and variant {other.variant} is judged beside this one"
            raise UsageError(why, remedy=f"leave out --agree, or add --variant {other.variant}")
        return run_agree(selection, limits_of(given.agree_limits, options), json_to, quiet=output.quiet)
    if given.agree_limits:
        raise UsageError("--agree-limit requires --agree", remedy="add --agree")
    if given.levels is not None and options.max_depth is not None:
        raise UsageError("--max-depth is an older name of --depth", remedy="leave out --max-depth")
    if given.first and options.max_violations is not None:
        raise UsageError("--first is --max-violations 1", remedy="leave out one of the two")
    options = replace(
        options,
        properties=selection.properties,
        max_depth=options.max_depth if given.levels is None else given.levels,
        stop_when_decided=bool(selection.properties) and not coverage and dot is None,
        max_violations=1 if given.first else options.max_violations,
    )
    chosen = CHECKS[engine]
    chosen.expect(options)
    expect_json_writable(json_to, "streamproof.check/1")
    if engine == "bmc" and (coverage or dot is not None):
        wanted = "--coverage" if coverage else "--dot"
        raise UsageError(f"bmc has no {wanted}: it visits no states", remedy=f"leave out {wanted}, or --engine bmc")
    if options.reduced and (coverage or dot is not None):
        raise UsageError(
            "a reduced search does not visit all states and steps",
            remedy=f"leave out {given_of('--coverage', '--dot')}, or {given_of('--symmetry', '--por', '--view')}",
        )
    if dot is not None:
        expect_writable(dot, DOT)
    if certificate is not None:
        expect_writable(certificate, CERTIFICATE)
    flags = {"--coverage": coverage, "--explore-only": given.explore_only}
    words = () if engine == next(iter(CHECKS)) else ("--engine", engine)
    words = (*words, *flag_words(options, DEFAULTS), *(name for name, wanted in flags.items() if wanted))
    most = options.max_violations
    ending = () if most is None else ("--first",) if most == 1 else ("--max-violations", str(most))
    folder = trace_folder(output.out, selection)
    request = Request("check", engine, selection, words, folder, output, begun, coverage, ending, cautions=cautions)
    limits = (options.time_limit, options.max_states, options.max_depth, most)
    decided = () if given.explore_only else tuple(Result(finding) for finding in selection.decided())
    try:
        unlimited = all(limit is None for limit in limits)
        try:
            selection.target.expect_feasible(selection.variant, selection.given, search=unlimited)
        except TooLarge as large:
            if all(row.finding.verdict is Verdict.HOLDS for row in decided):
                raise
            return request.refuted(decided, large.message, {"facts": facts})
        beside = () if given.explore_only else judged_beside(request, partial(_alone, chosen, options))
        system, quantities = request.system(), selection.measures()
        _expect_something(selection, system.properties or quantities or given.explore_only)
        result = _run(chosen, system, options, request)
        names = ", ".join(p.name for p in selection.listed())
        if names and not (result.findings or result.mistake or result.interrupted):
            why = f"{engine} supports none of the properties: {names}"
            raise UsageError(why, remedy=f"leave out --engine {engine}, or choose other properties")
        with interrupts.unlimited():  # the results are reported even if the search used up the time
            supported = {finding.property for finding in result.findings}
            left_out = [p.name for p in selection.listed() if p.name not in supported]
            more: dict[str, Any] = {"not_for_this_engine": left_out, "facts": facts}
            if certificate is not None:
                from streamproof.api.certificates import certify

                written = certify(certificate, selection, system, result)
                more["certificate"] = certificate_json(written)
            states = explored(result)
            found = states.measured(quantities) if states is not None and not result.interrupted else ()
            picture, undrawn = ("", None) if dot is None else _picture(result, dot)
            code = request.answer(system, result, more, found, (*decided, *beside), undrawn)
    except StreamproofError as error:
        request.fail(error, {"facts": facts}, decided)
        raise
    print_left_out(left_out, json_to)
    if certificate is not None:
        print_certificate(written, selection, json_to)
    if undrawn is not None:
        sys.stderr.write(f"streamproof: error: {visible(undrawn.message)}\n  {undrawn.remedy}\n")
    elif dot is not None:
        write(dot, picture, DOT)
    return code


WITH_QUESTIONS = {"model", "variant", "size", "parameters", "job_graph", "what_if", "quiet", "json_to"}
"""The parameters of this command that questions support."""


def _answered(selection: Selection, told: Sequence[str], facts: int, json_to: str | None) -> Exit:
    """Prints the answers to the questions, which follow the `facts` first lines, and writes all lines as JSON; nothing is
    searched, and no property gets a verdict."""
    _expect_no_more(WITH_QUESTIONS, "--" + selection.questions[0][0].replace("_", "-"))
    expect_json_writable(json_to, "streamproof.check/1")
    people(json_to).writelines(f"{visible(text)}\n" for text in told[facts:])
    report = CheckReport(
        selection.name, next(iter(CHECKS)), (), variant=selection.variant, parameters=selection.parameters
    )
    more = {"verdict": "answered", "facts": list(told), "warnings": []}
    write_json({**report.to_json(), **more, "reproduce": selection.command("check")}, json_to)
    return Exit.HOLDS


def _expect_something(selection: Selection, asked: object) -> None:
    """Raises `UsageError` for a model without a property and a quantity, unless its states alone are asked for."""
    if not asked:
        remedy = "mark one, as @invariant; or count its states with --explore-only"
        raise UsageError(f"{selection.name} has no property to check", remedy=remedy)


def _expect_exploration(given: CheckArguments) -> None:
    """Raises `UsageError` for options that a search without properties does not support."""
    asked = {
        "--property": given.chosen.properties,
        "--certificate": given.certificate,
        "--engine bmc": given.engine == "bmc",
        "--symmetry": given.options.symmetry,
        "--por": given.options.por,
        "--view": given.options.view,
    }
    for name in (name for name, wanted in asked.items() if wanted):
        raise UsageError(
            f"--explore-only counts all states: it has no {name}", remedy=f"leave out {name}, or --explore-only"
        )


WITH_AGREE = {
    *("model", "variant", "size", "parameters", "job_graph", "properties", "max_depth", "time_limit"),
    *("agree", "agree_limits", "quiet", "json_to"),
}
"""The parameters of this command that --agree supports."""


def _expect_no_more(supported: Collection[str], what: str) -> None:
    """Raises `UsageError` for an option that --agree or a question does not support."""
    for option in given_options():
        if option.name not in supported:
            name = option.opts[-1]
            raise UsageError(f"{what} does not support {name}", remedy=f"leave out {name}, or {what}")


def _alone(engine: RegisteredEngine, options: SearchOptions, system: System, request: Request) -> CheckResult:
    """The result about the chosen properties of a variant alone."""
    chosen = request.selection.properties
    alone = options if chosen is None else replace(options, properties=chosen, stop_when_decided=True)
    return _run(engine, system, alone, request)


def _run(engine: RegisteredEngine, system: System, options: SearchOptions, request: Request) -> CheckResult:
    """The result of an engine; shows its progress unless the request is quiet, and reports each violation as it is found."""
    progress = None if request.output.quiet else EngineProgress()

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


def _picture(result: CheckResult, path: Path) -> tuple[str, TooLarge | None]:
    """The graph of the states, or the error for too many of them."""
    from streamproof.exchange.drawings.dot import MAX_STATES, search_dot

    search = explored(result)
    assert search is not None, "drawing is refused for engines that visit no states"
    states = search.counts.distinct
    if states <= MAX_STATES:
        return search_dot(search.system, search.states(), result.findings, limit=MAX_STATES), None
    return "", TooLarge(
        f"{path} is not written: {states} states are more than the {MAX_STATES} that make a picture",
        remedy="choose smaller parameters, or leave out --dot",
    )
