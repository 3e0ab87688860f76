"""Explored states as samples: the set of samples that satisfy a condition, as a bit mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from streamproof.symbolic.cubes import Cube, cube_of
from streamproof.symbolic.discovery.linear import ONE, Number
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State, System
from streamproof.system.sorts import Value


class Samples:
    """Reachable states of a scalar system, possibly all of them."""

    def __init__(self, system: System, states: Iterable[State]) -> None:
        self.system = system
        self.states: Sequence[State] = list(dict.fromkeys(states))
        self.all = (1 << len(self.states)) - 1
        """The bit mask of all samples."""
        self._values: dict[str, dict[Value, int]] = {}
        self._masks: dict[Expr, int] = {}
        self._columns: dict[Expr, Any] = {}
        self._interpreter = Interpreter(system)

    def values(self, leaf: str) -> dict[Value, int]:
        """The values of a leaf in the samples, each with the bit mask of its samples."""
        if leaf not in self._values:
            at = self.system.index[leaf]
            rows: dict[Value, bytearray] = {}
            for n, state in enumerate(self.states):
                row = rows.setdefault(state[at], bytearray(len(self.states) // 8 + 1))
                row[n >> 3] |= 1 << (n & 7)
            self._values[leaf] = {value: int.from_bytes(row, "little") for value, row in rows.items()}
        return self._values[leaf]

    def satisfying(self, condition: Expr) -> int:
        """The samples in which a condition over leaves is true."""
        if condition not in self._masks:
            names = sorted(e.variables(condition))
            # A condition depends on few leaves, which together have few values.
            found = 0
            for mask in self._groups(names, 0, self.all):
                example = self.states[(mask & -mask).bit_length() - 1]
                if self._interpreter.value(condition, example):
                    found |= mask
            self._masks[condition] = found
        return self._masks[condition]

    def all_satisfy(self, condition: Expr) -> bool:
        """Whether the condition is true in every sample."""
        return self.satisfying(condition) == self.all

    def column(self, feature: Expr) -> Any:
        """The values of a feature (see `forms`) in the samples: an array of integers."""
        import numpy as np

        if feature not in self._columns:
            (name,) = e.variables(feature)
            amounts = {}
            for value, mask in self.values(name).items():
                example = self.states[(mask & -mask).bit_length() - 1]
                amounts[value] = int(self._interpreter.value(feature, example))
            at = self.system.index[name]
            self._columns[feature] = np.array([amounts[state[at]] for state in self.states], dtype=np.int64)
        return self._columns[feature]

    def sums(self, weights: Mapping[Expr, Number]) -> Any:
        """The values of a linear form with integer coefficients in the samples."""
        import numpy as np

        total = np.zeros(len(self.states), dtype=np.int64)
        for term, factor in weights.items():
            total += int(factor) if term is ONE else int(factor) * self.column(term)
        return total

    def _groups(self, names: Sequence[str], at: int, within: int) -> Iterator[int]:
        """The samples, grouped by the values of these leaves."""
        if not within:
            return
        if at == len(names):
            yield within
            return
        for mask in self.values(names[at]).values():
            yield from self._groups(names, at + 1, within & mask)

    def separated(self, state: State, *, prefer: int = 0) -> Cube | None:
        """A small subset of a cube's literals that no sample satisfies, so that its clause holds in all samples; None
        for a sample.

        Literals are chosen greedily by the fewest remaining samples; `prefer` rotates the order among ties.
        """
        parts = list(cube_of(self.system, state))
        if parts:
            cut = prefer % len(parts)
            parts = parts[cut:] + parts[:cut]
        left, chosen = self.all, []
        while left:
            best = min(parts, key=lambda part: (left & self.satisfying(part)).bit_count(), default=None)
            if best is None or left & self.satisfying(best) == left:
                return None
            chosen.append(best)
            left &= self.satisfying(best)
        for part in list(chosen):
            rest = [p for p in chosen if p is not part]
            if not reduce(and_, map(self.satisfying, rest), self.all):
                chosen = rest
        kept = set(chosen)
        return tuple(part for part in cube_of(self.system, state) if part in kept)
