"""``check --agree``: run all engines, and compare their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamproof import interrupts
from streamproof.agree.panel import LIMITED, PanelLimits, agree
from streamproof.agree.report import agreement_json, agreement_lines, heading_lines, result_line
from streamproof.base.errors import Exit, UsageError
from streamproof.base.options import SearchOptions
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.report.check_report import CheckReport, Result
from streamproof.report.console import print_lines
from streamproof.selection import Selection
from streamproof.system.verdict import Finding

if TYPE_CHECKING:
    from streamproof.agree.panel import Agreement, PanelLimits
    from streamproof.agree.result import EngineResult


def limits_of(texts: Sequence[str], options: SearchOptions) -> PanelLimits:
    """The limits of the command line. Raises `UsageError`."""
    given: dict[str, int] = {}
    for text in texts:
        engine, _, number = text.partition("=")
        if engine not in LIMITED or not (number.isascii() and number.isdigit()):
            raise UsageError(
                f"--agree-limit {text}: not a number of states for an engine",
                remedy=f"write ENGINE=N, with one of {', '.join(LIMITED)}",
            )
        given[engine] = int(number)
    limits = replace(PanelLimits(), **given)
    if options.max_depth is not None:
        limits = replace(limits, depth=options.depth)
    return limits if options.time_limit is None else replace(limits, seconds=options.time_limit)


def run_agree(selection: Selection, limits: PanelLimits, json_to: str | None, *, quiet: bool) -> Exit:
    """Run all engines and print the comparison; the exit code is 162 if engines disagree, else that of the verdicts."""
    expect_json_writable(json_to, "streamproof.agree/1")
    system, _ = selection.compared()
    if selection.properties is not None:
        system = replace(system, properties=tuple(p for p in system.properties if p.name in selection.properties))
    stream = people(json_to)
    print_lines(heading_lines(system), stream)
    with Status(live=not quiet) as status, interrupts.unlimited():  # each engine has its own limit

        def answered(result: EngineResult) -> None:
            status.clear()
            print_lines([result_line(result)], stream)
            stream.flush()

        agreement = agree(system, limits, status, answered)
    code = _exit_code(agreement)
    write_json({**agreement_json(agreement), "exit_code": int(code)}, json_to)
    print_lines(agreement_lines(agreement), stream)
    return code


def _exit_code(agreement: Agreement) -> Exit:
    if agreement.differences:
        return Exit.DISAGREE
    found = [Finding(p.name, p.kind, agreement.answer(p.name).verdict) for p in agreement.system.properties]
    return CheckReport(agreement.system.name, "agree", tuple(Result(f, None, None) for f in found)).exit_code
