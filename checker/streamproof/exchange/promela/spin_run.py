"""Running Spin's verifier on an exported model, and parsing its report.

Spin's exit code is 0 after a violation too, so the report is parsed line by line.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from textwrap import shorten

from streamproof.base.errors import SystemFailure
from streamproof.base.records import dataclass
from streamproof.exchange.promela.model import SPIN_OPTIONS, TEMPORARY, Promela
from streamproof.exchange.tool_run import folder_with, printed


class SearchOrder(Enum):
    """Spin's search order. Only breadth-first search gives shortest behaviours and levels."""

    BREADTH_FIRST = "breadth first"
    DEPTH_FIRST = "depth first"


@dataclass(frozen=True, slots=True)
class SpinOptions:
    """Options for Spin.

    `memory`: limit of its search, in MiB. `hash_bits`: the binary logarithm of the slots in its hash table; a bad
    choice costs time, never states. `depth`: maximum length of a path. `seconds`: limit for one search. `optimise`:
    option of the C compiler.
    """

    order: SearchOrder = SearchOrder.BREADTH_FIRST
    memory: int = 8_192
    hash_bits: int = 20
    depth: int = 1_000_000
    seconds: float = 3_600
    optimise: str = "-O2"


@dataclass(frozen=True, slots=True)
class SpinSeconds:
    """Times of translation to C, compilation, and search, in seconds."""

    spin: float
    cc: float
    pan: float

    @property
    def total(self) -> float:
        """Total time from the Promela text to the report."""
        return self.spin + self.cc + self.pan


@dataclass(frozen=True, slots=True)
class SpinReport:
    """The report of one search, in Spin's terms."""

    stored: int
    """States; in a breadth-first search without those inside the choice of the initial state."""
    matched: int
    """Transitions to known states."""
    depth: int
    found: Mapping[str, int]
    """The events, each with the depth of its first occurrence."""
    truncated: str | None
    """Why the search is incomplete; None if it is complete."""
    exact: bool
    """Whether the counts are exact: Spin rounds counts of more than eight digits."""
    seconds: SpinSeconds
    megabytes: float
    """Total memory used."""
    commands: tuple[str, ...]
    """The command line."""
    trail: tuple[str, ...] = ()
    """Spin's output when it replays the trail of the first event, if requested."""


class SpinGoal(Enum):
    """The goal of a search, in addition to failed assertions."""

    ASSERTIONS = "assertions"
    STUCK_STATES = "stuck states"
    CYCLES = "cycles"
    CLAIM = "acceptance cycles"
    """Behaviours that violate the claim of the text."""


def installed() -> str | None:
    """The missing program for running Spin, in a clause; None: nothing is missing."""
    for program, what in (("spin", "Spin"), ("cc", "a C compiler")):
        if shutil.which(program) is None:
            return f"{what} is not installed: program not found: '{program}'"
    return None


def run(
    model: Promela,
    options: SpinOptions,
    macros: Sequence[str] = (),
    goal: SpinGoal = SpinGoal.ASSERTIONS,
    folder: Path | None = None,
    *,
    trail: bool = False,
) -> SpinReport:
    """Searches every state and continues after an event (the first cycle suffices).

    With `trail`, the search ends at the first event, and the report contains the trail to it. `macros` are defined for
    the model. The search for cycles is depth first, whatever the options. Files are written to `folder`, or to a
    temporary one. Raises `SystemFailure` if Spin or a C compiler is missing or fails.
    """
    missing = installed()
    if missing is not None:
        raise SystemFailure(missing, remedy="install Spin and a C compiler, for example Debian's packages spin and gcc")
    with folder_with({"model.pml": model.text}, folder) as place:
        return _SpinProcess(model, options, macros, goal, place, trail).report()


MOST_SAID = 300
"""Maximum number of characters of a program's output in an error message: a line of Spin's can be as long as a claim."""
VECTOR_BYTES = 1024
"""Spin's default memory for a state."""


@dataclass
class _SpinProcess:
    model: Promela
    options: SpinOptions
    macros: Sequence[str]
    goal: SpinGoal
    folder: Path
    trail: bool = False
    commands: list[str] = field(default_factory=list)

    @property
    def deep(self) -> bool:
        return self.goal in _ENDLESS or self.options.order is SearchOrder.DEPTH_FIRST

    def report(self) -> SpinReport:
        spin = self._produce("pan.c", self._translation())
        cc = self._produce("pan", self._compilation())
        report = self._search(spin, cc)
        if self.trail and report.found:
            defined = self._translation()[2:]
            report = replace(report, trail=tuple(self._lines(["spin", "-t", "-p", "-g", "-w", *defined])))
        return report

    def _translation(self) -> list[str]:
        defined = [*self.macros, *([f"{TEMPORARY}=hidden"] if self.deep else [])]
        return ["spin", "-a", *SPIN_OPTIONS, *(f"-D{name}" for name in defined), "model.pml"]

    def _compilation(self) -> list[str]:
        if self.goal is SpinGoal.CLAIM:
            search = []
        elif self.goal is SpinGoal.CYCLES:
            search = ["-DNP", "-DNOSTUTTER"]
        else:
            search = ["-DSAFETY", "-DNOCLAIM"] if self.deep else ["-DBFS", "-DSAFETY", "-DNOCLAIM"]
        needed = 2 * self.model.bytes + 256
        vector = [f"-DVECTORSZ={needed}"] if needed > VECTOR_BYTES else []
        limits = [f"-DMEMLIM={self.options.memory}", *vector]
        return ["cc", self.options.optimise, "-w", *search, "-DNOREDUCE", "-DNOFAIR", *limits, "-o", "pan", "pan.c"]

    def _searching(self) -> list[str]:
        options = {SpinGoal.CYCLES: ["-l", "-c1"], SpinGoal.CLAIM: ["-a", "-c1"]}.get(
            self.goal, ["-c1" if self.trail else "-c0"]
        )
        ends = [] if self.goal is SpinGoal.STUCK_STATES else ["-E"]
        return ["./pan", "-n", *options, *ends, f"-w{self.options.hash_bits}", f"-m{self.options.depth}"]

    def _produce(self, result: str, command: list[str]) -> float:
        """Runs a command that writes a file; returns the seconds it took."""
        begun = time.perf_counter()
        lines = [line for line in self._lines(command) if line]
        wrong = next(
            (line for line in lines if "rror" in line), None
        )  # spin continues, and leaves an incomplete program
        if wrong is not None or not (self.folder / result).exists():
            said = shorten(wrong or next(iter(lines), "no output"), MOST_SAID)
            raise SystemFailure(f"{command[0]} failed: {said}", remedy=f"the command was: {' '.join(command)}")
        return time.perf_counter() - begun

    def _search(self, spin: float, cc: float) -> SpinReport:
        begun = time.perf_counter()
        reading = _SpinReading()
        for line in self._lines(self._searching()):
            reading.line(line)
        seconds = SpinSeconds(spin, cc, time.perf_counter() - begun)
        stops = self.trail or self.goal in _ENDLESS
        return reading.report(seconds, tuple(self.commands), stops=stops, breadth_first=not self.deep)

    def _lines(self, command: list[str]) -> Iterator[str]:
        """The output of a command, line by line. Ends the command at the time limit."""
        self.commands.append(" ".join(command))
        return printed(command, self.folder, self.options.seconds)


@dataclass
class _SpinReading:
    """The parsed lines of a report."""

    found: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    truncated: str | None = None
    last: str = "no output"

    def line(self, line: str) -> None:
        self.last = line.strip() or self.last
        event = _EVENT.match(line)
        if event is not None:
            self.found.setdefault(event["what"], int(event["depth"]))
            return
        for why in _CUT_SHORT:
            if why in line:
                self.truncated = self.truncated or why
        for name, pattern in _NUMBERS.items():
            number = pattern.search(line)
            if number is not None:
                self.numbers.setdefault(name, number[1])

    def report(
        self, seconds: SpinSeconds, commands: tuple[str, ...], *, stops: bool, breadth_first: bool
    ) -> SpinReport:
        if not {"stored", "matched", "depth"} <= self.numbers.keys():
            raise SystemFailure(f"Spin's search ended without a report: {self.last}")
        inside = self.numbers.get("atomic", "0") if breadth_first else "0"
        counts = (self.numbers["stored"], inside, self.numbers["matched"])
        if stops and self.found and self.truncated == _NOT_COMPLETED:
            self.truncated = None  # it stopped at its first event
        return SpinReport(
            stored=int(float(self.numbers["stored"])) - int(float(inside)),
            matched=int(float(self.numbers["matched"])),
            depth=int(self.numbers["depth"]),
            found=self.found,
            truncated=self.truncated,
            exact=not any("e" in number for number in counts),
            seconds=seconds,
            megabytes=float(self.numbers.get("megabytes", "0")),
            commands=commands,
        )


_ENDLESS = (SpinGoal.CYCLES, SpinGoal.CLAIM)
"""Events that are searched depth first, and only once."""
_NOT_COMPLETED = "Search not completed"
_CUT_SHORT = (
    "max search depth too small",
    "out of memory",
    "reached -DMEMLIM bound",
    "max queue depth",
    "hashtable full",
    _NOT_COMPLETED,
)
"""Parts of lines that report an incomplete search."""
_EVENT = re.compile(r"pan:\d+: (?P<what>.*) \(at depth (?P<depth>\d+)\)")
_NUMBERS = {
    "stored": re.compile(r"^\s*(\S+) states, stored"),
    "atomic": re.compile(r"^\s*(\S+) atomic steps"),
    "matched": re.compile(r"^\s*(\S+) states, matched"),
    "depth": re.compile(r"depth reached (\d+)"),
    "megabytes": re.compile(r"^\s*(\S+)\s+total actual memory usage"),
}
