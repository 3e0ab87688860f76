"""The panel of engines that the tests of this folder ask, as `check --agree` does, and the referee they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from streamproof.agree import asking
from streamproof.agree.comparing import differences
from streamproof.agree.opinion import Expected, Opinion
from streamproof.agree.referee import expected, referee
from streamproof.exchange import spin
from streamproof.system import System
from streamproof.system.reference import Reference


@dataclass(frozen=True)
class Refereed:
    """A system with what the interpreter says of it."""

    system: System
    ordered: Reference
    opinion: Opinion
    unordered: Mapping[str, Expected]

    def compare(self, opinion: Opinion) -> None:
        """Fail with what differs, and the system."""
        assert opinion.answers.keys() == {p.name for p in self.system.properties}, (opinion.why, repr(self.system))
        found = [str(d) for d in differences(self.system, (self.opinion, opinion), self.unordered)]
        assert not found, "\n".join((*found, repr(self.system)))


class Panel:
    """Asks every engine."""

    @staticmethod
    def referee(system: System) -> Refereed:
        """The interpreter, which says what a system means."""
        said = referee(system)
        return Refereed(system, said.found, said.opinion, said.expected)

    @staticmethod
    def explored(system: System, tier: str) -> Opinion:
        """The explicit engine; its behaviours have been replayed by the interpreter."""
        return asking.explored(system, tier)

    @staticmethod
    def bounded(system: System, depth: int, *, integers: bool = False) -> Opinion:
        """The symbolic engine, for behaviours of so many steps."""
        return asking.bounded(system, depth, integers=integers)

    @staticmethod
    def spun(system: System, options: spin.Options) -> Opinion:
        """Spin, breadth first."""
        return asking.spun(system, options)


@pytest.fixture(scope="session")
def panel() -> Panel:
    """Every engine's opinion."""
    return Panel()


@pytest.fixture(scope="session")
def expect() -> Callable[[System], Mapping[str, Expected]]:
    """What may be answered for each property of a system, whatever the order of search."""
    return expected
