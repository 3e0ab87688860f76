"""Options of searches and proofs, and their resources: properties, limits, tiers, files; memory, stack and time."""

from __future__ import annotations

import gc
import math
import os
import re
import resource
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from streamproof.base.errors import OutOfTime, UsageError
from streamproof.base.records import annotated, dataclass, described
from streamproof.interrupts import TimeUp, busy, doing, limit
from streamproof.interrupts import answer as answer

T = TypeVar("T")

AUTO, PYTHON, COMPILED = "auto", "python", "compiled"
TIERS = (AUTO, PYTHON, COMPILED)
"""The tiers by name, the default first."""
MOST_WORKERS = 64
"""Number of threads of one search."""
MOST_PATIENCE = 1_000_000.0
"""Largest time limit of a solver, in seconds; solvers count milliseconds in 32 bits."""
SOLVER_DEPTH = 20
"""Default depth of a solver's search, in steps."""
STRENGTH = 4
"""Default maximum strength of induction."""
WALKS, WALK_STEPS = 1000, 100
"""Default number of random walks, and of the steps of a walk."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The names of the options that the running verb has, and of those that the user gave."""

    offered: frozenset[str]
    given: frozenset[str]


command_line: ContextVar[CommandLine | None] = ContextVar("command line", default=None)
"""The command line that is executed; None where the program is used as a library."""


def either(*ways: str) -> str:
    """Several remedies as one, without those that name an option which the running verb lacks."""
    running = command_line.get()
    fit = [way for way in ways if running is None or running.offered.issuperset(re.findall(r"(?<!\S)--[a-z-]+", way))]
    return ", or ".join(filter(None, (", ".join(fit[:-1]), *fit[-1:])))


def given_of(*names: str) -> str:
    """Those of these options that the user gave: ``--symmetry and --por``. All of them where no verb runs."""
    running = command_line.get()
    given = [name for name in names if running is None or name in running.given]
    return " and ".join(filter(None, (", ".join(given[:-1]), *given[-1:])))


def flag(help: str, *names: str, default: Any = None, choices: Iterable[str] = (), **about: Any) -> Any:
    """A field of an options object with its option of the command line, of which it is the only description.

    `names`: of the option, by default that of the field; `choices`: the words, the default first. `about`: `unit` (the
    metavariable), `least` and `most` number, `kind` (the type of what is written, if not the field's), `read` and `text`
    (from what is written to the value, and back), `again` (False: the command that repeats the run leaves it out), and
    keywords of click's options.
    """
    words = tuple(choices)
    usual = words[0] if words and not about.get("required") else default
    return field(default=usual, metadata={"help": help, "names": names, "choices": words, **about})


def flag_words(options: object, usual: object) -> tuple[str, ...]:
    """The words of the command line that give the options which differ from `usual`, an object of the same class."""
    words: list[str] = []
    for name, (_, about) in described(type(options)).items():
        value = getattr(options, name)
        if about.get("help") and about.get("again", True) and value != getattr(usual, name):
            default = f"{value:g}" if isinstance(value, float) else str(value)
            words += [flag_name(name, about)]
            words += [] if value is True else [about["text"](value) if "text" in about else default]
    return tuple(words)


def flag_name(name: str, about: Mapping[str, Any]) -> str:
    """The long name of the option of a field."""
    return max(about["names"] or (f"--{name.replace('_', '-')}",), key=len)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes from which the explicit engine uses another method, of its tables and pieces, and of searches beside a proof.

    No verdict depends on them: tests run small systems through the code for large ones.
    """

    small_states: int = 5_000
    """Number of states (`search.Handover`) below which generated Python finishes before the compiler is loaded (0.1 s)."""
    many_hits: int = 500
    """Hits of step properties after which the functions are generated again, without decided properties."""
    large_property: int = 24
    """Number of terms of the next state above which a property is not specialised for each instance."""
    copied_variables: int = 8
    """Least number of adjacent unchanged variables that are copied as one slice, for shorter source text."""
    few_edges: int = 10_000
    """Largest number of edges for which a kernel runs as Python also on NumPy arrays, in less time than the compiler needs to
    be loaded."""
    word_bits: int = 64
    """Bits of a word of packed states, at most 64."""
    first_capacity: int = 1 << 20
    """Number of entries of the first hash table."""
    frugal: tuple[tuple[float, float], ...] = (
        (1.25, 0.75), (1.125, 0.75), (1.0, 0.8), (1.125, 0.85), (1.0, 0.85), (1.0625, 0.9), (1.0, 0.9),
    )  # fmt: skip
    """Growth and load factors of the table that are tried if memory does not suffice, best first; higher load factors are
    slower."""
    batch_states: int = 1024
    """Largest number of states of one batch of compiled code."""
    batch_successors: int = 1 << 16
    """Largest number of successors of one batch of compiled code."""
    box_bytes: int = 1 << 24
    """Capacity of a box between two workers, in bytes of states."""
    together: int = 1 << 18
    """Number of known states from which several workers are faster than one, for states of one word."""
    wide_together: int = 1 << 24
    """The same for wider states."""
    prefault_states: int = 1 << 21
    """Number of known states from which a helper thread faults in memory ahead of one worker; below, it costs time."""
    prefault_pause: float = 0.004
    """Interval between its checks of the progress of the search, in seconds."""
    divided_steps: int = 1 << 20
    """Number of steps from which two threads store them."""
    key_stride: int = 4096
    """Distance between two keys of the sparse index of a file of states."""
    wide_level: int = 500_000
    """Number of new states of a level from which a search on a cluster divides its states over files."""
    file_rows: int = 1 << 16
    """Number of rows of a batch in the files of a search on a cluster."""
    stored_window: int = 0
    """Number of states on disk that are entered into a table at a time, for the state graph; 0: as many as fit."""
    rival_turn: int = 500_000
    """Work of a reduction, in evaluated terms, before the first turn of the full search: about 0.03 s."""
    rival_share: int = 40
    """Work that the full search gets for each unit of work of generated Python, to have at least five times its time."""
    rival_successor: int = 1
    """Terms of generated Python that cost as much as a successor of compiled code."""
    rival_states: int = 1 << 32
    """Number of states after which the full search is given up; it is given up at half of the memory limit, too."""
    symmetry_effort: int = 20_000_000
    """Number of terms that are compared to verify a symmetry, in one or two minutes; beyond, it counts as not verified."""
    examined_states: tuple[int, ...] = (2_000, 20_000)
    """Numbers of states explored, one after the other, for one in which the antecedent of a proved property is true."""
    examining: float = 10.0
    """Time limit, in seconds, of each of these searches, and of the query that decides otherwise."""
    table_cells: int = 100_000_000
    """Largest table of constraints and SCCs."""
    node_slice: int = 1 << 18
    """Number of nodes of a product whose edges are looked up in it at a time."""
    cycle_work: int = 300_000
    """Number of edges that are followed to find a shortest lasso; beyond, the shortest so far is taken."""


TUNING = Tuning()
"""The sizes outside tests."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of one search, proof or simulation; omitted limits are unlimited or chosen by the engine. Times are in
    seconds.

    An engine or a function refuses the options that it does not support. Raises `UsageError` for
    an invalid value, and for options that exclude each other.
    """

    properties: Collection[str] | None = None
    """The properties to check; None: all of them."""
    deadlock: bool = True
    """Whether properties of kind deadlock are checked."""
    max_states: int | None = flag("Stop after N distinct states.")
    """Maximum number of distinct states; None: limited by 32-bit numbers."""
    max_k: int = flag("Strength of induction.", "--k", default=STRENGTH)
    """Maximum strength of induction."""
    max_depth: int | None = flag(
        f"Stop N steps after the initial states.  [default: no limit, with bmc {SOLVER_DEPTH}]",
        "--depth", least=0, read=lambda steps: steps + 1, text=lambda levels: str(levels - 1),
    )  # fmt: skip
    """Maximum number of breadth-first levels, the initial states being the first: behaviours of at most `max_depth` - 1
    steps."""
    query_limit: float | None = flag("Stop one query to the solver after SECONDS.", "--query-timeout")
    """Time limit of one solver query, in seconds."""
    time_limit: float | None = flag(
        "Stop after SECONDS.",
        "--timeout", former=("--time-limit",), read=lambda seconds: None if seconds == math.inf else seconds,
    )  # fmt: skip
    """Time limit in seconds."""
    stop_when_decided: bool = False
    """Stop after the level at which every property is decided."""
    max_violations: int | None = flag("Stop after N violated properties.", again=False)
    """Stop after the level at which this number of properties are violated."""
    tier: str = flag("Generated Python or compiled code; auto: compiled code for large state spaces.", choices=TIERS)
    """Generated Python, compiled code, or the first for small state spaces and the second for the others."""
    workers: int | None = flag(
        "Number of threads of compiled code.  [default: one for each processor, at most 8]", most=MOST_WORKERS
    )
    """Number of threads of compiled code; None: one for each processor available to the process, at most eight."""
    memory: int | None = flag(
        "Memory limit of the process (500MB, 4GB, 4GiB).  [default: four fifths of the machine's memory]",
        kind="str", unit="SIZE", read=lambda text: parse_bytes(text), text=lambda size: bytes_text(size),
    )  # fmt: skip
    """Memory limit of the process in bytes; None: four fifths of the machine's memory."""
    spill: Path | None = flag("At the memory limit, continue on disk in DIR.", unit="DIR")
    """A folder for states beyond `memory`."""
    master: str | None = flag(
        "Search on Spark: its master, such as 'local[*]' or spark://host:7077. States are in the folder of --spill.",
        unit="URL",
    )
    """Spark's master, for the engine that searches on Spark."""
    symmetry: bool = flag("Symmetry reduction: search one state of each orbit under renaming.", default=False)
    """Search one representative of each orbit of states."""
    por: bool = flag("Partial-order reduction: leave out redundant orders of independent steps.", default=False)
    """Search with stubborn sets (partial-order reduction)."""
    view: tuple[str, ...] | None = flag(
        "Search one state for all equal values of these variables and derived values, with commas between them.",
        kind="str", unit="NAMES", read=lambda text: tuple(text.split(",")), text=lambda names: ",".join(names),
    )  # fmt: skip
    """Search the first state of each combination of values of these variables and derived values."""
    checkpoint: Path | None = flag(
        "Write a checkpoint to DIR once a minute, and when a limit ends the search.",
        unit="DIR", path={"file_okay": False}, again=False,
    )  # fmt: skip
    """A folder for checkpoints, written at the ends of levels."""
    resume: Path | None = flag(
        "Continue from the checkpoint in DIR, and keep writing it.", unit="DIR", path={"file_okay": False}, again=False
    )
    """A folder with a checkpoint from which the search resumes."""
    checkpoint_seconds: float = 60.0
    """The time between two checkpoints."""
    tuning: Tuning = TUNING
    """Sizes of the explicit engine's tables and pieces."""
    walks: int = flag("Number of walks.", default=WALKS)
    """Number of random walks."""
    steps: int = flag("Largest number of steps of a walk.", default=WALK_STEPS)
    """Maximum number of steps of a walk."""
    seed: int | None = flag("Seed of the walks; equal seeds give equal walks.  [default: random]", least=0)
    """Seed of the walks; equal seeds give equal walks. None: a random one, which the result names."""
    guided: bool = flag(
        "Prefer new states and actions, or take every step with the same probability.",
        "--guided/--uniform",
        default=True,
    )
    """Prefer new states and actions; else take every step with the same probability."""

    def __post_init__(self) -> None:
        for name in ("max_states", "max_depth", "time_limit", "memory", "max_violations", "walks", "steps"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"{name} must be positive, got {value}", remedy="leave it out for no limit")
        if self.tier not in TIERS:
            raise UsageError(f"unknown tier {self.tier!r}", remedy=f"the tiers are: {', '.join(TIERS)}")
        if self.workers is not None and not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError(
                f"workers must be from 1 to {MOST_WORKERS}, got {self.workers}", remedy="one for each core is best"
            )
        if self.checkpoint is not None and self.resume is not None:
            raise UsageError(
                "checkpoint and resume exclude each other", remedy="resume goes on writing to its own folder"
            )
        for message, remedy in self._excluded():
            raise UsageError(message, remedy=remedy)

    def _excluded(self) -> Iterator[tuple[str, str]]:
        """Why these options exclude each other, with the remedy."""
        several = self.workers is not None and self.workers > 1
        python, stored = given_of("--tier", "--por", "--view"), given_of("--checkpoint", "--resume")
        if self.view is not None:
            if self.symmetry or self.por:
                yield "a view is a reduction of its own", f"leave out --view, or {given_of('--symmetry', '--por')}"
            if self.tier == COMPILED:
                yield "only the Python tier searches by views", "leave out --view, or --tier"
        if self.tier == PYTHON or self.por or self.view is not None:
            if several:
                yield "only the compiled tier has workers", f"leave out --workers, or {python}"
            if self.storage is not None:
                yield "only the compiled tier writes checkpoints", f"leave out {python}, or {stored}"
            if self.spill is not None:
                yield "only the compiled tier spills to disk", f"leave out {python}, or --spill"
        if self.spill is not None and self.resume is not None and self.master is not None:
            yield "a search goes on in the folder of --resume", "leave out --spill"
        elif self.spill is not None and self.storage not in (None, Path(self.spill)):
            yield "states on disk and their checkpoint have one folder", f"name one folder with --spill and {stored}"

    @property
    def in_files(self) -> bool:
        """Whether wide levels are searched in files by processes of this machine, and can be resumed."""
        several = self.workers is not None and self.workers > 1
        return self.master is None and self.spill is not None and (several or self.storage is not None)

    @property
    def reduced(self) -> bool:
        """Whether a reduction is enabled."""
        return self.symmetry or self.por or self.view is not None

    @property
    def depth(self) -> int:
        """Depth of a solver's search, in steps."""
        return SOLVER_DEPTH if self.max_depth is None else self.max_depth - 1

    @property
    def storage(self) -> Path | None:
        """The folder of checkpoints, if there is one."""
        folder = self.checkpoint if self.resume is None else self.resume
        return None if folder is None else Path(folder)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The options by name."""
        return tuple(annotated(cls))

    def given(self) -> dict[str, Any]:
        """The options that differ from the defaults, by name."""
        values = {name: getattr(self, name) for name in self.names()}
        return {name: value for name, value in values.items() if value != getattr(DEFAULTS, name)}


DEFAULTS = SearchOptions()
"""A search without limits, of all properties."""


def peak_bytes() -> int:
    """The largest resident memory of this process so far.

    Linux's `ru_maxrss` is inherited by a child process, however small it is; `VmHWM` is not.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """The current memory of this process; 0 if the operating system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_of_machine() -> int | None:
    """The memory available to this process: the machine's, or the limit of its container."""
    known: list[int] = []
    with suppress(OSError, ValueError):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            known.append(int(Path(place).read_text()))
    return min(known, default=None)


UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
    "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip
"""Bytes per unit, in capitals; a single letter is a power of two, as for `ulimit` and the Java machine."""
_WRITTEN = {"TB": 10**12, "TiB": 1 << 40, "GB": 10**9, "GiB": 1 << 30, "MB": 10**6, "MiB": 1 << 20, "B": 1}


def parse_bytes(text: str) -> int:
    """The number of bytes in a text such as ``4GB`` or ``1.5 GiB``. Raises `UsageError`."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(found[2].upper()) if found else None
    amount = int(float(found[1]) * unit) if found and unit else 0
    if amount <= 0:
        raise UsageError(f"{text!r} is not a memory size", remedy="write it as 500MB, 4GB or 4GiB")
    return amount


def bytes_text(amount: int) -> str:
    """The exact text of a size, in the largest unit that divides it."""
    unit = next(name for name, size in _WRITTEN.items() if amount % size == 0) if amount else "B"
    return f"{amount // _WRITTEN[unit]}{unit}"


def bytes_about(amount: int) -> str:
    """A readable text of a size: exact for a round one, else with three digits."""
    exact = bytes_text(amount)
    if len(exact.rstrip("BGKMTi")) <= 4:
        return exact
    unit = next((name for name in ("TB", "GB", "MB") if amount >= _WRITTEN[name]), "B")
    return f"{amount / _WRITTEN[unit]:.3g}{unit}"


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, the garbage collector is off: for many objects without reference cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_limit_lock = Lock()
_found_limits: list[int] = []
"""The recursion limits that the open blocks of all threads found, the first block's first."""


@contextmanager
def deep_stack(frames: int) -> Iterator[None]:
    """Inside, calls may nest at least `frames` deep.

    All threads share the limit: the last block to end restores what the first one found.
    """
    with _limit_lock:
        before = sys.getrecursionlimit()
        _found_limits.append(before)
        sys.setrecursionlimit(max(before, frames))
    try:
        yield
    finally:
        with _limit_lock:
            if len(_found_limits) == 1:
                sys.setrecursionlimit(_found_limits[0])
            _found_limits.pop()


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Inside, a context variable has another value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def timely(what: str, *, silent: bool = False) -> Iterator[None]:
    """Raises `OutOfTime` when the command's time limit is reached in the block; `what` describes the work.

    Unless `silent`, a long block is reported to the user. A block nested in another one, or in one of `doing`, is part
    of that one.
    """
    if busy():
        yield
        return
    try:
        with doing(what, silent=silent):
            yield
    except TimeUp:
        raise OutOfTime(
            f"time limit of {limit():g} s reached while {what}", remedy="nothing was decided; raise the limit"
        ) from None
