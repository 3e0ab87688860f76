"""Running TLC on an exported system, and parsing its output.

TLC runs with ``-tool``, which numbers every message; output without numbers is also parsed. The environment variable
``TLA2TOOLS_JAR`` is the path of TLC.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import field
from pathlib import Path

from streamproof.base.errors import SystemFailure
from streamproof.base.records import dataclass
from streamproof.exchange.tla.module import Tla, TlcRun
from streamproof.exchange.tool_run import folder_with, printed

JAR = "TLA2TOOLS_JAR"
"""The environment variable with the path of ``tla2tools.jar``."""


@dataclass(frozen=True, slots=True)
class TlcOptions:
    """Options for TLC. `memory`: its heap, in MiB. `seconds`: limit for one run. `java`: more options of the virtual
    machine."""

    memory: int = 4_096
    seconds: float = 3_600
    java: tuple[str, ...] = ("-XX:+UseParallelGC",)


@dataclass(frozen=True, slots=True)
class Printed:
    """One state of a behaviour as TLC prints it: the operator that led to it, if printed, and the text."""

    operator: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation found by TLC. `name` is None if TLC does not name the temporal property."""

    name: str | None
    states: tuple[Printed, ...]
    back_to: int | None = None
    """The number, from 1, of the state that follows the last one."""
    stutters: bool = False
    """Whether the behaviour stutters in its last state."""


@dataclass(frozen=True, slots=True)
class TlcReport:
    """The results of one run, in TLC's terms."""

    generated: int
    distinct: int
    left: int
    """States on the queue, not expanded."""
    depth: int | None
    """Levels, the initial one being 1; None if the search was not completed."""
    violation: Violation | None
    error: str | None
    """Why TLC stopped, in its own words."""
    completed: bool
    """Whether every state was explored without a violation."""
    version: str
    seconds: float
    command: str


def jar() -> Path | None:
    """The path of TLC according to the environment."""
    return Path(os.environ[JAR]) if os.environ.get(JAR) else None


def installed() -> str | None:
    """The missing program or file for running TLC, in a clause; None: nothing is missing."""
    place = jar()
    if place is None:
        return f"the environment variable {JAR} does not name TLC's tla2tools.jar"
    if not place.is_file():
        return f"{JAR} names {place}, which is not a file"
    if shutil.which("java") is None:
        return "Java is not installed: program not found: 'java'"
    return None


def run(
    model: Tla, chosen: TlcRun | None = None, options: TlcOptions | None = None, folder: Path | None = None
) -> TlcReport:
    """Runs TLC on every state of a model; `chosen` is the configuration, by default the one with everything that must hold.

    TLC ends at the first violation. Files are written to `folder`, or to a temporary one. Raises `SystemFailure` if TLC
    is missing, exceeds the time limit, or prints unknown output.
    """
    missing = installed()
    if missing is not None:
        raise SystemFailure(missing, remedy=f"install Java, and set {JAR} to the path of a tla2tools.jar")
    chosen, options = chosen or model.runs[0], options or TlcOptions()
    files = {f"{name}.tla": text for name, text in model.modules.items()}
    # The option -deadlock is equivalent to the configuration: versions before 2.16 do not support CHECK_DEADLOCK.
    files["run.cfg"] = chosen.configuration(deadlock=False)
    command = [
        "java",
        # TLC unpacks its standard modules there and deletes them at the end, so the folder must not be shared with
        # another run.
        "-Djava.io.tmpdir=.",
        f"-Xmx{options.memory}m",
        *options.java,
        "-cp",
        str((jar() or Path()).resolve()),
        "tlc2.TLC",
        "-tool",
        "-workers",
        "1",
        "-deadlock",
        "-metadir",
        "states",
        "-config",
        "run.cfg",
        f"{chosen.module}.tla",
    ]
    begun = time.perf_counter()
    with folder_with(files, folder) as place:
        text = "\n".join(printed(command, place, options.seconds, "TLC"))
    return read_report(text, " ".join(command), time.perf_counter() - begun)


def read_report(text: str, command: str = "", seconds: float = 0.0) -> TlcReport:
    """The results in TLC's output, with or without the numbers of ``-tool``. Raises `SystemFailure` for output without
    a result."""
    reading = _TlcReading()
    for line in text.splitlines():
        reading.line(line)
    return reading.report(command, seconds)


@dataclass
class _TlcReading:
    """The parsed lines of an output."""

    last: str = "no output"
    version: str = ""
    counts: tuple[int, int, int] | None = None
    depth: int | None = None
    completed: bool = False
    violated: str | None = None
    some_temporal: bool = False
    error: list[str] = field(default_factory=list)
    failing: bool = False
    states: list[tuple[str | None, list[str]]] = field(default_factory=list)
    back_to: int | None = None
    stutters: bool = False
    inside: bool = False
    """Whether the lines are those of a state."""

    def line(self, line: str) -> None:
        marked = _MARK.match(line)
        if marked is not None:
            self.inside = False
            # Class 1 is an error; violations are recognised by their text.
            self.failing = marked["what"] == "START" and marked["class"] == "1" and marked["code"] not in _TOLD
            return
        if line.startswith("Error: "):
            line, self.failing = line.removeprefix("Error: "), True
        if self._of_result(line) or self._of_behaviour(line):
            self.failing = False
            return
        if self.inside:
            self._state_line(line)
            return
        if self.failing and line.strip():
            self.error.append(line.strip())
        self.last = line.strip() or self.last

    def _of_result(self, line: str) -> bool:
        if (found := _COUNTS.match(line)) is not None:
            numbers = (int(found[name].replace(",", "")) for name in ("generated", "distinct", "left"))
            self.counts = (next(numbers), next(numbers), next(numbers))
        elif (found := _DEPTH.search(line)) is not None:
            self.depth = int(found[1].replace(",", ""))
        elif line.startswith("Model checking completed. No error has been found."):
            self.completed = True
        elif (found := _VIOLATED.match(line)) is not None:
            self.violated = found["name"]
            self.inside = False
            if found["initial"]:
                self.states, self.inside = [("Initial predicate", [])], True
        elif _TEMPORAL.match(line) is not None:
            self.some_temporal = True
        elif line.startswith("TLC2 Version"):
            self.version = line.removeprefix("TLC2 Version").strip()
        else:
            return False
        return True

    def _of_behaviour(self, line: str) -> bool:
        if line.startswith(_BEHAVIOUR):
            self.states, self.inside = [], False
        elif (found := _BACK.match(line)) is not None:
            self.back_to, self.inside = int(found["tool"] or found["plain"]), False
        elif _STUTTERING.match(line) is not None:
            self.stutters, self.inside = True, False
        elif (found := _STATE.match(line)) is not None:
            self.states.append((found["operator"], []))
            self.inside = True
        else:
            return False
        return True

    def _state_line(self, line: str) -> None:
        if line.strip():
            self.states[-1][1].append(line)
        elif self.states[-1][1]:
            self.inside = False

    def report(self, command: str, seconds: float) -> TlcReport:
        violation = None
        if self.violated is not None or self.some_temporal:
            states = tuple(Printed(operator, "\n".join(lines)) for operator, lines in self.states)
            violation = Violation(self.violated, states, self.back_to, self.stutters)
        error = " ".join(self.error) or None
        if violation is None and error is None and not self.completed:
            raise SystemFailure(f"TLC ended without a result: {self.last}", remedy=f"the command was: {command}")
        generated, distinct, left = self.counts or (0, 0, 0)
        return TlcReport(
            generated,
            distinct,
            left,
            self.depth,
            violation,
            None if violation is not None else error,
            self.completed and violation is None and error is None,
            self.version,
            seconds,
            command,
        )


_MARK = re.compile(r"@!@!@(?P<what>START|END)MSG (?P<code>\d+)(?::(?P<class>\d+))? @!@!@")
_TOLD = frozenset({"2107", "2108", "2110", "2112", "2116", "2121", "2264"})
"""Messages that are errors of TLC and results for us: a violation, and its behaviour."""
_COUNTS = re.compile(
    r"(?P<generated>[\d,]+) states generated, (?P<distinct>[\d,]+) distinct states found, (?P<left>[\d,]+) states left"
)
_DEPTH = re.compile(r"^The depth of the complete state graph search is ([\d,]+)")
_VIOLATED = re.compile(
    r"(?:Invariant|Action property|Property|Temporal property) (?P<name>\S+|line .*) (?:is|was) violated"
    r"(?P<initial> by the initial state)?"
)
_TEMPORAL = re.compile(r"Temporal properties were violated")
_BEHAVIOUR = ("The behavior up to this point is", "The following behavior constitutes a counter-example")
_STATE = re.compile(r"(?:State )?\d+: <(?P<operator>.*?)(?:\(.*\))?(?: line \d.*)?>$")
_BACK = re.compile(r"(?:(?P<tool>\d+): Back to state|Back to state:? (?P<plain>\d+))")
_STUTTERING = re.compile(r"(?:State )?\d+: Stuttering")
