"""A reader of states that records what a constraint looks at, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamproof.conformance.binding import StateReader
from streamproof.system import State, System
from streamproof.system.footprint import CellLayout, Cells
from streamproof.system.sorts import ArraySort, Value, index_value, position


class RecordingReader(StateReader):
    """A reader of a state that records the cells read."""

    __slots__ = ("_layout", "_reads")

    def __init__(self, system: System, state: State, layout: CellLayout, reads: Cells) -> None:
        super().__init__(system, state)
        self._layout, self._reads = layout, reads

    def __call__(self, name: str, key: Any = None) -> Any:
        """As `StateReader`; of an array without a key, only the elements looked at are recorded."""
        at = self._system.index[name]
        sort, cells = self._system.variables[at].sort, self._layout.cells(at)
        if not isinstance(sort, ArraySort):
            self._reads[cells.start] = None
        elif key is None:
            return _Array(self._state[at], cells.start, self._reads)
        else:
            where = position(sort.index, index_value(sort.index, key))
            if where is not None:
                self._reads[cells.start + where] = None
        return super().__call__(name, key)


class _Array(tuple):  # type: ignore[type-arg]
    """An array that records the elements looked at."""

    _first: int
    _reads: Cells

    def __new__(cls, values: tuple[Value, ...], first: int, reads: Cells) -> _Array:
        made = super().__new__(cls, values)
        made._first, made._reads = first, reads
        return made

    def _all(self) -> tuple[Value, ...]:
        self._reads.update(dict.fromkeys(range(self._first, self._first + len(self))))
        return tuple(super().__iter__())

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, int):
            return self._all()[at]
        value = super().__getitem__(at)
        self._reads[self._first + (at if at >= 0 else at + len(self))] = None
        return value

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __contains__(self, value: object) -> bool:
        return any(v == value for v in self)

    def __eq__(self, other: object) -> bool:
        return self._all() == other

    def __ne__(self, other: object) -> bool:
        return self._all() != other

    def __lt__(self, other: Any) -> bool:
        return bool(self._all() < other)

    def __le__(self, other: Any) -> bool:
        return bool(self._all() <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self._all() > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self._all() >= other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __add__(self, other: Any) -> Any:
        return self._all() + other

    def __radd__(self, other: Any) -> Any:
        return other + self._all()

    def __mul__(self, times: Any) -> Any:
        return self._all() * times

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return repr(self._all())

    def __str__(self) -> str:
        return str(self._all())

    def index(self, *args: Any) -> int:
        """As of a tuple; all elements are recorded."""
        return self._all().index(*args)

    def count(self, value: Any) -> int:
        """As of a tuple; all elements are recorded."""
        return self._all().count(value)

    def __reduce__(self) -> Any:
        return tuple, (self._all(),)
