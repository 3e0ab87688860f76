"""Evaluation of parametric terms on concrete values of one size, to distinguish a wrong proof from a weak translation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

from streamproof.any.certify.obligations import SAFE, ProofObligation, formed
from streamproof.any.certify.smt_script import SmtTerm
from streamproof.any.certify.smt_terms import layout
from streamproof.base.errors import ModelError
from streamproof.base.options import answer as answer_of
from streamproof.system import expr as e
from streamproof.system.interpreter import Evaluation
from streamproof.system.sorts import ArraySort, BoolSort, EnumSort, OptionSort, RecordSort, Sort, TermRange, values
from streamproof.transform.unbounded import BINDING, Forall, Parametric, Tabulated, Total, any_length

PATIENCE = 10_000
"""Time limit for a counterexample, in milliseconds."""
SMALL = 4
"""Values of free parameters at which a counterexample is searched."""


class NoValue(Exception):
    """A term reads an element outside an array of this size, or a solver's value is outside its sort."""


class Values(Evaluation):
    """The interpreter's evaluation on concrete values of names, with quantifiers, sums, and arrays of unbounded length.

    Such an array is a dictionary from its indices. `following` are the values in the next state.
    """

    def __init__(self, names: Any, following: Any = None) -> None:
        index: Any = {name: name for name in names}
        super().__init__(index, names, following)
        self._without = set[e.Expr]()
        """Terms that were found to have no value."""

    def __call__(self, term: e.Expr) -> Any:
        """The value of a term. Raises `NoValue`."""
        return self.value(term)

    def value(self, term: e.Expr) -> Any:
        """As the interpreter's, also of a very deep term with quantifiers, whose bodies have no value of their own."""
        try:
            return self._value(term)
        except RecursionError:
            done = set[e.Expr]()
            for part in e.unfinished(term, done, _operands):
                done.add(part)
                try:
                    self._value(part)
                except NoValue:  # its value may not be needed
                    self._without.add(part)
            return self._value(term)

    def range(self, sort: Any) -> range:
        """The indices in a range."""
        if isinstance(sort, TermRange):
            return range(self(sort.least), self(sort.most) + 1)
        return range(sort.lo, sort.hi + 1)

    def _compute(self, term: Any) -> Any:
        if term in self._without:
            raise NoValue("an operand has no value")
        match term:
            case Forall(bound=e.Var(name=name) as bound, body=body) | Total(bound=e.Var(name=name) as bound, body=body):
                names: Any = self._state
                parts = (Values({**names, name: at}, self._after)(body) for at in self.range(bound.sort))
                return all(parts) if isinstance(term, Forall) else sum(parts)
            case Tabulated(bound=e.Var(name=name) as bound, body=body):
                own: Any = self._state
                return {at: Values({**own, name: at}, self._after)(body) for at in self.range(bound.sort)}
            case e.Select(array=array, index=index) | e.Store(array=array, index=index) if any_length(array.sort):
                whole, at = self(array), self(index)
                if at not in whole:
                    raise NoValue(f"no element {at}")
                return {**whole, at: self(term.value)} if isinstance(term, e.Store) else whole[at]
            case _:
                return super()._compute(term)


def _operands(term: Any) -> tuple[e.Expr, ...]:
    """The subterms with values under the same names."""
    return () if isinstance(term, BINDING) else e.children(term)


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
        term = constants.get(obligation.before.names[free.name][0].text)
        if term is not None:
            solver.add(term <= SMALL, term >= -SMALL)
    if answer_of(solver) != z3.sat:
        return None
    model = solver.model()

    def value(term: SmtTerm, at: tuple[int, ...]) -> Any:
        """The model's value of a constant, or of its element at indices; an arbitrary value if unconstrained."""
        if term.text not in constants:
            return 0
        found = model.eval(reduce(z3.Select, at, constants[term.text]), model_completion=True)
        return z3.is_true(found) if z3.is_bool(found) else found.as_long()

    names: dict[str, Any] = {f.name: value(obligation.before.names[f.name][0], ()) for f in parametric.free}
    try:
        for variable in parametric.system.variables:
            columns = iter(obligation.before.names[variable.name])
            names[variable.name] = _plain(Values(names), variable.sort, columns, value, ())
        names |= {v.name: value(obligation.before.names[v.name][0], ()) for v in obligation.arguments}
        broken = breaks(parametric, obligation, names)
    except (NoValue, ModelError):  # an undefined array of any length has no value either
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


def _plain(
    given: Values,
    sort: Sort,
    columns: Iterator[SmtTerm],
    value: Callable[[SmtTerm, tuple[int, ...]], Any],
    at: tuple[int, ...],
) -> Any:
    """The concrete value of the next columns, or of their element at indices. Raises `NoValue` if it is outside the sort."""
    match sort:
        case ArraySort(index=TermRange() as index, element=element):
            lanes = [next(columns) for _ in layout(element)]
            return {k: _plain(given, element, iter(lanes), value, (*at, k)) for k in given.range(index)}
        case ArraySort(index, element):
            return tuple(_plain(given, element, columns, value, at) for _ in values(index))
        case RecordSort(fields):
            return tuple(_plain(given, field, columns, value, at) for _, field in fields)
        case OptionSort(element):
            present, held = value(next(columns), at), [next(columns) for _ in layout(element)]
            return _plain(given, element, iter(held), value, at) if present else None
        case EnumSort(members):
            found = int(value(next(columns), at))
            if found not in range(len(members)):
                raise NoValue(f"no member {found}")
            return members[found]
        case _:
            found = value(next(columns), at)
            return bool(found) if isinstance(sort, BoolSort) else int(found)
