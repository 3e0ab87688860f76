"""Certificates of searches and proofs, taken apart and put together again with a checksum that fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamproof.base.options import SearchOptions
from streamproof.certify.evidence import certify_search
from streamproof.certify.proofs import certify_proof
from streamproof.certify.verifier import parse, verify
from streamproof.certify.writing import packed
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof.symbolic.proof import prove
from streamproof.system import BOOL, Action, Conjunct, Fairness, Instance, Kind, Property, RangeSort, System, Variable
from streamproof.system import build as b
from streamproof.system.formula import Atom, Eventually


@dataclass
class Certificate:
    """A certificate in parts that a test may change."""

    system: System
    header: dict[str, Any]
    evidence: dict[str, Any]

    @property
    def columns(self) -> list[list[int]]:
        """Per variable the number of its value in each state."""
        return [column for _, column in self.evidence["values"]]

    @property
    def tables(self) -> list[list[Any]]:
        """Per variable the values that it has, as their leaves."""
        return [table for table, _ in self.evidence["values"]]

    def file(self) -> bytes:
        """The certificate with the checksum that its parts have now."""
        return packed(self.header, self.evidence)

    def verify(self) -> dict[str, Any]:
        """Have it verified, on the system that it is of; the verifier adds the constraint of the system."""
        verified = verify(self.file(), lambda _: self.system, lambda _: None)
        constraint = verified.pop("constraint")
        assert constraint == (None if self.system.constraint is None else self.system.constraint.text)
        return verified

    def copy(self) -> Certificate:
        """Another one with the same parts."""
        return Certificate(self.system, *json.loads(json.dumps([self.header, self.evidence])))

    def remove_state(self, at: int) -> None:
        """Leave out a state with its ranks, and count one less on its level."""
        for column in (*self.columns, *self.ranks()):
            del column[at]
        self.header["counts"]["distinct"] -= 1
        self.header["counts"]["levels"][self.level(at)] -= 1

    def level(self, at: int) -> int:
        """The level of a state, from 0."""
        levels = self.header["counts"]["levels"]
        return next(k for k in range(len(levels)) if at < sum(levels[: k + 1]))

    def ranks(self) -> list[list[int]]:
        """Every list of ranks, one for each state."""
        found = []
        for ranks in self.evidence["ranks"].values():
            found += [ranks] if isinstance(ranks[0], int) else [column for table in ranks for column in table.values()]
        return found


Certify = Callable[..., Certificate]


@pytest.fixture(scope="session")
def model() -> Callable[..., System]:
    """The system of a bundled model."""

    def system(name: str, variant: str | None = None, **parameters: Any) -> System:
        return find(name).system(variant, parameters)

    return system


@pytest.fixture(scope="session")
def lock() -> System:
    """A wheel turns for ever. A latch can be lifted at 0, then the lock be opened at 2; both only by strong fairness."""
    at, lifted, opened = b.var("at", RangeSort(0, 3)), b.var("lifted", BOOL), b.var("opened", BOOL)

    def rule(name: str, fairness: Fairness, guard: Any, **updates: Any) -> Action:
        conjunct = Conjunct(guard, name, None)
        return Action(name, (), fairness, (Instance(name, (), (), (conjunct,), tuple(updates.items())),))

    return System(
        "lock",
        (
            Variable("at", RangeSort(0, 3), (0,)),
            Variable("lifted", BOOL, (False,)),
            Variable("opened", BOOL, (False,)),
        ),
        (
            rule("turn", Fairness.WEAK, b.not_(opened), at=b.mod(b.add(at, b.num(1)), b.num(4))),
            rule("lift", Fairness.STRONG, b.and_((b.eq(at, b.num(0)), b.not_(lifted))), lifted=b.TRUE),
            rule("open", Fairness.STRONG, b.and_((b.eq(at, b.num(2)), lifted)), opened=b.TRUE),
        ),
        (Property("opened", Kind.TEMPORAL, b.TRUE, formula=Eventually(Atom(opened))),),
    )


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Certify:
    """The certificate of a search of all states."""

    def certify(system: System, **options: Any) -> Certificate:
        path = tmp_path_factory.mktemp("certificates") / "search"
        written = certify_search(path, "model", (), explore(system, SearchOptions(**options)))
        certificate = Certificate(system, *parse(path.read_bytes()))
        assert written.claims == certificate.header["claims"]
        return certificate

    return certify


@pytest.fixture(scope="session")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Certify:
    """The certificate of a proof by induction."""

    def certify(system: System, properties: Sequence[str], **options: Any) -> Certificate | None:
        path: Path = tmp_path_factory.mktemp("certificates") / "proof"
        if not certify_proof(path, system, "model", (), prove(system, properties, **options)).claims:
            assert not path.exists()
            return None
        return Certificate(system, *parse(path.read_bytes()))

    return certify
