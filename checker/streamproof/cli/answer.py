"""Output of the result of an engine: traces printed and saved, the report, JSON, and the exit code."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof import interrupts
from streamproof.base.errors import Exit, Loc, StreamproofError, SystemFailure
from streamproof.base.files import Folder
from streamproof.base.options import flag, peak_bytes
from streamproof.base.records import dataclass, replace
from streamproof.base.text import visible
from streamproof.cli.arguments import json_flag, part
from streamproof.cli.outputs import CiFiles, people, write_json
from streamproof.model_registry import first_line, is_registered
from streamproof.report.check_report import MISTAKE, CheckReport, Result
from streamproof.report.console import print_check, print_lines, property_lines
from streamproof.selection import Selection
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Finding, Measured, Mistake, Seconds, Verdict

if TYPE_CHECKING:
    from streamproof.certify.writing import Written
    from streamproof.report.evidence import Evidence

DEFAULT_OUT = Path("streamproof-out")
"""Default folder of traces; it has one folder per model and variant."""


@dataclass(frozen=True, slots=True)
class Output:
    """What is printed and saved of the result of an engine."""

    out: Path | None = flag(f"Folder for counterexamples.  [default: {DEFAULT_OUT}/MODEL]", unit="DIR")
    full: bool = flag("Show the whole state after every step of a counterexample.", default=False)
    quiet: bool = flag("No progress and no counterexamples, only the outcome.", "-q", "--quiet", default=False)
    json_to: str | None = json_flag()
    ci: CiFiles | None = part(CiFiles)

    def write_ci_files(self, document: Mapping[str, Any], places: Mapping[str, Loc | None] | None = None) -> None:
        """Writes the files for continuous integration, of a verb that has them; see `CiFiles.write`."""
        if self.ci is not None:
            self.ci.write(document, self.json_to, places)


@dataclass(frozen=True)
class Request:
    """One run of an engine: the selection, the command-line options, and the places of the output.

    `words` are the options besides the selection that repeat the run. `folder` None: traces are not saved.
    """

    verb: str
    engine: str
    selection: Selection
    words: tuple[str, ...]
    folder: Folder | None
    output: Output
    begun: float
    detailed: bool = False
    """Whether coverage is printed in full."""
    ending: tuple[str, ...] = ()
    """The options for an early end, left out of the command for a single property."""
    files: dict[str, str | None] = field(default_factory=dict)
    """The properties whose traces were reported, with the file of each; None if it is not saved."""
    shown: list[str] = field(default_factory=list)
    """The properties whose traces were printed."""
    cautions: tuple[str, ...] = ()
    """Warnings about the instance, which the verb has printed."""
    read: dict[str, Any] = field(default_factory=lambda: {"plain_python": None})
    """The part of the JSON about the reading of the model."""

    def system(self) -> System:
        """The chosen system after a comparison with plain Python. Raises `ReadingDiffers`, and `ModelError`."""
        system, compared = self.selection.compared()
        self.read["plain_python"] = compared.to_json()
        return system

    @property
    def reproduce(self) -> str:
        """The command that repeats the run."""
        return self.selection.command(self.verb, *self.words, *self.ending)

    def about(self, prop: str) -> str:
        """The command that repeats the run for one property."""
        return self.selection.only(prop).command(self.verb, *self.words)

    def fail(
        self, error: StreamproofError, more: Mapping[str, Any] | None = None, decided: tuple[Result, ...] = ()
    ) -> None:
        """Write an error that ended the run as JSON, with `more` and what was `decided` without the run; the caller prints
        the error."""
        report = self._unrun(decided, error)
        document = self._document(None, report, report.exit_code, more or {})
        write_json(document, self.output.json_to)
        self.output.write_ci_files(document)
        if decided:
            print_lines(property_lines(report), people(self.output.json_to))

    def refuted(self, decided: tuple[Result, ...], why: str, more: Mapping[str, Any]) -> Exit:
        """Print and write a violation that was `decided` without a run of the engine, which is impossible: `why`."""
        open_ = [Finding(p.name, p.kind, Verdict.INCONCLUSIVE, because=why) for p in self.selection.listed()]
        report = self._unrun((*(Result(finding) for finding in open_), *decided))
        document = self._document(None, report, report.exit_code, more)
        write_json(document, self.output.json_to)
        self.output.write_ci_files(document)
        print_check(report, people(self.output.json_to))
        return report.exit_code

    def _unrun(self, rows: tuple[Result, ...], error: StreamproofError | None = None) -> CheckReport:
        """A report without a result of the engine."""
        return CheckReport(
            model=self.selection.target.name,
            engine=self.engine,
            properties=rows,
            variant=self.selection.variant,
            parameters=self.selection.parameters,
            result=CheckResult(seconds=Seconds(time.perf_counter() - self.begun)),
            reproduce=self.reproduce,
            error=error,
        )

    @interrupts.unlimited()  # a result is reported even if the engine used up the time
    def answer(
        self,
        system: System,
        result: CheckResult,
        more: Mapping[str, Any] | None = None,
        measures: tuple[Measured, ...] = (),
        beside: tuple[Result, ...] = (),
        missing: StreamproofError | None = None,
    ) -> Exit:
        """Print and save the result; returns the exit code. `more` is added to the JSON, `beside` to the properties. Unless a
        property is violated, the code is that of `missing`, an output that could not be made.

        Raises `Unconfirmed` if the interpreter does not confirm a trace, and `SystemFailure`.
        """
        stream = people(self.output.json_to)
        for warning in self._probable(system):
            sys.stderr.write(f"streamproof: warning: {visible(warning)}\n")
        mistake, shortest = result.mistake, result.shortest
        if mistake is not None:
            from streamproof.report.evidence import behaviour  # most runs have no such trace

            self._keep(behaviour(system, mistake, self.engine, self.reproduce, shortest=shortest), shown=True)
        for finding in sorted(result.findings, key=_first_shown):
            if mistake is None or finding.verdict is not Verdict.ERROR:  # else it is the evaluation error of the model
                self.report(system, finding, shortest=shortest)
        if len(self.shown) > 1:
            stream.write("\n")
        if self.folder is not None:
            self.folder.forget([*(p.name for p in self.selection.listed()), MISTAKE])
        report = CheckReport(
            model=system.name,
            engine=self.engine,
            properties=(*(self.result(finding, mistake) for finding in result.findings), *beside),
            result=replace(result, seconds=replace(result.seconds, total=time.perf_counter() - self.begun)),
            variant=system.variant,
            parameters=system.parameters,
            peak_bytes=peak_bytes(),
            reproduce=self.reproduce,
            error=None if mistake is None else mistake.error,
            measures=measures,
            constraint=None if system.constraint is None else system.constraint.text,
        )
        if report.verdict in (Verdict.HOLDS, Verdict.INCONCLUSIVE) and not result.interrupted:
            report = replace(report, error=missing)
        code = report.exit_code
        document = self._document(system, report, code, more or {})
        write_json(document, self.output.json_to)
        self.output.write_ci_files(document, {p.name: p.loc for p in system.properties})
        print_check(report, stream, detailed=self.detailed)
        return code

    def _document(
        self, system: System | None, report: CheckReport, code: Exit, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        more = {"warnings": [*self.cautions, *self._probable(system)], **self.read, **more}
        return {**report.to_json(), "schema": f"streamproof.{self.verb}/1", "exit_code": int(code), **more}

    def _probable(self, system: System | None) -> list[str]:
        """Probable mistakes in the model."""
        return self.selection.target.warnings(self.selection.variant, system)

    def report(self, system: System, finding: Finding, *, shortest: bool = True) -> None:
        """Save the trace of a finding, once, and print it if it is a violation; called during and after the search.

        Raises `Unconfirmed` and `SystemFailure`.
        """
        if finding.property in self.files or finding.trace is None:
            return
        from streamproof.report.evidence import confirm  # proofs have no traces

        again = self.about(finding.property)
        evidence = confirm(system, finding, self.engine, again, shortest=shortest)
        if evidence is not None:
            self._keep(evidence, shown=finding.verdict in (Verdict.VIOLATED, Verdict.ERROR))

    def _keep(self, evidence: Evidence, *, shown: bool) -> None:
        """Save a trace and print it: the first one, and that of an evaluation error, in full, the others in one line."""
        from streamproof.api.origin import origin_of

        evidence = replace(evidence, origin=origin_of(self.selection.target.text))
        name, stream = evidence.name, people(self.output.json_to)
        file = self.files[name] = None if self.folder is None else evidence.write(self.folder)
        if self.output.quiet or not shown:
            return
        if self.shown and name != MISTAKE:
            steps = len(evidence.trace.steps)
            stream.write(
                f"also violated, after {steps} step{'' if steps == 1 else 's'}: {name}"
                f" (--property {name} shows its counterexample)\n"
            )
        else:
            evidence.show(stream, file=file, full=self.output.full)
            stream.write("\n")
        self.shown.append(name)
        stream.flush()

    def result(self, finding: Finding, mistake: Mistake | None) -> Result:
        """The finding with its expected verdict and its file."""
        expected = self.selection.expected(finding.property)
        if mistake is not None and finding.verdict is Verdict.ERROR:
            # The report has the evaluation error itself, once, with its place and remedy.
            undecided = replace(finding, because="not decided: the model has an evaluation error")
            return Result(undecided, expected, self.files.get(MISTAKE))
        return Result(replace(finding, because=first_line(finding.because)), expected, self.files.get(finding.property))


def _first_shown(finding: Finding) -> tuple[bool, int]:
    """Sort key: evaluation errors before violations, shorter traces first."""
    return finding.verdict is not Verdict.ERROR, 0 if finding.trace is None else len(finding.trace.steps)


def trace_folder(out: Path | None, selection: Selection) -> Folder | None:
    """The folder for traces of the chosen properties.

    Raises `SystemFailure` if `out` cannot be written; None, with a warning, if the default folder cannot.
    """
    folder = Folder(out or DEFAULT_OUT / selection.name)
    names = [*(p.name for p in selection.listed()), MISTAKE]
    try:
        folder.expect_writable(f"{name}{suffix}" for name in names for suffix in (".itf.json", ".txt"))
    except SystemFailure as failure:
        if out is not None:
            raise
        sys.stderr.write(f"streamproof: warning: {failure.message}; counterexamples are printed, but not saved\n")
        return None
    return folder


def print_left_out(
    names: Sequence[str],
    json_to: str | None,
    remedy: str = "use streamproof check",
    why: str = "not supported by this engine",
) -> None:
    """Print the properties without a verdict, and what decides them."""
    if names:
        people(json_to).write(f"{why}: {', '.join(names)}; {remedy}\n")


def cautioned(selection: Selection) -> tuple[str, ...]:
    """The warnings about the chosen instance, printed to standard error however quiet the verb is."""
    found = selection.cautions()
    for text in found:
        sys.stderr.write(f"streamproof: warning: {visible(text)}\n")
    return found


def judged_beside(request: Request, run: Callable[[System, Request], CheckResult]) -> tuple[Result, ...]:
    """The findings about the variants beside the model, each named ``PROPERTY (VARIANT)``; saves and prints their traces.

    Raises as `Request.report` and the engine.
    """
    rows, out = list[Result](), request.output.out
    for other in request.selection.beside():
        folder = trace_folder(None if out is None else out / other.name, other)
        own = replace(request, selection=other, folder=folder, files={}, shown=[])
        system, _ = other.compared()
        result = run(system, own)
        with interrupts.unlimited():
            findings = [
                finding for finding in result.findings if finding.property in (other.properties or [finding.property])
            ]
            for finding in findings:
                own.report(system, finding, shortest=result.shortest)
            found = [own.result(finding, result.mistake) for finding in findings]
        rows += [
            replace(one, finding=replace(one.finding, property=f"{one.finding.property} ({other.variant})"))
            for one in found
        ]
    return tuple(rows)


def certificate_json(written: Written | None) -> dict[str, Any] | None:
    """The JSON of a certificate; null if none was requested or the run was interrupted."""
    if written is None:
        return None
    file = str(written.path) if written.claims else None
    return {"file": file, "bytes": written.size, "claims": written.claims, "without": written.without}


def print_certificate(
    written: Written | None, selection: Selection, json_to: str | None, lack: str = ": no verdict has evidence"
) -> None:
    """Print the content of the certificate, the command that verifies it, and the properties without certificate.

    `lack`: why no certificate was written, if no verdict is certified.
    """
    stream = people(json_to)
    if written is None:
        stream.write("no certificate was written: interrupted\n")
        return
    for name, why in written.without.items():
        stream.write(f"no certificate for {name}: {why}\n")
    if not written.claims:
        stream.write(f"no certificate was written{lack}\n")
        return
    text = selection.target.text
    model = () if is_registered(text) else ("--model", text)  # the place of a model that is not bundled
    command = shlex.join(["streamproof", "verify-certificate", str(written.path), *model])
    stream.write(f"certificate of {len(written.claims)} of {len(written.claims) + len(written.without)} verdicts,")
    stream.write(f" {written.size:,} bytes; {command}\n")
