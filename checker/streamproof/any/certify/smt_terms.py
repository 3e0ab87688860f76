"""Terms of a parametric system as SMT-LIB text: the verifier's own translation, independent of the engines.

An integer is an Int, a member of an Enum its position, a truth value a Bool. Composite values are Python tuples of such
terms. An array of unbounded length is an SMT-LIB array for each scalar of its elements (`SmtLanes`). Outside its index
range such an array has arbitrary values, which are not part of the state: a proof for all of them is a proof for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.any.certify.smt_script import (
    FALSE,
    INT,
    TRUE,
    TRUTH,
    Script,
    Shape,
    SmtLanes,
    SmtTerm,
    Untranslatable,
    mapped,
    number,
)
from streamproof.system import expr as e
from streamproof.system.sorts import (
    BOOL,
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
from streamproof.transform.unbounded import Forall, Total

OPERATIONS = {e.Less: ("<", TRUTH), e.LessEq: ("<=", TRUTH), e.Add: ("+", INT), e.Sub: ("-", INT)}


class SmtView:
    """The values of terms in one state: `names` gives the shapes of variables, parameters and bound indices.

    `following` is the view of the state after the step, which `Next` reads. `totals` has a constant for each sum over
    an unbounded range, `conditions` a Boolean constant for each quantified condition inside a value; both dictionaries
    belong to the state and are shared with the views that `bound` makes.
    """

    def __init__(self, script: Script, names: Mapping[str, Shape], following: SmtView | None = None) -> None:
        self.script, self.names, self.following = script, names, following
        self.totals: dict[Total, SmtTerm] = {}
        self.conditions: dict[tuple[Any, ...], tuple[SmtView, Forall, SmtTerm]] = {}
        self.inner: dict[str, SmtTerm] = {}
        self._known: dict[e.Expr, Shape] = {}

    def bound(self, name: str, value: SmtTerm) -> SmtView:
        """The same state, with a value for a bound index."""
        view = SmtView(self.script, {**self.names, name: value}, self.following)
        view.totals, view.conditions, view.inner = self.totals, self.conditions, {**self.inner, name: value}
        return view

    def value(self, root: e.Expr) -> Shape:
        """The shape of a term. Raises `Untranslatable`."""
        stack = [root]
        while stack:
            top: Any = stack[-1]
            # The bodies of sums and quantifiers read an index without value.
            inside = () if isinstance(top, Total | Forall) else e.children(top)
            missing = [child for child in inside if child not in self._known]
            if top in self._known or not missing:
                stack.pop()
                if top not in self._known:
                    self._known[top] = self._translate(top)
            stack += missing
        return self._known[root]

    def scalar(self, root: e.Expr) -> SmtTerm:
        """The term of an expression of a scalar sort."""
        found = self.value(root)
        assert isinstance(found, SmtTerm)
        return found

    def _translate(self, term: Any) -> Shape:
        s, of = self.script, self._known
        match term:
            case e.Const(sort=sort, value=value):
                return literal(sort, value)
            case e.Var(name=name):
                return self.names[name]
            case e.Next(name=name) if self.following is not None:
                return self.following.names[name]
            case e.Not(arg=a):
                return s.negation(of[a])
            case e.And(args=args):
                return s.all_of([of[a] for a in args])
            case e.Or(args=args):
                return s.any_of([of[a] for a in args])
            case e.Ite(cond=c, then=a, other=b):
                return mapped(lambda x, y: s.choice(of[c], x, y), of[a], of[b])
            case e.Eq(left=a, right=b):
                return self._equal(a.sort, of[a], of[b])
            case e.Less(left=a, right=b) | e.LessEq(left=a, right=b) | e.Add(left=a, right=b) | e.Sub(left=a, right=b):
                return s.op(*OPERATIONS[type(term)], of[a], of[b])
            case e.Mul(left=a, right=b):
                s.nonlinear |= not any(isinstance(factor, e.Const) for factor in (a, b))
                return s.op("*", INT, of[a], of[b])
            case e.FloorDiv(left=a, right=b) | e.Mod(left=a, right=b):
                s.nonlinear |= not isinstance(b, e.Const)
                return self._divided(of[a], of[b], isinstance(term, e.Mod))
            case e.MakeArray(elements=parts) | e.MakeRecord(values=parts):
                return tuple(of[p] for p in parts)
            case e.Select(array=array, index=index):
                return self._selected(array.sort, of[array], of[index])
            case e.Store(array=array, index=index, value=value):
                return self._stored(array.sort, of[array], of[index], of[value])
            case e.Field(record=record, name=name):
                return of[record][field_position(record, name)]
            case e.WithField(record=record, name=name, value=value):
                at = field_position(record, name)
                return (*of[record][:at], of[value], *of[record][at + 1 :])
            case e.Some(arg=a):
                return (TRUE, of[a])
            case e.IsNone(arg=a):
                return s.negation(of[a][0])
            case e.Unwrap(sort=sort, arg=a):
                return mapped(lambda x, y: s.choice(of[a][0], x, y), of[a][1], literal(sort, default(sort)))
            case Total():
                return self.total(term)
            case Forall():
                return self._condition(term)
            case _:
                raise Untranslatable(
                    f"the verifier has no {type(term).__name__} in proofs for every size", loc=term.loc
                )

    def _divided(self, left: SmtTerm, right: SmtTerm, rest: bool) -> SmtTerm:
        """Quotient or remainder with Python's rounding, 0 for a divisor of 0; SMT-LIB rounds down for positive divisors."""
        s = self.script
        if rest:
            plain, turned = s.op("mod", INT, left, right), s.minus(s.op("mod", INT, s.minus(left), s.minus(right)))
        else:
            plain, turned = s.op("div", INT, left, right), s.op("div", INT, s.minus(left), s.minus(right))
        zero = number(0)
        other = s.choice(s.op("<", TRUTH, right, zero), turned, plain)
        return s.choice(s.same(right, zero), zero, other)

    def _equal(self, sort: Sort, left: Shape, right: Shape) -> SmtTerm:
        s = self.script
        match sort:
            case OptionSort(element):
                held = s.any_of([s.negation(left[0]), self._equal(element, left[1], right[1])])
                return s.all_of([s.same(left[0], right[0]), held])
            case RecordSort(fields):
                parts = zip(fields, left, right, strict=True)
                return s.all_of([self._equal(field, x, y) for (_, field), x, y in parts])
            case ArraySort(index=TermRange()):
                raise Untranslatable("the verifier does not compare arrays of any length")
            case ArraySort(_, element):
                return s.all_of([self._equal(element, x, y) for x, y in zip(left, right, strict=True)])
            case _:
                return s.same(left, right)

    def _selected(self, sort: Any, whole: Shape, index: SmtTerm) -> Shape:
        s = self.script
        if isinstance(whole, SmtLanes):
            return mapped(lambda lane: s.op("select", _element(lane), lane, index), whole.element)
        chosen = literal(sort.element, default(sort.element))
        for key, part in zip(reversed(list(values(sort.index))), reversed(whole), strict=True):
            here = s.same(index, literal(sort.index, key))
            chosen = mapped(lambda x, y, here=here: s.choice(here, x, y), part, chosen)
        return chosen

    def _stored(self, sort: Any, whole: Shape, index: SmtTerm, value: Shape) -> Shape:
        s = self.script
        if isinstance(whole, SmtLanes):
            return SmtLanes(mapped(lambda lane, x: s.op("store", lane.sort, lane, index, x), whole.element, value))
        keys = [s.same(index, literal(sort.index, key)) for key in values(sort.index)]
        pairs = zip(keys, whole, strict=True)
        return tuple(mapped(lambda x, y, here=here: s.choice(here, x, y), value, old) for here, old in pairs)

    def total(self, total: Total) -> SmtTerm:
        """The constant of a sum in this state. Raises `Untranslatable` if it depends on another bound index."""
        assert isinstance(total.bound, e.Var)
        if e.variables(total.body) - {total.bound.name} & self.inner.keys():
            raise Untranslatable("a sum over any number of indices depends on another index", loc=total.loc)
        if total not in self.totals:
            self.totals[total] = self.script.fresh("s", INT)
        return self.totals[total]

    def _condition(self, condition: Forall) -> SmtTerm:
        key = (condition, *sorted((name, term.text) for name, term in self.inner.items()))
        if key not in self.conditions:
            self.conditions[key] = (self, condition, self.script.fresh("q", TRUTH))
        return self.conditions[key][2]


def field_position(record: e.Expr, name: str) -> int:
    """The position of a field in a record."""
    assert isinstance(record.sort, RecordSort)
    return record.sort.index(name)


def literal(sort: Sort, value: Value) -> Shape:
    """A value of `sort`."""
    match sort:
        case BoolSort():
            return TRUE if value else FALSE
        case RangeSort():
            return number(value)
        case EnumSort(members):
            return number(members.index(value))
        case RecordSort(fields):
            return tuple(literal(s, v) for (_, s), v in zip(fields, value, strict=True))
        case OptionSort(element):
            return (
                TRUE if value is not None else FALSE,
                literal(element, default(element) if value is None else value),
            )
        case ArraySort(_, element):
            return tuple(literal(element, v) for v in value)
    raise Untranslatable(f"the verifier has no {sort} in proofs for every size")


def constant(script: Script, sort: Sort, *, lane: bool = False) -> Shape:
    """Fresh constants for a value of `sort`. Raises `Untranslatable` for an unsupported sort."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            scalar = TRUTH if sort == BOOL else INT
            return script.fresh("x", f"(Array Int {scalar})" if lane else scalar)
        case RecordSort(fields):
            return tuple(constant(script, s, lane=lane) for _, s in fields)
        case OptionSort(element):
            return (constant(script, BOOL, lane=lane), constant(script, element, lane=lane))
        case ArraySort(index=TermRange(), element=element) if not lane:
            return SmtLanes(constant(script, element, lane=True))
        case ArraySort(index, element) if not isinstance(index, TermRange):
            return tuple(constant(script, element, lane=lane) for _ in values(index))
    raise Untranslatable(f"the verifier has no {sort} in proofs for every size")


def _element(lane: SmtTerm) -> str:
    return lane.sort.removeprefix("(Array Int ").removesuffix(")")
