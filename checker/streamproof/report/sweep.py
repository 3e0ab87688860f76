"""The outcome of a sweep as a value: a verdict per point and property, where they change, and what that amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from streamproof.exchange.itf import plain
from streamproof.system.errors import Exit
from streamproof.system.records import dataclass
from streamproof.version import VERSION

SCHEMA = "streamproof.sweep/1"

Mark: TypeAlias = Literal["holds", "violated", "inconclusive", "error", "refused", "open"]
"""What is known of a property at a point. ``refused``: the model does not allow the parameters, or has no such property
there; ``open``: nobody has looked yet."""

DECIDED = ("holds", "violated")


@dataclass(frozen=True, slots=True)
class Answer:
    """One property at one point; `length` of its counterexample or witness, `vacuous`: it holds, and nothing happens."""

    mark: Mark
    because: str = ""
    length: int | None = None
    vacuous: bool = False


@dataclass(frozen=True, slots=True)
class PointReport:
    """One point: `values` are those of the axes, in their order."""

    variant: str | None
    values: tuple[Any, ...]
    checked_as: str | None
    parameters: Mapping[str, Any]
    answers: Mapping[str, Answer]
    because: str | None
    """What ended it without an answer, or the model's own mistake; None: nothing did."""
    distinct: int | None
    seconds: float


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
    formula: str | None
    others: tuple[str, ...] = ()
    smallest: bool = True
    because: str = ""
    proof: str | None = None
    """The command that tries to prove for every size all that holds at every point as this does; None: none can."""
    vacuous: int = 0
    """Points at which it holds because what it takes for granted never happens."""

    @property
    def changes(self) -> bool:
        """Whether it holds at some points and is violated at others."""
        return bool(self.holds and self.violated)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """A whole sweep. `axes` are the parameters that vary with their values, `fixed` the others that were set."""

    model: str
    axes: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any]
    variants: tuple[str | None, ...]
    properties: Mapping[str, str]
    """Kinds by name."""
    points: tuple[PointReport, ...]
    boundaries: tuple[Boundary, ...]
    limits: Mapping[str, Any]
    seconds: float
    reproduce: str
    interrupted: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    reused: int = 0
    """Points whose records were there already."""
    sampled: str = ""
    """The parameter whose values were generated; empty where none were."""
    things: str = ""
    """What they are called: graphs."""
    by: str = ""
    """The size by which the sweep over them proceeded."""
    sizes: Mapping[Any, Mapping[str, int]] = field(default_factory=dict)
    """How large each of them is."""

    def boundary(self, variant: str | None, prop: str) -> Boundary:
        """What is known of where a property holds; raises `KeyError`."""
        for boundary in self.boundaries:
            if (boundary.variant, boundary.name) == (variant, prop):
                return boundary
        raise KeyError(prop)

    def count(self, mark: Mark) -> int:
        """The points at which some property has this mark."""
        return sum(any(answer.mark == mark for answer in point.answers.values()) for point in self.points)

    @property
    def exit_code(self) -> Exit:
        """0 when every point that the model allows is decided: a violation is a result of a survey, not its failure."""
        if self.interrupted:
            return Exit.INTERRUPTED
        if self.count("error"):
            return Exit.EVALUATION
        return Exit.INCONCLUSIVE if self.count("inconclusive") or self.count("open") else Exit.HOLDS

    def _generated(self) -> dict[str, Any] | None:
        """What came of everything up to a size, as JSON data."""
        if not self.sizes:
            return None
        from streamproof.report.sweep_samples import swept

        return {
            "parameter": self.sampled,
            "things": self.things,
            "by": self.by,
            "rows": [
                {
                    "variant": one.variant,
                    "parameters": {name: plain(value) for name, value in one.parameters.items()},
                    "stages": [
                        {
                            "size": stage.size,
                            "samples": stage.samples,
                            "states": stage.states,
                            "largest": stage.largest,
                            "verdicts": {name: dict(marks) for name, marks in stage.verdicts.items()},
                        }
                        for stage in one.stages
                    ],
                    "refutations": [
                        {
                            "property": found.name,
                            "value": found.value,
                            "size": dict(found.size),
                            "length": found.length,
                            "alike": found.alike,
                            "of": found.of,
                        }
                        for found in one.refutations
                    ],
                }
                for one in swept(self)
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, schema ``streamproof.sweep/1``."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "model": self.model,
            "axes": {name: [plain(value) for value in values] for name, values in self.axes.items()},
            "fixed": {name: plain(value) for name, value in self.fixed.items()},
            "variants": list(self.variants),
            "limits": dict(self.limits),
            "exit_code": int(self.exit_code),
            "properties": [
                {
                    "variant": b.variant,
                    "name": b.name,
                    "kind": b.kind,
                    "holds": b.holds,
                    "violated": b.violated,
                    "undecided": b.undecided,
                    "vacuous": b.vacuous,
                    "formula": b.formula,
                    "smallest": b.smallest,
                    "others": list(b.others),
                    "because": b.because,
                    "proof": b.proof,
                }
                for b in self.boundaries
            ],
            "points": [
                {
                    "variant": p.variant,
                    "checked_as": p.checked_as,
                    "parameters": {name: plain(value) for name, value in p.parameters.items()},
                    "states": p.distinct,
                    "seconds": p.seconds,
                    "because": p.because,
                    "verdicts": {
                        name: {"verdict": a.mark, "because": a.because, "length": a.length, "vacuous": a.vacuous}
                        for name, a in p.answers.items()
                    },
                }
                for p in self.points
            ],
            "generated": self._generated(),
            "files": dict(self.files),
            "reused": self.reused,
            "seconds": round(self.seconds, 3),
            "reproduce": self.reproduce,
        }
