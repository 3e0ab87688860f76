"""A reader of states that records what a constraint looks at, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add, eq, ge, gt, le, lt, mul, ne
from typing import Any

from streamproof.conformance.binding import StateReader
from streamproof.system import State, System
from streamproof.system.sorts import ArraySort, Value, index_value, position
from streamproof.transform.footprint import CellLayout, Cells


class RecordingReader(StateReader):
    """A reader of a state that records the cells read."""

    __slots__ = ("_layout", "_reads")

    def __init__(self, system: System, state: State, layout: CellLayout, reads: Cells) -> None:
        super().__init__(system, state)
        self._layout, self._reads = layout, reads

    @property
    def state(self) -> State:
        """The whole state, all of which is recorded."""
        for at in range(len(self._system.variables)):
            self._reads.update(dict.fromkeys(self._layout.cells(at)))
        return self._state

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

    def _read_all(self) -> tuple[Value, ...]:
        self._reads.update(dict.fromkeys(range(self._first, self._first + len(self))))
        return tuple(super().__iter__())

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, int):
            return self._read_all()[at]
        value = super().__getitem__(at)
        self._reads[self._first + (at if at >= 0 else at + len(self))] = None
        return value

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __contains__(self, value: object) -> bool:
        return any(v == value for v in self)

    def __radd__(self, other: Any) -> Any:
        return other + self._read_all()

    def __reduce__(self) -> Any:
        return tuple, (self._read_all(),)


def _of_all(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on an array that looks at all elements."""
    return lambda array, *others: operation(array._read_all(), *others)


_LOOKING: dict[str, Callable[..., Any]] = {"index": tuple.index, "count": tuple.count, "__rmul__": mul}
_LOOKING |= {
    f"__{operation.__name__}__": operation for operation in (eq, ne, lt, le, gt, ge, add, mul, hash, repr, str)
}
for _name, _operation in _LOOKING.items():
    setattr(_Array, _name, _of_all(_operation))
