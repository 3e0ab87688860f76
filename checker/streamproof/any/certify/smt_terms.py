"""Terms of a parametric system as SMT-LIB text: the verifier's own translation, independent of the engines.

A value is a row of scalars, its columns: an integer is an Int, a member of an Enum its position, a truth value a Bool. An
option is a flag, then the columns of its value; a record and an array of fixed length have the columns of their parts. An
array of unbounded length has an SMT-LIB array for each column of its elements, which may be arrays themselves. Outside its
index range such an array has arbitrary values, which are not part of the state: a proof for all of them is a proof for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from streamproof.any.certify.smt_script import (
    FALSE,
    INT,
    TRUE,
    TRUTH,
    Columns,
    Script,
    SmtTerm,
    Untranslatable,
    number,
)
from streamproof.base.records import dataclass
from streamproof.system import expr as e
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    Value,
    default,
    values,
)
from streamproof.transform.unbounded import BINDING, Forall, Tabulated, Total, any_length


@dataclass(frozen=True, slots=True)
class SmtColumn:
    """A scalar of every value of a sort. `flags`: how many columns to the left the flag of each option around it is."""

    sort: str
    flags: tuple[int, ...] = ()


def layout(sort: Sort) -> tuple[SmtColumn, ...]:
    """The columns of a sort. Raises `Untranslatable` for an unsupported sort."""
    match sort:
        case BoolSort():
            return (SmtColumn(TRUTH),)
        case RangeSort() | EnumSort():
            return (SmtColumn(INT),)
        case OptionSort(element):
            held = enumerate(layout(element), start=1)
            return (SmtColumn(TRUTH), *(SmtColumn(column.sort, (*column.flags, at)) for at, column in held))
        case ArraySort(index=TermRange(), element=element):
            return tuple(SmtColumn(_lane(column.sort), column.flags) for column in layout(element))
    return tuple(chain.from_iterable(map(layout, _parts(sort))))


def literal(sort: Sort, value: Value) -> Columns:
    """The columns of a value of `sort`."""
    match sort:
        case BoolSort():
            return (TRUE if value else FALSE,)
        case RangeSort():
            return (number(value),)
        case EnumSort(members):
            return (number(members.index(value)),)
        case OptionSort(element) if value is None:
            return (FALSE, *literal(element, default(element)))
        case OptionSort(element):
            return (TRUE, *literal(element, value))
    return tuple(chain.from_iterable(literal(part, one) for part, one in zip(_parts(sort), value, strict=True)))


def constant(script: Script, sort: Sort) -> Columns:
    """Fresh constants for a value of `sort`. Raises `Untranslatable` for an unsupported sort."""
    return tuple(script.fresh("x", column.sort) for column in layout(sort))


def absent(script: Script, sort: Sort) -> Columns:
    """The value of a term of `sort` where it is undefined: any value, if an array of unbounded length is in it. Raises
    `Untranslatable` for an unsupported sort."""
    scalar = all(column.sort in (INT, TRUTH) for column in layout(sort))
    return literal(sort, default(sort)) if scalar else constant(script, sort)


def span(record: Any, name: str) -> slice:
    """The columns of a field in those of a record."""
    at = record.index(name)
    before = sum(len(layout(field)) for _, field in record.fields[:at])
    return slice(before, before + len(layout(record.fields[at][1])))


def _parts(sort: Sort) -> list[Sort]:
    """The sorts of the parts of a record or an array of fixed length."""
    if isinstance(sort, RecordSort):
        return [field for _, field in sort.fields]
    if not isinstance(sort, ArraySort) or any_length(sort):
        raise _unsupported(sort)
    return [sort.element for _ in values(sort.index)]


def _unsupported(sort: Sort) -> Untranslatable:
    return Untranslatable(f"the verifier has no {sort} in proofs for every size")


def _lane(sort: str) -> str:
    return f"(Array Int {sort})"


class SmtView:
    """The columns of terms in one state: `names` gives those of variables, parameters and bound indices.

    `following` is the view of the state after the step, which `Next` reads. `totals` has a constant for each sum over
    an unbounded range, `conditions` a Boolean constant for each quantified condition inside a value; both dictionaries
    belong to the state and are shared with the views that `bound` makes.
    """

    def __init__(self, script: Script, names: Mapping[str, Columns]) -> None:
        self.script, self.names = script, names
        self.following: SmtView | None = None
        self.totals: dict[Total, SmtTerm] = {}
        self.conditions: dict[tuple[Any, ...], tuple[SmtView, Forall, SmtTerm]] = {}
        self.tables: list[tuple[SmtView, Tabulated, Columns]] = []
        """Arrays with a term for each index: the view, the array, and its constants, which are shared like `totals`."""
        self.inner: dict[str, SmtTerm] = {}
        self._known: dict[e.Expr, Columns] = {}

    def bound(self, name: str, value: SmtTerm) -> SmtView:
        """The same state, with a value for a bound index."""
        view = SmtView(self.script, {**self.names, name: (value,)})
        view.inner = {**self.inner, name: value}
        view.following, view.totals, view.conditions = self.following, self.totals, self.conditions
        view.tables = self.tables
        return view

    def value(self, root: e.Expr) -> Columns:
        """The columns of a term. Raises `Untranslatable`."""
        stack = [root]
        while stack:
            missing = [part for part in _operands(stack[-1]) if part not in self._known]
            if not missing:
                top = stack.pop()
                if top not in self._known:
                    self._known[top] = self._translate(top)
            stack += missing
        return self._known[root]

    def scalar(self, root: e.Expr) -> SmtTerm:
        """The only column of an expression of a scalar sort."""
        (found,) = self.value(root)
        return found

    def _translate(self, term: e.Expr) -> Columns:
        """The columns of a term whose operands have theirs."""
        if type(term) not in MEANING:
            raise Untranslatable(f"the verifier has no {type(term).__name__} in proofs for every size", loc=term.loc)
        return MEANING[type(term)](self, term, *(self._known[part] for part in _operands(term)))

    def next(self, name: str) -> Columns:
        """The columns of a variable after the step."""
        if self.following is None:
            raise Untranslatable("the verifier has no step here")
        return self.following.names[name]

    def choice(self, condition: SmtTerm, left: Columns, right: Columns) -> Columns:
        """`left` if `condition` else `right`."""
        return tuple(self.script.choice(condition, x, y) for x, y in zip(left, right, strict=True))

    def product(self, term: e.Mul | e.FloorDiv | e.Mod, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        """Product, or quotient or remainder with Python's rounding: 0 for a divisor of 0. SMT-LIB rounds down for positive
        divisors."""
        s, zero = self.script, number(0)
        if isinstance(term, e.Mul):
            s.nonlinear |= not isinstance(term.left, e.Const) and not isinstance(term.right, e.Const)
            return s.op("*", INT, left, right)
        s.nonlinear |= not isinstance(term.right, e.Const)
        return s.choice(s.same(right, zero), zero, self._divided(left, right, isinstance(term, e.Mod)))

    def _divided(self, left: SmtTerm, right: SmtTerm, rest: bool) -> SmtTerm:
        """Quotient or remainder by a divisor other than 0."""
        s = self.script
        if rest:
            plain, turned = s.op("mod", INT, left, right), s.minus(s.op("mod", INT, s.minus(left), s.minus(right)))
        else:
            plain, turned = s.op("div", INT, left, right), s.op("div", INT, s.minus(left), s.minus(right))
        return s.choice(s.op("<", TRUTH, right, number(0)), turned, plain)

    def equal(self, sort: Sort, left: Columns, right: Columns) -> SmtTerm:
        """Equality of two values: of each column whose options are present. Raises `Untranslatable`."""
        s, found = self.script, []
        for at, column in enumerate(layout(sort)):
            if column.sort not in (INT, TRUTH):
                raise Untranslatable("the verifier does not compare arrays of any length")
            absent = [s.negation(left[at - back]) for back in column.flags]
            found.append(s.any_of([*absent, s.same(left[at], right[at])]))
        return s.all_of(found)

    def element(self, sort: Any, whole: Columns, index: SmtTerm) -> Columns:
        """An element of an array."""
        if any_length(sort):
            scalars = layout(sort.element)
            return tuple(self.script.op("select", c.sort, lane, index) for c, lane in zip(scalars, whole, strict=True))
        found = absent(self.script, sort.element)
        for here, row in reversed([*self._rows(sort, whole, index)]):
            found = self.choice(here, row, found)
        return found

    def with_element(self, sort: Any, whole: Columns, index: SmtTerm, value: Columns) -> Columns:
        """An array with another element."""
        if any_length(sort):
            pairs = zip(whole, value, strict=True)
            return tuple(self.script.op("store", lane.sort, lane, index, scalar) for lane, scalar in pairs)
        return tuple(chain(*(self.choice(here, value, row) for here, row in self._rows(sort, whole, index))))

    def _rows(self, sort: ArraySort, whole: Columns, index: SmtTerm) -> Iterator[tuple[SmtTerm, Columns]]:
        """The elements of an array of fixed length, each with the condition that it is the one at `index`."""
        width = len(layout(sort.element))
        for at, key in enumerate(values(sort.index)):
            yield self.script.same(index, *literal(sort.index, key)), whole[at * width : (at + 1) * width]

    def total(self, total: Total) -> SmtTerm:
        """The constant of a sum in this state. Raises `Untranslatable` if it depends on another bound index."""
        assert isinstance(total.bound, e.Var)
        if e.variables(total.body) - {total.bound.name} & self.inner.keys():
            raise Untranslatable("a sum over any number of indices depends on another index", loc=total.loc)
        if total not in self.totals:
            self.totals[total] = self.script.fresh("s", INT)
        return self.totals[total]

    def table(self, table: Tabulated) -> Columns:
        """Constants for an array, which `Conditions.tables` defines at the indices in use."""
        made = tuple(self.script.fresh("x", column.sort) for column in layout(table.sort))
        self.tables.append((self, table, made))
        return made

    def condition(self, condition: Forall) -> SmtTerm:
        """The constant of a quantified condition in this state."""
        key = (condition, *sorted((name, term.text) for name, term in self.inner.items()))
        if key not in self.conditions:
            self.conditions[key] = (self, condition, self.script.fresh("q", TRUTH))
        return self.conditions[key][2]


def _operands(term: e.Expr) -> tuple[e.Expr, ...]:
    """The subterms with values: the bodies of sums and quantifiers read an index without value."""
    return () if isinstance(term, BINDING) else e.children(term)


def _with_field(view: SmtView, term: Any, record: Columns, value: Columns) -> Columns:
    here = span(term.sort, term.name)
    return record[: here.start] + value + record[here.stop :]


MEANING: dict[type[Any], Callable[..., Columns]] = {
    e.Const: lambda view, term: literal(term.sort, term.value),
    e.Var: lambda view, term: view.names[term.name],
    e.Next: lambda view, term: view.next(term.name),
    e.Not: lambda view, term, arg: (view.script.negation(*arg),),
    e.And: lambda view, term, *args: (view.script.all_of(chain(*args)),),
    e.Or: lambda view, term, *args: (view.script.any_of(chain(*args)),),
    e.Ite: lambda view, term, cond, then, other: view.choice(*cond, then, other),
    e.Eq: lambda view, term, left, right: (view.equal(term.left.sort, left, right),),
    e.Less: lambda view, term, left, right: (view.script.op("<", TRUTH, *left, *right),),
    e.LessEq: lambda view, term, left, right: (view.script.op("<=", TRUTH, *left, *right),),
    e.Add: lambda view, term, left, right: (view.script.op("+", INT, *left, *right),),
    e.Sub: lambda view, term, left, right: (view.script.op("-", INT, *left, *right),),
    **dict.fromkeys((e.Mul, e.FloorDiv, e.Mod), lambda view, term, left, right: (view.product(term, *left, *right),)),
    **dict.fromkeys((e.MakeArray, e.MakeRecord), lambda view, term, *parts: tuple(chain(*parts))),
    e.Select: lambda view, term, array, index: view.element(term.array.sort, array, *index),
    e.Store: lambda view, term, array, index, value: view.with_element(term.sort, array, *index, value),
    e.Field: lambda view, term, record: record[span(term.record.sort, term.name)],
    e.WithField: _with_field,
    e.Some: lambda view, term, arg: (TRUE, *arg),
    e.IsNone: lambda view, term, arg: (view.script.negation(arg[0]),),
    e.Unwrap: lambda view, term, arg: view.choice(arg[0], arg[1:], absent(view.script, term.sort)),
    Total: lambda view, term: (view.total(term),),
    Forall: lambda view, term: (view.condition(term),),
    Tabulated: lambda view, term: view.table(term),
}
"""The columns of each kind of term, from those of its operands."""
