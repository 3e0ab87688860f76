"""The relation of the machine that followed a log to the model that the verdict names; `relating` computes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from streamproof.base.records import dataclass

Kind = Literal["same", "refines", "not related"]

KINDS: Final[tuple[Kind, ...]] = ("same", "refines", "not related")
"""The possible relations, strongest first."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What is known of the `machine` that was followed and of `model`, both by name.

    `same`: the machine is the model, or a variant of it, or its rules are those of a class `rules` from which the model or
    variant inherits, too. The machine has functions of its own in place of those in `overrides`, and the actions in `adds`
    besides; the model has its own in place of `restricts`. `refines`: the machine claims a refinement. `not related`: an
    accepted log says nothing about the model.
    """

    machine: str
    model: str
    kind: Kind
    rules: str | None = None
    overrides: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    restricts: tuple[str, ...] = ()
    compared: bool = True
    """Whether tests of this project compare `overrides` and `adds` with the model."""

    @property
    def text(self) -> str:
        """The relation in words."""
        verb = {"same": "has the rules of", "refines": "refines", "not related": "is not related to"}[self.kind]
        own = ", ".join((*self.overrides, *self.adds))
        but = f", but for rules of its own, which nothing compares with the model: {own}" if not self.compared else ""
        return f"{self.machine}, which {verb} {self.model}{but}"

    def record(self) -> dict[str, Any]:
        """As plain data for verdict records."""
        return {
            "machine": self.machine,
            "model": self.model,
            "relation": self.kind,
            "rules": self.rules,
            "overrides": list(self.overrides),
            "adds": list(self.adds),
            "restricts": list(self.restricts),
        }


def weakest(relations: Iterable[Relation]) -> Kind | None:
    """The weakest relation of several; None if there is none."""
    return max((r.kind for r in relations), key=KINDS.index, default=None)


def named(model: str, machines: Iterable[Relation]) -> str:
    """The name of a verdict on a log that these machines follow: the model's, or those of machines not related to it."""
    unrelated = [r.machine for r in machines if r.kind == "not related"]
    return ", ".join(dict.fromkeys(unrelated)) or model
