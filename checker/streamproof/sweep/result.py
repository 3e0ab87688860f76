"""The report of a sweep: a verdict for each point and property, and boundaries between verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamproof.base.errors import Exit
from streamproof.base.text import Style
from streamproof.sweep.plan import Mark, SweepPlan, SweepPoint
from streamproof.system.verdict import number_of

UNDECIDED: tuple[Mark, ...] = ("inconclusive", "error", "open")
REFUSED: Mark = "refused"
ABSENT: Mark = "absent"


class Sign(NamedTuple):
    """The display of a mark."""

    glyph: str
    word: str
    style: Style


SIGNS: dict[Mark, Sign] = {
    "holds": Sign("+", "holds", "good"),
    "violated": Sign("x", "violated", "failed"),
    "inconclusive": Sign("?", "inconclusive", "new"),
    "error": Sign("!", "error", "failed"),
    "refused": Sign("-", "not allowed", "faint"),
    "absent": Sign(" ", "no such property", "faint"),
    "open": Sign(".", "not checked", "faint"),
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """The boundary of the points at which a property holds, for the model or a variant.

    `formula` is true at every decided point where the property holds and false at all other decided points; None if no
    formula was found, with the reason in `because`.
    """

    variant: str | None
    name: str
    kind: str
    holds: int
    violated: int
    undecided: int
    vacuous: int
    """Number of points at which it holds vacuously."""
    formula: str | None = None
    smallest: bool = True
    others: tuple[str, ...] = ()
    because: str = ""
    proof: str | None = None
    """The command that tries to prove, for every size, the properties that hold at every point; None if not possible."""

    @property
    def title(self) -> str:
        """The name of the property, and its variant."""
        return f"{self.name}{f', variant {self.variant}' if self.variant else ''}"

    @property
    def changes(self) -> bool:
        """Whether it holds at some points and is violated at others."""
        return bool(self.holds and self.violated)

    @property
    def uneven(self) -> bool:
        """Whether it has different verdicts at different points."""
        return self.changes or bool(self.undecided)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """The result of a sweep."""

    plan: SweepPlan
    points: tuple[SweepPoint, ...]
    boundaries: tuple[Boundary, ...]
    limits: Mapping[str, Any]
    seconds: float
    reproduce: str
    interrupted: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    reused: int = 0
    """Number of points with records from an earlier run."""

    @property
    def model(self) -> str:
        """The model's name."""
        return self.plan.target.name

    def count(self, mark: Mark) -> int:
        """Number of points at which some property has this mark."""
        return sum(any(answer.verdict == mark for answer in point.verdicts.values()) for point in self.points)

    @property
    def bare(self) -> int:
        """Number of points that have none of the properties."""
        return sum(all(answer.verdict == ABSENT for answer in point.verdicts.values()) for point in self.points)

    def settings(self, more: Mapping[str, Any] | None = None) -> list[str]:
        """The varied parameters (without generated ones), and the fixed ones."""
        free = None if self.plan.sampled is None else self.plan.sampled.parameter
        varied = [f"{name}: {', '.join(map(shown, v))}" for name, v in self.plan.axes.items() if name != free]
        return [*varied, *assignments({**self.plan.fixed, **(more or {})}.items())]

    @property
    def caveats(self) -> list[str]:
        """The limitations of verdicts within a constraint, and of formulas, if there are any."""
        cut = Counter(within for p in self.points for within in {v.within for v in p.verdicts.values()} - {None})
        found = [
            f"Constraint {text} ends behaviours at {number_of(count, 'point')}; the verdicts there are within it."
            for text, count in cut.items()
        ]
        if any(boundary.formula for boundary in self.boundaries):
            found.append("Formulas generalise from the points explored; they are not proofs.")
        return found

    @property
    def exit_code(self) -> Exit:
        """0 if every allowed point is decided: a violation is a result of a sweep, not a failure."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.count("error"):
            return Exit.EVALUATION
        return Exit.INCONCLUSIVE if self.count("inconclusive") or self.count("open") else Exit.HOLDS


def assignments(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Each ``name=value``."""
    return [f"{name}={shown(value)}" for name, value in values]


def shown(value: Any) -> str:
    """A parameter's value as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
