"""The outcome of a sweep as a value: a verdict for each point and property, and where they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamproof.pipeline.sweeps.plan import Mark, SweepPlan, SweepPoint
from streamproof.system.errors import Exit
from streamproof.traces.lines import Style

UNDECIDED: tuple[Mark, ...] = ("inconclusive", "error", "open")
REFUSED: Mark = "refused"


class Sign(NamedTuple):
    """How a mark is shown."""

    glyph: str
    word: str
    style: Style


SIGNS: dict[Mark, Sign] = {
    "holds": Sign("+", "holds", "good"),
    "violated": Sign("x", "violated", "failed"),
    "inconclusive": Sign("?", "inconclusive", "new"),
    "error": Sign("!", "error", "failed"),
    "refused": Sign("-", "not allowed", "faint"),
    "open": Sign(".", "not looked at", "faint"),
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a property holds, for the model or a variant.

    `formula` is true of every decided point where it holds and false of every other decided one; None where there is none,
    and then `because` says why.
    """

    variant: str | None
    name: str
    kind: str
    holds: int
    violated: int
    undecided: int
    vacuous: int
    """Points at which it holds because what it takes for granted never happens."""
    formula: str | None = None
    smallest: bool = True
    others: tuple[str, ...] = ()
    because: str = ""
    proof: str | None = None
    """The command that tries to prove for every size all that holds at every point as this does; None: none can."""

    @property
    def title(self) -> str:
        """The property, and of which variant it is."""
        return f"{self.name}{f', variant {self.variant}' if self.variant else ''}"

    @property
    def changes(self) -> bool:
        """Whether it holds at some points and is violated at others."""
        return bool(self.holds and self.violated)

    @property
    def uneven(self) -> bool:
        """Whether it does not have one answer at every point."""
        return self.changes or bool(self.undecided)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """A whole sweep."""

    plan: SweepPlan
    properties: Mapping[str, str]
    """Kinds by name."""
    points: tuple[SweepPoint, ...]
    boundaries: tuple[Boundary, ...]
    limits: Mapping[str, Any]
    seconds: float
    reproduce: str
    interrupted: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    reused: int = 0
    """Points whose records were there already."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self.plan.target.name

    def count(self, mark: Mark) -> int:
        """The points at which some property has this mark."""
        return sum(any(answer.verdict == mark for answer in point.verdicts.values()) for point in self.points)

    def settings(self, more: Mapping[str, Any] | None = None) -> list[str]:
        """What varies, but for what was generated, and what does not."""
        free = None if self.plan.sampled is None else self.plan.sampled.parameter
        varied = [f"{name}: {', '.join(map(shown, v))}" for name, v in self.plan.axes.items() if name != free]
        return [*varied, *assignments({**self.plan.fixed, **(more or {})}.items())]

    @property
    def caveats(self) -> list[str]:
        """What formulas are not, where there are any."""
        some = any(boundary.formula for boundary in self.boundaries)
        return ["Formulas generalise from the points explored; they are no proofs."] if some else []

    @property
    def exit_code(self) -> Exit:
        """0 when every point that the model allows is decided: a violation is a result of a survey, not its failure."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.count("error"):
            return Exit.EVALUATION
        return Exit.INCONCLUSIVE if self.count("inconclusive") or self.count("open") else Exit.HOLDS


def assignments(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Each ``name=value``."""
    return [f"{name}={shown(value)}" for name, value in values]


def shown(value: Any) -> str:
    """A parameter's value as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
