"""Comparing designs: the values of one parameter side by side, and what somebody claimed of them, judged by what is found.

A `Comparison` says which verdicts and which largest values to find for every value of the parameter, in which settings; a
`Claim` reads them and says whether it is so. Nothing is found here: `streamproof.report.comparing` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One question to every design: a property or a measure of the model, at some parameters.

    `cap` names the parameter up to which a measure counts: a value as large as that means so much or more.
    """

    name: str
    """How claims call it; unique."""
    title: str
    """What stands above it."""
    of: str
    """The property or the measure."""
    parameters: Mapping[str, Any]
    cap: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Columns that are read together."""

    title: str
    columns: tuple[Column, ...]


class Judgement(Enum):
    """What became of a claim."""

    CONFIRMED = "confirmed"
    PARTLY = "partly"
    """True under conditions that the claim does not name."""
    REFUTED = "refuted"
    OPEN = "open"
    """Something that it depends on was not decided."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The answer to one question about one design: a verdict (`holds`) or a largest value (`largest`).

    Both are None where nothing was decided. `capped`: the value is a lower bound, as counting ended there.
    """

    holds: bool | None = None
    largest: int | None = None
    capped: bool = False
    length: int | None = None
    """Steps of the counterexample of what does not hold."""

    @property
    def text(self) -> str:
        """As it stands in the table."""
        if self.holds is not None:
            return "holds" if self.holds else "violated" + ("" if self.length is None else f" ({self.length})")
        if self.largest is None:
            return "?"
        return f"{self.largest} or more" if self.capped else str(self.largest)


class UndecidedClaim(Exception):
    """Raised by `Table` when a claim asks for what was not decided."""


@dataclass(frozen=True)
class Table:
    """Everything that was found, by design and name of the column."""

    cells: Mapping[tuple[str, str], Cell]

    def holds(self, design: str, column: str) -> bool:
        """The verdict on a property. Raises `UndecidedClaim`."""
        answer = self.cells[design, column].holds
        if answer is None:
            raise UndecidedClaim(f"{column} of {design}")
        return answer

    def largest(self, design: str, column: str) -> int:
        """The largest value of a measure, a lower bound if counting ended there. Raises `UndecidedClaim`."""
        answer = self.cells[design, column].largest
        if answer is None:
            raise UndecidedClaim(f"{column} of {design}")
        return answer

    def text(self, design: str, column: str) -> str:
        """The answer in words."""
        return self.cells[design, column].text


Judge: TypeAlias = Callable[[Table], tuple[Judgement, str]]
"""Says what becomes of a claim, and why in a sentence."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody says of a design."""

    about: str
    says: str
    judge: Judge


@dataclass(frozen=True)
class Comparison:
    """What to find for every value in `designs` of the parameter `parameter`, and the claims to be judged by it."""

    parameter: str
    designs: tuple[str, ...]
    blocks: tuple[Block, ...]
    claims: tuple[Claim, ...] = ()
    properties: tuple[Callable[..., Any], ...] = ()
    """Properties beside those of the specification: what may be violated by a sound design."""
