"""Variants that are judged beside the model itself, because they describe what really runs: rows of the same answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from streamproof import interrupts
from streamproof.base.records import replace
from streamproof.base.text import visible
from streamproof.cli.answer import Request, trace_folder
from streamproof.report.check_report import Result
from streamproof.selection import Selection
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult


def cautioned(selection: Selection) -> tuple[str, ...]:
    """The warnings about the chosen instance, printed to standard error however quiet the verb is."""
    found = selection.cautions()
    for text in found:
        sys.stderr.write(f"streamproof: warning: {visible(text)}\n")
    return found


def judged_beside(
    request: Request, out: Path | None, run: Callable[[System, Request], CheckResult]
) -> tuple[Result, ...]:
    """The findings about the variants beside the model, each named ``PROPERTY (VARIANT)``; saves and prints their traces.

    Raises as `Request.report` and the engine.
    """
    rows: list[Result] = []
    for other in request.selection.beside():
        folder = trace_folder(None if out is None else out / other.name, other)
        own = replace(request, selection=other, folder=folder, files={}, shown=[])
        system, _ = other.compared()
        result = run(system, own)
        with interrupts.unlimited():
            for finding in result.findings:
                own.report(system, finding, shortest=result.shortest)
            found = [own.result(finding, result.mistake) for finding in result.findings]
        rows += [
            replace(one, finding=replace(one.finding, property=f"{one.finding.property} ({other.variant})"))
            for one in found
        ]
    return tuple(rows)
