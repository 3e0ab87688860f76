"""The places of a state on which the value of a term depends, in that state.

The traversal follows the evaluation: of a false conjunction it visits the first false conjunct only, of a conditional
the condition and the branch taken, of a read from an updated array the update or the array below. So the places explain
the actual value; the term may mention more.
"""

from __future__ import annotations

from collections.abc import Callable

from streamproof.system import expr as e
from streamproof.system.expr import Expr, children
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import State
from streamproof.system.records import dataclass
from streamproof.system.sorts import ArraySort, BagSort, RecordSort, Value, position
from streamproof.traces.places import Place


@dataclass(frozen=True, slots=True)
class Read:
    """A place that was read; `after` if it was read in the state after the step."""

    place: Place
    after: bool = False


def reads(
    interpreter: Interpreter, term: Expr, state: State, after: State | None = None, keys: tuple[Value, ...] = ()
) -> tuple[Read, ...]:
    """The places that determine `term` (or its component at `keys`) in `state`, in the order of reading."""
    walk = _Walk(lambda t: interpreter.value(t, state, after))
    walk.visit(term, keys)
    return tuple(walk.found)


class _Walk:
    """One traversal of a term; shared subterms are visited once per requested component."""

    def __init__(self, value: Callable[[Expr], Value]) -> None:
        self._evaluate = value
        self._values: dict[Expr, Value] = {}
        self._visited: set[tuple[Expr, tuple[Value, ...]]] = set()
        self.found: dict[Read, None] = {}

    def _value(self, term: Expr) -> Value:
        if term not in self._values:
            self._values[term] = self._evaluate(term)
        return self._values[term]

    def visit(self, term: Expr, keys: tuple[Value, ...] = ()) -> None:
        if (term, keys) in self._visited:
            return
        self._visited.add((term, keys))
        match term:
            case e.Const():
                return
            case e.Var(name=name):
                self.found[Read(Place(name, keys))] = None
            case e.Next(name=name):
                self.found[Read(Place(name, keys), after=True)] = None
            case e.And(args=args) | e.Or(args=args):
                # The first operand that decides the value is the reason; if none does, all operands together are.
                decisive = isinstance(term, e.Or)
                deciding = next((a for a in args if self._value(a) is decisive), None)
                for part in args if deciding is None else (deciding,):
                    self.visit(part)
            case e.Ite(cond=cond, then=then, other=other):
                self.visit(cond)
                self.visit(then if self._value(cond) else other, keys)
            case e.Select(array=array, index=index):
                self.visit(index)
                sort = array.sort
                assert isinstance(sort, ArraySort)
                key = self._value(index)
                if isinstance(sort, BagSort):
                    self.visit(array)
                elif position(sort.index, key) is not None:
                    self.visit(array, (key, *keys))
            case e.Store(array=array, index=index, value=value):
                self.visit(index)
                key = self._value(index)
                if not keys:
                    self.visit(array)
                    self.visit(value)
                elif keys[0] == key:
                    self.visit(value, keys[1:])
                else:
                    self.visit(array, keys)
            case e.MakeArray(elements=elements) if keys:
                sort = term.sort
                assert isinstance(sort, ArraySort)
                at = position(sort.index, keys[0])
                if at is not None:
                    self.visit(elements[at], keys[1:])
            case e.Field(record=record, name=name):
                self.visit(record, (name, *keys))
            case e.WithField(record=record, name=name, value=value):
                if not keys:
                    self.visit(record)
                    self.visit(value)
                elif keys[0] == name:
                    self.visit(value, keys[1:])
                else:
                    self.visit(record, keys)
            case e.MakeRecord(values=parts) if keys:
                record_sort = term.sort
                assert isinstance(record_sort, RecordSort)
                self.visit(parts[record_sort.index(keys[0])], keys[1:])
            case e.Some(arg=arg) | e.Unwrap(arg=arg):
                self.visit(arg, keys)
            case _:
                for child in children(term):
                    self.visit(child)
