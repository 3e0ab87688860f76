"""The claims about a parametric system: on states, on steps, and domain claims for its variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Const, Expr, FloorDiv, Mod, Mul, Var, subterms
from streamproof.system.model import Kind, Property
from streamproof.system.sorts import (
    INFINITY,
    ArraySort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    values,
)
from streamproof.transform.unbounded import Parametric, at_most, exists, forall


@dataclass(frozen=True, slots=True)
class ParametricClaim:
    """`condition` holds in every reachable state, or for every step if `step`. `found`: discovered, not written by the
    author."""

    name: str
    condition: Expr
    step: bool = False
    found: bool = False


def claim(parametric: Parametric, prop: Property) -> ParametricClaim | None:
    """A property as a claim, including that its evaluation is not an error; None for kinds outside induction."""
    checks = [b.not_(c.condition) for c in prop.checks]
    match prop.kind:
        case Kind.INVARIANT | Kind.STEP:
            return ParametricClaim(prop.name, b.and_([prop.expr, *checks]), prop.kind is Kind.STEP)
        case Kind.DEADLOCK:
            return ParametricClaim(prop.name, b.and_([b.or_(_going(parametric)), *checks]))
        case Kind.REACHABLE | Kind.TERMINATION | Kind.TEMPORAL:
            return None
        case _:
            assert_never(prop.kind)


def _going(parametric: Parametric) -> Iterator[Expr]:
    """The disjuncts of deadlock freedom: an instance is enabled, or the state is terminal."""
    if parametric.system.terminal is not None:
        yield parametric.system.terminal
    for instance in parametric.system.instances:
        enabled = b.and_(c.expr for c in instance.guard)
        for _, value in instance.args:
            if isinstance(value, Var):
                enabled = exists(value, enabled)
        yield enabled


def products(parametric: Parametric, prop: Property) -> Iterator[Expr]:
    """The nonlinear terms of a property and of the rules: products and divisions by unknowns, which solvers often
    cannot decide."""
    stated = claim(parametric, prop)
    roots = [] if stated is None else [stated.condition]
    for instance in parametric.system.instances:
        roots += [c.expr for c in instance.guard]
        roots += [term for _, term in instance.updates]
    for term in subterms(*roots):
        if isinstance(term, FloorDiv | Mod) and not isinstance(term.right, Const):
            yield term
        if isinstance(term, Mul) and not isinstance(term.left, Const) and not isinstance(term.right, Const):
            yield term


def well_formed(parametric: Parametric) -> Expr:
    """Every variable has a value of its sort."""
    return b.and_(inside(b.var(v.name, v.sort), v.sort, 0) for v in parametric.system.variables)


def ends(sort: RangeSort) -> tuple[Expr | None, Expr | None]:
    """The least and the greatest value of a range, None if there is none."""
    if isinstance(sort, TermRange):
        return sort.least, sort.most
    return b.num(sort.lo) if sort.lo > -INFINITY else None, b.num(sort.hi) if sort.hi < INFINITY else None


def inside(term: Expr, sort: Sort, depth: int) -> Expr:
    """The domain condition of a term; the range of its own sort would be simplified away."""
    match sort:
        case RangeSort():
            least, most = ends(sort)
            low = b.TRUE if least is None else at_most(least, term)
            return b.and_((low, b.TRUE if most is None else at_most(term, most)))
        case EnumSort(members):
            return b.or_(b.eq(term, b.const(sort, m)) for m in members)
        case RecordSort(fields):
            return b.and_(inside(b.field(term, n), s, depth) for n, s in fields)
        case OptionSort(element):
            return b.or_((b.is_none(term), inside(b.unwrap(term), element, depth)))
        case ArraySort(index=TermRange() as index, element=element):
            bound = b.var(f"at'{depth}", index)
            return forall(bound, inside(b.select(term, bound), element, depth + 1))
        case ArraySort(index, element):
            return b.and_(inside(b.select(term, b.const(index, k)), element, depth) for k in values(index))
        case _:
            return b.TRUE  # a truth value; other sorts are rejected when their shape is computed
