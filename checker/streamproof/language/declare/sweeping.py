"""`Sweep`: the configurations of a model, so that a sweep over them needs no options; `Comparison`: comparison of designs.

A `Comparison` lists the verdicts and largest values to compute for every value of a parameter, in given settings. A
`Claim` reads them and returns its verdict. `streamproof.sweep.comparing` runs the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.system.verdict import WITHIN


@dataclass(frozen=True, slots=True)
class Column:
    """A question to every design: a property or a measure of the model, at some parameters.

    `cap` is the parameter that bounds a measure: a result equal to the cap is a lower bound.
    """

    name: str
    """Name used by claims; unique."""
    title: str
    """The column heading."""
    of: str
    """Name of the property or measure."""
    parameters: Mapping[str, Any]
    cap: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A group of columns with a common heading."""

    title: str
    columns: tuple[Column, ...]


class Judgement(Enum):
    """The verdict on a claim."""

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    """The claim holds under conditions that it does not state."""
    REFUTED = "refuted"
    OPEN = "open"
    """The claim depends on an undecided result."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one question for one design: a verdict (`holds`) or a largest value (`largest`).

    Both are None if undecided. `capped`: the value is a lower bound, because it equals the cap.
    """

    holds: bool | None = None
    largest: int | None = None
    capped: bool = False
    length: int | None = None
    """Number of steps of the counterexample to a violated property."""
    within: str | None = None
    """The constraint that ends some of the behaviours that the verdict is about."""
    vacuous: bool = False
    """Whether it holds vacuously."""

    @property
    def text(self) -> str:
        """The text of the table cell."""
        if self.holds is not None:
            verdict = "holds" if self.holds else "violated" + ("" if self.length is None else f" ({self.length})")
            return verdict + ("" if self.within is None else WITHIN) + (", vacuously" if self.vacuous else "")
        if self.largest is None:
            return "?"
        return f"{self.largest} or more" if self.capped else str(self.largest)


class UndecidedClaim(Exception):
    """Raised by `Table` when a claim reads an undecided result."""


@dataclass(frozen=True)
class Table:
    """All results, by design and column name."""

    cells: Mapping[tuple[str, str], Cell]

    def holds(self, design: str, column: str) -> bool:
        """The verdict on a property. Raises `UndecidedClaim`."""
        answer = self.cells[design, column].holds
        if answer is None:
            raise UndecidedClaim(f"{column} of {design}")
        return answer

    def largest(self, design: str, column: str) -> int:
        """The largest value of a measure; a lower bound if it equals the cap. Raises `UndecidedClaim`."""
        answer = self.cells[design, column].largest
        if answer is None:
            raise UndecidedClaim(f"{column} of {design}")
        return answer

    def text(self, design: str, column: str) -> str:
        """The result as text."""
        return self.cells[design, column].text


Judge: TypeAlias = Callable[[Table], tuple[Judgement, str]]
"""Returns the verdict on a claim and a sentence with the reason."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a design."""

    about: str
    says: str
    judge: Judge


@dataclass(frozen=True)
class Comparison:
    """The columns to compute for every value in `designs` of the parameter `parameter`, and the claims to judge."""

    parameter: str
    designs: tuple[str, ...]
    blocks: tuple[Block, ...]
    claims: tuple[Claim, ...] = ()
    properties: tuple[Callable[..., Any], ...] = ()
    """Additional properties, outside the specification, which a sound design may violate."""


Value: TypeAlias = int | str
"""A parameter's value on an axis; True and False are also numbers."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a generated axis with its sizes, such as ``{"operators": 3, "loops": 1}``."""

    value: str
    size: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Generated:
    """An axis with all `things` up to a given size, such as every job graph up to a number of operators.

    `make` is called with bounds by name, by default those in `bounds`, and yields the samples in ascending size; it
    raises `ValueError` for invalid bounds. The sweep proceeds by the size `by`: a variant refuted at one size is
    skipped at the next.
    """

    parameter: str
    things: str
    make: Callable[..., Iterable[Sample]]
    bounds: Mapping[str, int | None]
    by: str
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the bounds for the help of ``streamproof sweep MODEL``, where each is an option ``--max-NAME``."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The default configurations of ``streamproof sweep``.

    `axes` maps parameters to their values, in ascending order. `properties` are the properties to check, all of the
    model if empty. `instead` maps a variant to parameter values that the model does not allow: at these, the variant is
    checked in place of the model.
    """

    axes: Mapping[str, Sequence[Value]]
    properties: tuple[str, ...] = ()
    instead: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    generated: Generated | None = None
    """An additional generated axis, used unless its parameter is given values."""

    def variant_at(self, parameters: Mapping[str, Value]) -> str | None:
        """The variant that replaces the model at these parameters; None: the model itself."""
        return next((v for v, values in self.instead.items() if values.items() <= parameters.items()), None)
