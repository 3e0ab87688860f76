"""A hash of a set of states, independent of their order; different sets have (practically) different hashes.

A state is written as text, hashed to 128 bits with BLAKE2b, and the hashes are added modulo 2^128, so that the order is
irrelevant, and a missing or duplicate state changes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from streamproof.base.records import dataclass
from streamproof.system.model import State, Variable
from streamproof.system.sorts import Value, show

BITS = 128


@dataclass(frozen=True, slots=True)
class Digest:
    """`levels`: the hash of each level's states, in any order. `ordered`: of all states in the order of discovery."""

    levels: tuple[int, ...]
    ordered: str

    @property
    def whole(self) -> str:
        """The hash of all states, in hexadecimal."""
        return f"{sum(self.levels) % (1 << BITS):032x}"


def digest(variables: Sequence[Variable], states: Iterable[State], levels: Sequence[int]) -> Digest:
    """The digest of states that are listed level by level, with the level sizes in `levels`."""
    order = blake2b(digest_size=BITS // 8)
    sums: list[int] = []
    hashes = _hashes(variables, states)
    for size in levels:
        total = 0
        for one in islice(hashes, size):
            total += int.from_bytes(one, "big")
            order.update(one)
        sums.append(total % (1 << BITS))
    return Digest(tuple(sums), order.hexdigest())


def _hashes(variables: Sequence[Variable], states: Iterable[State]) -> Iterator[bytes]:
    known: list[dict[Value, str]] = [{} for _ in variables]
    columns = list(zip(variables, known, strict=True))
    for state in states:
        parts = []
        for (variable, texts), value in zip(columns, state, strict=True):
            text = texts.get(value)
            if text is None:
                text = texts[value] = show(variable.sort, value)
            parts.append(text)
        yield blake2b("\n".join(parts).encode(), digest_size=BITS // 8).digest()
