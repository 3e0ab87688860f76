"""From what an engine found to what people and machines get: traces shown and kept, a report, an exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof import interrupts
from streamproof.cli.engines import Outcome
from streamproof.cli.evidence import MISTAKE, Evidence, behaviour, confirm
from streamproof.cli.outputs import Folder, people, write_json
from streamproof.cli.selection import Selection
from streamproof.registry import first_line
from streamproof.report.console import print_check
from streamproof.report.model import CheckReport, Result, Seconds
from streamproof.system.errors import Exit, StreamproofError, SystemFailure
from streamproof.system.measure import Measured
from streamproof.system.memory import peak_bytes
from streamproof.system.model import System
from streamproof.system.records import dataclass, replace
from streamproof.system.verdict import Finding, Verdict

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

    @property
    def reproduce(self) -> str:
        """The line that asks the same again."""
        return self.selection.command(self.verb, *self.words)

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
            seconds=Seconds(total=time.perf_counter() - self.begun),
            reproduce=self.reproduce,
            error=error,
        )
        write_json(self._document(report, report.exit_code, {}), self.json_to)

    def answer(
        self,
        system: System,
        outcome: Outcome,
        more: Mapping[str, Any] | None = None,
        measures: tuple[Measured, ...] = (),
    ) -> Exit:
        """Show and keep what was found; returns the exit code. `more` is added to the JSON.

        Raises `Unconfirmed` when the interpreter does not confirm a trace, and `SystemFailure`.
        """
        interrupts.answering()
        stream = people(self.json_to)
        for warning in self._warnings():
            sys.stderr.write(f"streamproof: warning: {warning}\n")
        evidence = self._evidence(system, outcome)
        files = {} if self.folder is None else self._keep(self.folder, evidence)
        if not self.quiet:
            self._show(outcome, evidence, files)
        report = CheckReport(
            model=system.name,
            engine=self.engine,
            properties=tuple(self._result(finding, outcome, files) for finding in outcome.findings),
            variant=system.variant,
            parameters=system.parameters,
            seconds=Seconds(
                time.perf_counter() - self.begun,
                outcome.compile_seconds,
                outcome.explore_seconds,
                outcome.liveness_seconds,
            ),
            counts=outcome.counts,
            peak_bytes=peak_bytes(),
            coverage=outcome.coverage,
            reductions=outcome.reductions,
            reproduce=self.reproduce,
            error=outcome.mistake[1] if outcome.mistake else None,
            notes=outcome.notes,
            interrupted=outcome.interrupted,
            measures=measures,
        )
        code = report.exit_code
        if self.json_to is not None:
            write_json(self._document(report, code, more or {}), self.json_to)
        print_check(report, stream, detailed=self.detailed)
        return code

    def _document(self, report: CheckReport, code: Exit, more: Mapping[str, Any]) -> dict[str, Any]:
        more = {"warnings": self._warnings(), **more}
        return {**report.to_json(), "schema": f"streamproof.{self.verb}/1", "exit_code": int(code), **more}

    def _warnings(self) -> list[str]:
        """What is probably a slip in the model."""
        return self.selection.target.warnings(self.selection.variant)

    def _evidence(self, system: System, outcome: Outcome) -> list[Evidence]:
        found = []
        if outcome.mistake is not None:
            found.append(behaviour(system, *outcome.mistake, self.engine, self.reproduce, shortest=outcome.shortest))
        for finding in outcome.findings:
            if outcome.mistake is not None and finding.verdict is Verdict.ERROR:
                continue  # the mistake of the model speaks for all that it kept from being decided
            again = self.about(finding.property)
            evidence = confirm(system, finding, self.engine, again, shortest=outcome.shortest)
            if evidence is not None:
                found.append(evidence)
        return found

    def _show(self, outcome: Outcome, evidence: Sequence[Evidence], files: Mapping[str, str]) -> None:
        """The way to the model's mistake, or the shortest counterexample; the others are named."""
        broken = [e for e in evidence if e.prop is None or outcome.finding(e.name).verdict is Verdict.VIOLATED]
        if not broken:
            return
        stream = people(self.json_to)
        first = min(broken, key=lambda e: (e.prop is not None, len(e.trace.steps)))
        first.show(stream, file=files.get(first.name), full=self.full)
        others = [e.name for e in broken if e is not first]
        if others:
            some = f"{len(others)} more {'is' if len(others) == 1 else 'are'} violated"
            stream.write(f"\n{some} ({', '.join(others)}); --property NAME shows its counterexample.\n")
        stream.write("\n")

    def _keep(self, folder: Folder, evidence: Sequence[Evidence]) -> dict[str, str]:
        """The paths of the ITF files by property; older files of properties that have no trace any more are removed."""
        if evidence:
            folder.announce({name: shown.name for shown in evidence for name in shown.files})
        files = {shown.name: shown.write(folder) for shown in evidence}
        folder.forget([*(p.name for p in self.selection.listed()), MISTAKE])
        return files

    def _result(self, finding: Finding, outcome: Outcome, files: Mapping[str, str]) -> Result:
        expected = self.selection.expected(finding.property)
        if outcome.mistake is not None and finding.verdict is Verdict.ERROR:
            # The report gives the mistake itself, once, with its place and remedy.
            undecided = replace(finding, because="not decided: the model itself makes a mistake on the way")
            return Result(undecided, expected, files.get(MISTAKE))
        return Result(replace(finding, because=first_line(finding.because)), expected, files.get(finding.property))


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
        people(json_to).write(f"not by this engine: {', '.join(names)} (streamproof check decides them)\n")
