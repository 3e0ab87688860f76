"""Evaluation of parametric terms on concrete values of one size, to distinguish a wrong proof from a weak translation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamproof.certify.obligations import SAFE, ProofObligation, formed
from streamproof.certify.smt_script import Shape, SmtTerm
from streamproof.certify.smt_terms import field_position
from streamproof.system import expr as e
from streamproof.system.options import answer as answer_of
from streamproof.system.records import dataclass
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    RecordSort,
    Sort,
    TermRange,
    Value,
    default,
    position,
)
from streamproof.system.unbounded import Forall, Parametric, Total

PATIENCE = 10_000
"""Time limit for a counterexample, in milliseconds."""
SMALL = 4
"""Values of free parameters at which a counterexample is searched."""
OPERATIONS: dict[type[Any], Callable[[Any, Any], Any]] = {
    e.Eq: operator.eq, e.Less: operator.lt, e.LessEq: operator.le,
    e.Add: operator.add, e.Sub: operator.sub, e.Mul: operator.mul,
}  # fmt: skip


class NoValue(Exception):
    """A term reads an element outside an array of this size, or a solver's value is outside its sort."""


@dataclass(frozen=True)
class Values:
    """Concrete values of the names in terms. An array of unbounded length is a dictionary from its indices.

    `following` are the values in the next state.
    """

    names: Mapping[str, Any]
    following: Mapping[str, Any] | None = None

    def range(self, sort: Any) -> range:
        """The indices in a range."""
        if isinstance(sort, TermRange):
            return range(self(sort.least), self(sort.most) + 1)
        return range(sort.lo, sort.hi + 1)

    def __call__(self, term: Any) -> Any:
        """The value of a term. Raises `NoValue`."""
        match term:
            case e.Const(value=value):
                return value
            case e.Var(name=name):
                return self.names[name]
            case e.Next(name=name):
                assert self.following is not None
                return self.following[name]
            case e.Not(arg=a):
                return not self(a)
            case e.And(args=args):
                return all(self(a) for a in args)
            case e.Or(args=args):
                return any(self(a) for a in args)
            case e.Ite(cond=c, then=x, other=y):
                return self(x) if self(c) else self(y)
            case Forall(bound=e.Var(name=name, sort=sort), body=body):
                return all(Values({**self.names, name: at}, self.following)(body) for at in self.range(sort))
            case Total(bound=e.Var(name=name, sort=sort), body=body):
                return sum(Values({**self.names, name: at}, self.following)(body) for at in self.range(sort))
            case e.Field(record=record, name=name):
                return self(record)[field_position(record, name)]
            case e.WithField(record=record, name=name, value=value):
                at, whole = field_position(record, name), self(record)
                return (*whole[:at], self(value), *whole[at + 1 :])
            case e.Unwrap(sort=sort, arg=a):
                found = self(a)
                return default(sort) if found is None else found
        parts = [self(child) for child in e.children(term)]
        if type(term) in OPERATIONS:
            return OPERATIONS[type(term)](*parts)
        match term:
            case e.FloorDiv():
                return parts[0] // parts[1] if parts[1] else 0
            case e.Mod():
                return parts[0] % parts[1] if parts[1] else 0
            case e.MakeArray() | e.MakeRecord():
                return tuple(parts)
            case e.Some():
                return parts[0]
            case e.IsNone():
                return parts[0] is None
            case e.Select(array=array) | e.Store(array=array):
                return _element(array.sort, *parts)
        raise NoValue(type(term).__name__)


def _element(sort: Any, whole: Any, index: Value, *stored: Value) -> Value:
    """The element of an array, or the array with another one."""
    if isinstance(whole, dict):
        if index not in whole:
            raise NoValue(f"no element {index}")
        return {**whole, index: stored[0]} if stored else whole[index]
    at = position(sort.index, index)
    if not stored:
        return default(sort.element) if at is None else whole[at]
    return whole if at is None else (*whole[:at], stored[0], *whole[at + 1 :])


def refuted(parametric: Parametric, obligation: ProofObligation) -> str | None:
    """The parameters at which concrete values refute an obligation, if the solver finds some at a small size.

    Then the proof is wrong: the claims are not inductive. None: the model of the script may be due to a missing
    instance.
    """
    import z3

    solver: Any = z3.Solver(ctx=z3.Context())
    solver.set("timeout", PATIENCE)
    solver.from_string(obligation.text)
    constants = {term.decl().name(): term for root in solver.assertions() for term in _constants(root)}
    for free in parametric.free:
        term = constants.get(obligation.before.names[free.name].text)
        if term is not None:
            solver.add(term <= SMALL, term >= -SMALL)
    if answer_of(solver) != z3.sat:
        return None
    model = solver.model()

    def value(term: SmtTerm, at: int | None) -> Any:
        """The model's value of a constant, or of its element; an arbitrary value if unconstrained."""
        if term.text not in constants:
            return 0
        whole = constants[term.text]
        found = model.eval(whole if at is None else z3.Select(whole, at), model_completion=True)
        return z3.is_true(found) if z3.is_bool(found) else found.as_long()

    names: dict[str, Any] = {f.name: value(obligation.before.names[f.name], None) for f in parametric.free}
    try:
        for variable in parametric.system.variables:
            names[variable.name] = _plain(
                Values(names), variable.sort, obligation.before.names[variable.name], value, None
            )
        names |= {v.name: value(obligation.before.names[v.name], None) for v in obligation.arguments}
        broken = breaks(parametric, obligation, names)
    except NoValue:
        return None
    return ", ".join(f"{f.name}={names[f.name]}" for f in parametric.free) or "any size" if broken else None


def breaks(parametric: Parametric, obligation: ProofObligation, names: Mapping[str, Any]) -> bool:
    """Whether concrete values satisfy the assumptions of an obligation, and break its claim. Raises `NoValue`."""
    before, instance, goal = Values(names), obligation.instance, obligation.goal
    whole = formed(parametric)
    limits = ((names[f.name], f.least, f.most) for f in parametric.free)
    if not all((lo is None or lo <= n) and (hi is None or n <= hi) for n, lo, hi in limits):
        return False
    if any(names[v.name] not in before.range(v.sort) for v in obligation.arguments):
        return False
    if not all(before(whole if claim is SAFE else claim.condition) for claim in obligation.assumed):
        return False
    if instance is None:
        return bool(before(parametric.initial) and not before(whole if goal is SAFE else goal.condition))
    if goal is SAFE and any(before(check.condition) for check in instance.guard_checks):
        return True
    if not all(before(conjunct.expr) for conjunct in instance.guard):
        return False
    if goal is SAFE and any(before(check.condition) for check in instance.effect_checks):
        return True
    after = {**names, **{name: before(term) for name, term in instance.updates}}
    if goal.step:
        return not Values(names, after)(goal.condition)
    return not Values(after)(whole if goal is SAFE else goal.condition)


def _constants(root: Any) -> Iterator[Any]:
    """The constants in a formula of Z3."""
    seen, pending = set(), [root]
    while pending:
        term = pending.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            pending += term.children()
            if term.num_args() == 0 and term.decl().name()[0] in "xswq":
                yield term


def _plain(given: Values, sort: Sort, shape: Shape, value: Callable[[SmtTerm, int | None], Any], at: int | None) -> Any:
    """The concrete value of a shape, or of its element at an index. Raises `NoValue` if it is outside the sort."""
    match sort:
        case ArraySort(index=TermRange() as index, element=element):
            return {k: _plain(given, element, shape.element, value, k) for k in given.range(index)}
        case ArraySort(_, element):
            return tuple(_plain(given, element, part, value, at) for part in shape)
        case RecordSort(fields):
            return tuple(_plain(given, field, part, value, at) for (_, field), part in zip(fields, shape, strict=True))
        case OptionSort(element):
            return _plain(given, element, shape[1], value, at) if value(shape[0], at) else None
        case EnumSort(members):
            found = int(value(shape, at))
            if found not in range(len(members)):
                raise NoValue(f"no member {found}")
            return members[found]
        case _:
            found = value(shape, at)
            return bool(found) if isinstance(sort, BoolSort) else int(found)
