"""The local view of a parametric system at one index: arrays of unbounded length shrink to one element.

A step changes a sum over all indices as it changes the element at its own index, so conservation laws are derived from
this small system, with parameters as read-only variables. It serves to find candidates only: reads at other indices and
quantified conditions are left unconstrained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from streamproof.base.records import dataclass
from streamproof.symbolic.discovery.leaf_names import leaf_terms
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.leaves import leaves
from streamproof.system.model import Action, Instance, System, Variable
from streamproof.system.sorts import ArraySort, OptionSort, RangeSort, RecordSort, Sort, TermRange
from streamproof.transform.assume import Substitution
from streamproof.transform.scalarise import scalarise
from streamproof.transform.unbounded import BINDING, EACH, Parametric


@dataclass(frozen=True)
class Local:
    """`system` is scalar. `terms` maps its variables to terms of the parametric system; elements of arrays of unbounded
    length are those at the variable `index`."""

    system: System
    terms: Mapping[str, Expr]
    index: Mapping[str, Expr]


def local(parametric: Parametric) -> Local | None:
    """The local view of a system whose sorts `Universe.fresh` supports; None if an array of unbounded length is inside
    another value."""
    system = parametric.system
    variables: list[Variable] = []
    terms: dict[str, Expr] = {}
    index: dict[str, Expr] = {}
    for v in system.variables:
        sort, term = v.sort, b.var(v.name, v.sort)
        bound = own_index(sort)
        if bound is not None:
            assert isinstance(sort, ArraySort)
            sort, term = sort.element, b.select(term, bound)
        if _is_unbounded(sort):
            return None
        for leaf, part in zip(leaves(sort, v.name), leaf_terms(sort, term), strict=True):
            terms[leaf.name] = part
            index |= {} if bound is None else {leaf.name: bound}
        variables.append(Variable(v.name, sort, (), v.loc))
    for f in parametric.free:
        variables.append(Variable(f.name, f.sort, ()))
        terms[f.name] = b.var(f.name, f.sort)
    sorts = {v.name: v.sort for v in variables}
    bare = System(system.name, tuple(variables), system.actions).with_instances(lambda i: _instance(i, sorts))
    return Local(scalarise(bare).system, terms, index)


def own_index(sort: Sort) -> Expr | None:
    """The index variable of an array of unbounded length; None for other sorts."""
    if isinstance(sort, ArraySort) and isinstance(sort.index, TermRange):
        return b.var(EACH, sort.index)
    return None


def _is_unbounded(sort: Sort) -> bool:
    """Whether a value of this sort has an array of unbounded length in it."""
    match sort:
        case ArraySort(index, element):
            return isinstance(index, TermRange) or _is_unbounded(element)
        case RecordSort(fields):
            return any(_is_unbounded(inner) for _, inner in fields)
        case OptionSort(element):
            return _is_unbounded(element)
        case _:
            return False


def _instance(instance: Instance, sorts: Mapping[str, Sort]) -> Instance:
    """The effect of an instance at its own index."""
    seen: dict[Sort, list[Expr]] = {}
    for _, value in instance.args:
        if isinstance(value, e.Var):
            seen.setdefault(value.sort, []).append(value)
    own = {sort: found[0] for sort, found in seen.items() if len(found) == 1}
    rewriting = _Rewriting(own, sorts)
    guard = []
    for conjunct in instance.guard:
        term = rewriting(conjunct.expr)
        guard += [] if term is None else [replace(conjunct, expr=term)]
    updates = []
    for name, value in instance.updates:
        now = rewriting.element(value) if own_index(value.sort) is not None else rewriting(value)
        # An inexpressible value is a fresh constant, so no law can depend on it.
        unknown = b.var(f"?{name}", RangeSort(-1, 1)) if isinstance(sorts[name], RangeSort) else None
        new = now if now is not None else unknown
        updates += [] if new is None else [(name, new)]
    args = tuple((n, "c" if isinstance(v, e.Var) else v) for n, v in instance.args)
    return Instance(instance.action, args, instance.picks, tuple(guard), tuple(updates), labelled=instance.labelled)


class _Rewriting:
    """Terms of an instance over the elements at its own index; None if not expressible."""

    def __init__(self, own: Mapping[Sort, Expr], sorts: Mapping[str, Sort]) -> None:
        self._own = own
        self._sorts = sorts

    def __call__(self, root: Expr) -> Expr | None:
        reads: dict[Expr, Expr] = {}
        for term in e.subterms(root):
            if isinstance(term, BINDING):
                return None
            if isinstance(term, e.Select) and isinstance(term.array, e.Var):
                sort = term.array.sort
                if isinstance(sort, ArraySort) and self._own.get(sort.index) is term.index:
                    reads[term] = b.var(term.array.name, sort.element)
        result = Substitution(reads)(root)
        return None if any(own_index(t.sort) is not None for t in e.subterms(result)) else result

    def element(self, array: Expr) -> Expr | None:
        """The element, at its own index, of an array that was written."""
        sort = array.sort
        assert isinstance(sort, ArraySort)
        match array:
            case e.Var(name=name):
                return b.var(name, sort.element)
            case e.Store(index=index, value=value) if index is self._own.get(sort.index):
                return self(value)
            case e.Ite(cond=c, then=x, other=y):
                cond, then, other = self(c), self.element(x), self.element(y)
                return None if cond is None or then is None or other is None else b.ite(cond, then, other)
            case _:
                return None


def without(system: System, actions: Collection[str], written: Collection[str] | None = None) -> System:
    """The system without some actions, and with updates of some variables only (None: all)."""

    def kept(action: Action) -> Iterator[Instance]:
        for i in action.instances:
            yield i if written is None else replace(i, updates=tuple(u for u in i.updates if u[0] in written))

    return replace(
        system,
        actions=tuple(replace(a, instances=tuple(kept(a))) for a in system.actions if a.name not in actions),
    )


def forgetting(system: System) -> Iterator[str]:
    """The actions that assign a variable a value independent of its former value."""
    for action in system.actions:
        for instance in action.instances:
            if any(name not in e.variables(value) for name, value in instance.updates):
                yield action.name
                break
