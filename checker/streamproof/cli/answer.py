"""From what an engine found to what people and machines get: traces shown and kept, a report, an exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from streamproof import interrupts
from streamproof.cli.evidence import MISTAKE, Evidence, behaviour, confirm
from streamproof.cli.outputs import Folder, people, write_json
from streamproof.cli.selection import Selection
from streamproof.registry import first_line
from streamproof.report.console import print_check
from streamproof.report.model import CheckReport, Result
from streamproof.system.errors import Exit, StreamproofError, SystemFailure
from streamproof.system.foreign import visible
from streamproof.system.measure import Measured
from streamproof.system.memory import peak_bytes
from streamproof.system.model import System
from streamproof.system.records import dataclass, replace
from streamproof.system.verdict import CheckResult, Finding, Mistake, Seconds, Verdict

DEFAULT_OUT = Path("streamproof-out")
"""Where traces go when nobody says where: a folder per model and variant in it."""


@dataclass(frozen=True)
class Request:
    """One question to an engine: what was asked, in which words, and where the answer goes.

    `words` are the options beside the selection that ask the same again. `folder` None keeps no traces.
    """

    verb: str
    engine: str
    selection: Selection
    words: tuple[str, ...]
    folder: Folder | None
    json_to: str | None
    full: bool
    quiet: bool
    begun: float
    detailed: bool = False
    """Whether coverage is shown in full."""
    ending: tuple[str, ...] = ()
    """The options that end it early, which a question about one property does not need."""
    files: dict[str, str | None] = field(default_factory=dict)
    """The findings whose traces were reported, with the file of each; None where none is kept."""
    shown: list[str] = field(default_factory=list)
    """Those that were shown to people."""

    @property
    def reproduce(self) -> str:
        """The line that asks the same again."""
        return self.selection.command(self.verb, *self.words, *self.ending)

    def about(self, prop: str) -> str:
        """The line that asks the same about one property."""
        return self.selection.only(prop).command(self.verb, *self.words)

    def fail(self, error: StreamproofError) -> None:
        """Tell machines of an error that ended the attempt; people are told by whoever catches it."""
        if self.json_to is None:
            return
        report = CheckReport(
            model=self.selection.target.name,
            engine=self.engine,
            properties=(),
            variant=self.selection.variant,
            parameters=self.selection.parameters,
            result=CheckResult(seconds=Seconds(time.perf_counter() - self.begun)),
            reproduce=self.reproduce,
            error=error,
        )
        write_json(self._document(None, report, report.exit_code, {}), self.json_to)

    def answer(
        self,
        system: System,
        result: CheckResult,
        more: Mapping[str, Any] | None = None,
        measures: tuple[Measured, ...] = (),
    ) -> Exit:
        """Show and keep what was found; returns the exit code. `more` is added to the JSON.

        Raises `Unconfirmed` when the interpreter does not confirm a trace, and `SystemFailure`.
        """
        interrupts.answering()
        stream = people(self.json_to)
        for warning in self._warnings(system):
            sys.stderr.write(f"streamproof: warning: {visible(warning)}\n")
        mistake, shortest = result.mistake, result.shortest
        if mistake is not None:
            self._keep(behaviour(system, mistake, self.engine, self.reproduce, shortest=shortest), shown=True)
        for finding in sorted(result.findings, key=_first_shown):
            if mistake is None or finding.verdict is not Verdict.ERROR:  # the model's mistake speaks for all of them
                self.report(system, finding, shortest=shortest)
        if len(self.shown) > 1:
            stream.write("\n")
        if self.folder is not None:
            self.folder.forget([*(p.name for p in self.selection.listed()), MISTAKE])
        report = CheckReport(
            model=system.name,
            engine=self.engine,
            properties=tuple(self._result(finding, mistake) for finding in result.findings),
            result=replace(result, seconds=replace(result.seconds, total=time.perf_counter() - self.begun)),
            variant=system.variant,
            parameters=system.parameters,
            peak_bytes=peak_bytes(),
            reproduce=self.reproduce,
            error=None if mistake is None else mistake.error,
            measures=measures,
        )
        code = report.exit_code
        if self.json_to is not None:
            write_json(self._document(system, report, code, more or {}), self.json_to)
        print_check(report, stream, detailed=self.detailed)
        return code

    def _document(
        self, system: System | None, report: CheckReport, code: Exit, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        more = {"warnings": self._warnings(system), **more}
        return {**report.to_json(), "schema": f"streamproof.{self.verb}/1", "exit_code": int(code), **more}

    def _warnings(self, system: System | None) -> list[str]:
        """What is probably a slip in the model."""
        return self.selection.target.warnings(self.selection.variant, system)

    def report(self, system: System, finding: Finding, *, shortest: bool = True) -> None:
        """Keep the trace of a finding, once, and show it where it is a violation: during the search, or after it.

        Raises `Unconfirmed` and `SystemFailure`.
        """
        if finding.property in self.files:
            return
        again = self.about(finding.property)
        evidence = confirm(system, finding, self.engine, again, shortest=shortest)
        if evidence is not None:
            self._keep(evidence, shown=finding.verdict in (Verdict.VIOLATED, Verdict.ERROR))

    def _keep(self, evidence: Evidence, *, shown: bool) -> None:
        """Write a trace and show it: the first in full, or the way to the model's mistake; the others in a line."""
        name, stream = evidence.name, people(self.json_to)
        file = self.files[name] = None if self.folder is None else evidence.write(self.folder)
        if self.quiet or not shown:
            return
        if self.shown and name != MISTAKE:
            steps = len(evidence.trace.steps)
            stream.write(
                f"also violated, after {steps} step{'' if steps == 1 else 's'}: {name}"
                f" (--property {name} shows its counterexample)\n"
            )
        else:
            evidence.show(stream, file=file, full=self.full)
            stream.write("\n")
        self.shown.append(name)
        stream.flush()

    def _result(self, finding: Finding, mistake: Mistake | None) -> Result:
        expected = self.selection.expected(finding.property)
        if mistake is not None and finding.verdict is Verdict.ERROR:
            # The report gives the mistake itself, once, with its place and remedy.
            undecided = replace(finding, because="not decided: the model itself makes a mistake on the way")
            return Result(undecided, expected, self.files.get(MISTAKE))
        return Result(replace(finding, because=first_line(finding.because)), expected, self.files.get(finding.property))


def _first_shown(finding: Finding) -> tuple[bool, int]:
    """Mistakes come before violations, and what shows sooner comes first."""
    return finding.verdict is not Verdict.ERROR, 0 if finding.trace is None else len(finding.trace.steps)


def trace_folder(out: Path | None, selection: Selection) -> Folder | None:
    """The folder for traces of the chosen properties, when it can be written.

    Raises `SystemFailure` for an `out` that cannot; the default folder, which nobody asked for, is done without.
    """
    folder = Folder(out or DEFAULT_OUT / selection.name)
    names = [*(p.name for p in selection.listed()), MISTAKE]
    try:
        folder.expect_writable(f"{name}{suffix}" for name in names for suffix in (".itf.json", ".txt"))
    except SystemFailure as failure:
        if out is not None:
            raise
        sys.stderr.write(f"streamproof: warning: {failure.message}; counterexamples are shown, but not kept\n")
        return None
    return folder


def tell_left_out(names: Sequence[str], json_to: str | None) -> None:
    """Say which properties an engine was not asked about, because it could never decide them."""
    if names:
        people(json_to).write(f"not supported by this engine: {', '.join(names)}; use streamproof check\n")
