"""Steps with their footprint: the cells of the state that determine a step, and those that it changes.

A *cell* is a variable without elements, or an element of an array. Cells are numbered in the order of the variables.
`Footprints.take` gives the same result as `Interpreter.take`: in every state that has the same values in the cells
read, the instance is enabled or not alike, and writes the same values. A cell that keeps its value counts as read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Evaluation, Interpreter
from streamproof.system.model import Instance, State, System
from streamproof.system.sorts import ArraySort, Value, cardinality, default, position

Cells = dict[int, None]
"""Cells in the order in which they were read."""
_Places = tuple[tuple[int, int | None], ...]
"""Of cells: the variable, and the position in an array."""


def _values(places: _Places, state: State) -> tuple[Value, ...]:
    return tuple([state[at] if i is None else state[at][i] for at, i in places])


class CellLayout:
    """The cells of a system's states."""

    def __init__(self, system: System) -> None:
        self.first: list[int] = []
        """Variable, by position -> its first cell."""
        self.place: list[tuple[int, int | None]] = []
        """Cell -> its variable, and its position in an array."""
        for at, variable in enumerate(system.variables):
            self.first.append(len(self.place))
            sort = variable.sort
            if isinstance(sort, ArraySort):
                self.place += [(at, i) for i in range(cardinality(sort.index))]
            else:
                self.place.append((at, None))
        self.first.append(len(self.place))

    def cells(self, at: int) -> range:
        """The cells of a variable."""
        return range(self.first[at], self.first[at + 1])

    def read(self, state: State, cell: int) -> Value:
        """The value of a cell."""
        at, i = self.place[cell]
        return state[at] if i is None else state[at][i]

    def different(self, state: State, other: State) -> set[int]:
        """The cells in which two states differ."""
        found = set[int]()
        for at, (one, two) in enumerate(zip(state, other, strict=True)):
            if one != two:
                cells = self.cells(at)
                pairs = [(one, two)] if self.place[cells.start][1] is None else zip(one, two, strict=True)
                found.update(cell for cell, (x, y) in zip(cells, pairs, strict=True) if x != y)
        return found

    def written(self, state: State, writes: Mapping[int, Value]) -> State:
        """The state with other values in some cells."""
        after, open_ = list(state), set[int]()
        for cell, value in writes.items():
            at, i = self.place[cell]
            if i is None:
                after[at] = value
                continue
            if at not in open_:
                open_.add(at)
                after[at] = list(after[at])
            after[at][i] = value
        for at in open_:
            after[at] = tuple(after[at])
        return tuple(after)


@dataclass(frozen=True, slots=True)
class Effect:
    """A step: the cells that determine it, and the new values of the cells that it changes; None if it is disabled."""

    reads: Cells
    writes: Mapping[int, Value] | None


class Footprints:
    """Steps of one system with their footprints; those of each instance are kept by the values that they read, or replace."""

    KEPT = 16
    """Number of kept steps of an instance at which they are all forgotten."""

    def __init__(self, system: System) -> None:
        self.layout = CellLayout(system)
        self._index = system.index
        self._known: dict[int, tuple[Instance, dict[_Places, dict[tuple[Value, ...], Effect]]]] = {}
        """By number of the instance, which is kept with its results, so that no other instance gets this number."""

    def take(self, instance: Instance, state: State) -> Effect:
        """The step of an instance. Raises `EvaluationError` for a model error."""
        known = self._known.setdefault(id(instance), (instance, {}))[1]
        for places, effects in known.items():
            effect = effects.get(_values(places, state))
            if effect is not None:
                return effect
        effect = self._taken(instance, state)
        if sum(map(len, known.values())) >= self.KEPT:
            known.clear()
        # The old values of written cells decide which of them change: with them, no step depends on what was taken before.
        places = tuple(self.layout.place[cell] for cell in (*effect.reads, *(effect.writes or ())))
        known.setdefault(places, {})[_values(places, state)] = effect
        return effect

    def _taken(self, instance: Instance, state: State) -> Effect:
        evaluation = _Recorded(self._index, self.layout, state)
        refuse = Interpreter.refuse
        refuse(instance.guard_checks, evaluation, instance)
        if not all(evaluation.value(c.expr) for c in instance.guard):
            return Effect(evaluation.reads, None)
        refuse(instance.effect_checks, evaluation, instance)
        writes: dict[int, Value] = {}
        for name, term in instance.updates:
            writes.update(evaluation.written(name, term))
        changed = {cell: value for cell, value in writes.items() if self.layout.read(state, cell) != value}
        evaluation.reads.update(dict.fromkeys(cell for cell in writes if cell not in changed))
        return Effect(evaluation.reads, changed)


@dataclass(frozen=True, slots=True)
class _Overlay:
    """An array variable with some elements replaced, none of them read yet."""

    at: int
    changes: Mapping[int, Value]


class _Recorded(Evaluation):
    """An evaluation that records the cells it reads. Arrays are only read where their elements are."""

    def __init__(self, index: Mapping[str, int], layout: CellLayout, state: State) -> None:
        super().__init__(index, state, None)
        self._layout = layout
        self._arrays: dict[Expr, _Overlay | Value] = {}
        self.reads: Cells = {}

    def written(self, name: str, term: Expr) -> Iterator[tuple[int, Value]]:
        """The cells that the update of a variable writes."""
        at = self._index[name]
        cells = self._layout.cells(at)
        if not isinstance(term.sort, ArraySort):
            yield cells.start, self.value(term)
            return
        array = self._array(term)
        if isinstance(array, _Overlay) and array.at == at:
            yield from ((cells.start + i, value) for i, value in array.changes.items())
        else:
            yield from zip(cells, self._whole(array), strict=True)

    def _whole(self, array: _Overlay | Value) -> Value:
        if not isinstance(array, _Overlay):
            return array
        cells, changes = self._layout.cells(array.at), array.changes
        self.reads.update(dict.fromkeys(cell for i, cell in enumerate(cells) if i not in changes))
        return tuple(changes.get(i, value) for i, value in enumerate(self._state[array.at]))

    def _array(self, term: Expr) -> _Overlay | Value:
        """An array without its elements; the chain of its updates may be long, so this does not recurse."""
        chain: list[Expr] = []
        array: _Overlay | Value = None
        while term not in self._arrays:
            chain.append(term)
            match term:
                case e.Var(name=name):
                    array = _Overlay(self._index[name], {})
                    break
                case e.Store(array=inner):
                    term = inner
                case e.Ite(cond=cond, then=then, other=other):
                    term = then if self.value(cond) else other
                case _:
                    array = self.value(term)
                    break
        else:
            array = self._arrays[term]
        for outer in reversed(chain):
            if isinstance(outer, e.Store):
                array = self._stored(outer, array)
            self._arrays[outer] = array
        return array

    def _stored(self, term: e.Store, array: _Overlay | Value) -> _Overlay | Value:
        sort = term.sort
        assert isinstance(sort, ArraySort)
        at = position(sort.index, self.value(term.index))
        if at is None:
            return array
        value = self.value(term.value)
        if isinstance(array, _Overlay):
            return _Overlay(array.at, {**array.changes, at: value})
        return (*array[:at], value, *array[at + 1 :])

    def _compute(self, term: Expr) -> Any:
        match term:
            case e.Var(name=name):
                at = self._index[name]
                self.reads.update(dict.fromkeys(self._layout.cells(at)))
                return self._state[at]
            case e.Select(array=array, index=index):
                sort = array.sort
                assert isinstance(sort, ArraySort)
                at_ = position(sort.index, self.value(index))
                if at_ is None:
                    return default(sort.element)
                whole = self._array(array)
                if not isinstance(whole, _Overlay):
                    return whole[at_]
                if at_ in whole.changes:
                    return whole.changes[at_]
                self.reads[self._layout.first[whole.at] + at_] = None
                return self._state[whole.at][at_]
            case _:
                return super()._compute(term)
