"""Options of searches and proofs: properties, limits, tiers, files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from streamproof.system.errors import UsageError
from streamproof.system.records import annotated, dataclass

AUTO, PYTHON, COMPILED = "auto", "python", "compiled"
TIERS = (AUTO, PYTHON, COMPILED)
"""The tiers by name, the default first."""
MOST_WORKERS = 64
"""Number of threads of one search."""
SOLVER_DEPTH = 20
"""Default depth of a solver's search, in steps."""
STRENGTH = 4
"""Default maximum strength of induction."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of one search or proof; omitted limits are unlimited or chosen by the engine.

    Engines ignore some of them: `engines.RegisteredEngine.options` lists the supported ones. Raises `UsageError` for an
    invalid value, and for options that exclude each other.
    """

    properties: Collection[str] | None = None
    """The properties to check; None: all of them."""
    deadlock: bool = True
    """Whether properties of kind deadlock are checked."""
    max_states: int | None = None
    """Maximum number of distinct states; None: limited by 32-bit numbers."""
    max_depth: int | None = None
    """Maximum number of breadth-first levels, the initial states being the first: behaviours of at most `max_depth` - 1
    steps."""
    time_limit: float | None = None
    """Time limit in seconds."""
    memory: int | None = None
    """Memory limit of the process in bytes; None: four fifths of the machine's memory."""
    stop_when_decided: bool = False
    """Stop after the level at which every property is decided."""
    max_violations: int | None = None
    """Stop after the level at which this number of properties are violated."""
    tier: str = AUTO
    """Generated Python, compiled code, or the first for small state spaces and the second for the others."""
    workers: int | None = None
    """Number of threads of compiled code; None: one for each processor available to the process, at most eight."""
    symmetry: bool = False
    """Search one representative of each orbit of states."""
    por: bool = False
    """Search with stubborn sets (partial-order reduction)."""
    checkpoint: Path | None = None
    """A folder for checkpoints, written at the ends of levels."""
    resume: Path | None = None
    """A folder with a checkpoint from which the search resumes."""
    checkpoint_seconds: float = 60.0
    """The time between two checkpoints."""
    spill: Path | None = None
    """A folder for states beyond `memory`."""
    max_k: int = STRENGTH
    """Maximum strength of induction."""
    query_limit: float | None = None
    """Time limit of one solver query, in seconds."""

    def __post_init__(self) -> None:
        for name in ("max_states", "max_depth", "time_limit", "memory", "max_violations"):
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
        if self.tier == PYTHON or self.reduced:
            if several:
                yield "only the compiled tier has workers", "leave out --workers, or what keeps to generated Python"
            if self.storage is not None:
                yield (
                    "only the compiled tier writes checkpoints",
                    "leave out the other tier, --symmetry and --por, or checkpoints",
                )
            if self.spill is not None:
                yield (
                    "only the compiled tier spills to disk",
                    "leave out the other tier, --symmetry and --por, or --spill",
                )
        if self.spill is not None and several:
            yield "a search that spills to disk has one worker", "leave out --workers, or --spill"
        if self.spill is not None and self.storage is not None:
            yield "what was spilled to disk is in no checkpoint", "leave out checkpoints, or --spill"

    @property
    def reduced(self) -> bool:
        """Whether a reduction is enabled."""
        return self.symmetry or self.por

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
