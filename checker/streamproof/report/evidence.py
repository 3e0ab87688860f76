"""Confirmed traces: written as ITF and text, printed on the console."""

from __future__ import annotations

from typing import TextIO

from streamproof.base.files import Folder
from streamproof.base.records import dataclass, replace
from streamproof.exchange.itf.writing import Origin, itf_text
from streamproof.report.check_report import MISTAKE
from streamproof.report.console import print_lines
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Finding, Mistake, Trace
from streamproof.traces.render import About, counterexample, render_text
from streamproof.traces.replay import confirm_finding, replay


@dataclass(frozen=True, slots=True)
class Evidence:
    """A trace confirmed by the interpreter.

    `prop` is the property that it violates or reaches; None for a trace to an evaluation error of the model or a property.
    """

    name: str
    system: System
    trace: Trace
    prop: Property | None
    about: About
    origin: Origin | None = None

    @property
    def files(self) -> tuple[str, str]:
        """The names of its two files."""
        return f"{self.name}.itf.json", f"{self.name}.txt"

    def write(self, folder: Folder) -> str:
        """Write both files; returns the path of the first. Raises `SystemFailure`."""
        itf, text = self.files
        path = folder.write(itf, itf_text(self.system, self.trace, self.prop, self.origin), self.name)
        folder.write(text, self.text(), self.name)
        return str(path)

    def text(self) -> str:
        """The content of the text file; it names the ITF file beside it."""
        about = replace(self.about, file=f"{self.name}.itf.json")
        return render_text(self.system, self.prop, self.trace, about=about)

    def show(self, stream: TextIO, *, file: str | None, full: bool) -> None:
        """Print the trace."""
        about = replace(self.about, file=file or "")
        print_counterexample(self.system, self.prop, self.trace, about=about, full=full, stream=stream)


def confirm(system: System, finding: Finding, engine: str, reproduce: str, *, shortest: bool = True) -> Evidence | None:
    """The evidence for a finding; None if it has no trace. Raises `Unconfirmed`."""
    if finding.trace is None:
        return None
    error = confirm_finding(system, finding, engine)
    least = finding.shortest if finding.kind in (Kind.TERMINATION, Kind.TEMPORAL) else shortest
    about = About(engine=f"{engine} engine", shortest=least, replayed=True, reproduce=reproduce, error=error)
    prop = None if error else system.property(finding.property)
    return Evidence(finding.property, system, finding.trace, prop, about)


def behaviour(system: System, mistake: Mistake, engine: str, reproduce: str, *, shortest: bool = True) -> Evidence:
    """The evidence for an evaluation error of the model: a trace to its state."""
    replay(system, mistake.trace)
    about = About(f"{engine} engine", shortest=shortest, replayed=True, reproduce=reproduce, error=mistake.error)
    return Evidence(MISTAKE, system, mistake.trace, None, about)


def print_counterexample(
    system: System,
    prop: Property | None,
    trace: Trace,
    *,
    about: About | None = None,
    full: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Write a trace that `traces.replay.verify` has passed; see `traces.render.counterexample`."""
    print_lines(counterexample(system, prop, trace, about=about, full=full), stream)
