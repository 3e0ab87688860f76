"""Mutants of a system: one small change each, in all instances of an action alike.

What is changed is the system, not its source, so that a mutant is one of every model, composition and variant. A change has
the position of the rule that it is about. A variable that leaves its sort is a mistake of the mutant; a read that only the
guard made safe gives the default value of its sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeAlias

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass, replace
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import (
    NOT_REACHED,
    REACHED,
    Action,
    Check,
    Conjunct,
    Fairness,
    Instance,
    StateConstraint,
    System,
    Variable,
)
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    cardinality,
    show,
    values,
)

Change: TypeAlias = Callable[[Instance], Instance | None]
"""Another instance in place of one of the action; None: none. The same instance: it is not changed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed system. `what` says the change in words, `loc` where the changed rule is."""

    kind: str
    what: str
    loc: Loc | None
    system: System
    action: str | None = None
    """The changed action; None: the initial values are changed."""

    @property
    def label(self) -> str:
        """The action and the change."""
        return self.what if self.action is None else f"{self.action}: {self.what}"


def mutants(system: System) -> Iterator[Mutant]:
    """The mutants, in the order of actions and variables; none is equal to the system term by term."""
    for action in system.actions:
        for kind, what, loc, change in _of_action(system, action):
            changed = _with_action(system, action.name, change)
            if changed is not None:
                yield Mutant(kind, what, loc, changed, action.name)
        if action.fairness is not Fairness.NONE:
            unfair = _unfair(system, action.name)
            yield Mutant("fairness", f"no {action.fairness.value} fairness", action.loc, unfair, action.name)
        for at, one in enumerate(action.several):
            what = f"no {one.fairness.value} fairness{one.part}"
            yield Mutant("fairness", what, action.loc, _unfair(system, action.name, at), action.name)
    if system.progress is not Fairness.NONE:
        what = f"no {system.progress.value} fairness of the next-state relation"
        yield Mutant("fairness", what, None, _idling(system))
    for variable in system.variables:
        other = _other_initial(variable)
        if other is not None:
            what = f"{variable.name} = {show(variable.sort, other)} initially"
            yield Mutant("initial value", what, variable.loc, _beginning(system, variable.name, other))


def _of_action(system: System, action: Action) -> Iterator[tuple[str, str, Loc | None, Change]]:
    """The changes of an action: kind, words, position, and the instance in place of each."""
    yield "action", "never possible", action.loc, lambda instance: None
    bounding = set() if system.constraint is None else {(c.text, c.loc) for c in system.constraint.conjuncts}
    written = ((c.text, c.loc) for i in action.instances for c in i.guard if _is_written(c))
    guards = dict.fromkeys(key for key in written if key not in bounding)
    for text, loc in guards:
        for kind, verb, change in _GUARDS:
            yield kind, f"{text!r} {verb}", loc, _on_guard(text, loc, change)
    sorts = {variable.name: variable.sort for variable in system.variables}
    for name in dict.fromkeys(name for i in action.instances for name, _ in i.updates):
        yield "update", f"{name} is not changed", action.loc, _on_update(name, lambda term, sort: None, sorts[name])
        for words, another in _UPDATES:
            yield "value", f"{name} {words}", action.loc, _on_update(name, another, sorts[name])


def _is_written(conjunct: Conjunct) -> bool:
    """Whether a conjunct is a condition of the source, and no part of the reading of a choice."""
    return conjunct.text not in (REACHED, NOT_REACHED)


# --- guards ---


def _relaxed(term: Expr) -> Expr:
    """The comparison with the other treatment of equal values; the connective in place of the other."""
    match term:
        case e.Less(left=x, right=y):
            return b.less_eq(x, y)
        case e.LessEq(left=x, right=y):
            return b.less(x, y)
        case e.And(args=args):
            return b.or_(args)
        case e.Or(args=args):
            return b.and_(args)
        case e.Not(arg=x):
            return b.not_(_relaxed(x))
        case _:
            return term


_GUARDS: tuple[tuple[str, str, Callable[[Expr], Expr]], ...] = (
    ("guard", "left out", lambda term: b.TRUE),
    ("negation", "negated", b.not_),
    ("comparison", "with equality or connective exchanged", _relaxed),
)


def _on_guard(text: str, loc: Loc | None, change: Callable[[Expr], Expr]) -> Change:
    def changed(instance: Instance) -> Instance:
        guard = tuple(replace(c, expr=change(c.expr)) if (c.text, c.loc) == (text, loc) else c for c in instance.guard)
        return instance if guard == instance.guard else replace(instance, guard=guard)

    return changed


# --- updates ---


def _shifted(term: Expr, sort: Sort, by: int) -> Expr:
    """The value for a variable or an element of a sort, or the element stored, one larger or smaller where the sort has such
    a value; else unchanged. That the value itself is one of the sort is checked before."""
    match term, sort:
        case e.Store(array=array, index=index, value=value), ArraySort(element=element):
            return b.store(array, index, _shifted(value, element, by))
        case e.Ite(cond=cond, then=then, other=other), _:
            return b.ite(cond, _shifted(then, sort, by), _shifted(other, sort, by))
        case _, RangeSort(lo=lo, hi=hi) if isinstance(term.sort, RangeSort) and lo < hi:
            last = b.num(hi if by > 0 else lo)
            return b.ite(b.eq(term, last), last, b.add(term, b.num(by)))
        case _:
            return term


def _elsewhere(term: Expr, sort: Sort) -> Expr:
    """A store at the next index, the first after the last."""
    match term:
        case e.Store(array=array, index=e.Const(value=index, sort=of), value=value) if cardinality(of) > 1:
            every = list(values(of))
            return b.store(array, b.const(of, every[(every.index(index) + 1) % len(every)]), value)
        case e.Ite(cond=cond, then=then, other=other):
            return b.ite(cond, _elsewhere(then, sort), _elsewhere(other, sort))
        case _:
            return term


_UPDATES: tuple[tuple[str, Callable[[Expr, Sort], Expr]], ...] = (
    ("gets one more", partial(_shifted, by=1)),
    ("gets one less", partial(_shifted, by=-1)),
    ("is changed at the next index", _elsewhere),
)


def _on_update(name: str, change: Callable[[Expr, Sort], Expr | None], sort: Sort) -> Change:
    def changed(instance: Instance) -> Instance:
        made = [(n, change(term, sort) if n == name else term) for n, term in instance.updates]
        updates = tuple((n, term) for n, term in made if term is not None)
        return instance if updates == instance.updates else replace(instance, updates=updates)

    return changed


# --- systems ---


def _with_action(system: System, name: str, change: Change) -> System | None:
    """The system with another action; None if no instance differs."""
    action = system.action(name)
    made = [(i, change(i)) for i in action.instances]
    if all(one is other for one, other in made):
        return None
    sorts = {variable.name: variable.sort for variable in system.variables}
    instances = tuple(i if i is other else _checked(other, sorts) for i, other in made if other is not None)
    actions = tuple(replace(a, instances=instances) if a.name == name else a for a in system.actions)
    changed = replace(system, actions=actions)
    return _with_free(changed, lambda free: _with_action(free, name, change) or free)


def _checked(instance: Instance, sorts: Mapping[str, Sort]) -> Instance:
    """A changed instance with checks that each variable keeps its sort: the guard may have shown that before."""
    leaving = ((name, _Leaving().condition(term, sorts[name])) for name, term in instance.updates)
    checks = tuple(Check(out, f"{name} leaves its range", None) for name, out in leaving if out is not b.FALSE)
    return replace(instance, effect_checks=(*instance.effect_checks, *checks))


class _Leaving:
    """When the value of a term is none of a sort, or a queue is full. The sort of a composite term says nothing of the values
    that are put into it, so that these are looked at one by one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Expr, Sort], Expr] = {}

    def condition(self, term: Expr, sort: Sort) -> Expr:
        """The condition; FALSE if it cannot be."""
        if (term, sort) not in self._known:
            self._known[term, sort] = b.or_(self._parts(term, sort))
        return self._known[term, sort]

    def _parts(self, term: Expr, sort: Sort) -> Iterator[Expr]:
        match term, sort:
            case e.Ite(cond=cond, then=then, other=other), _:
                yield b.and_((cond, self.condition(then, sort)))
                yield b.and_((b.not_(cond), self.condition(other, sort)))
            case e.Store(array=array, index=index, value=value), ArraySort(index=of, element=element):
                yield self.condition(array, sort)
                yield b.and_((b.in_domain(index, of), self.condition(value, element)))
            case e.MakeArray(elements=elements), ArraySort(element=element):
                yield from (self.condition(value, element) for value in elements)
            case e.WithField(record=record, name=name, value=value), RecordSort(fields=fields):
                yield self.condition(record, sort)
                yield self.condition(value, dict(fields)[name])
            case e.MakeRecord(values=made), RecordSort(fields=fields):
                yield from (self.condition(value, of) for value, (_, of) in zip(made, fields, strict=True))
            case e.MakeCase(case=case, payload=payload), UnionSort(cases=cases):
                yield self.condition(payload, dict(cases)[case])
            case e.Some(arg=value), OptionSort(element=element):
                yield self.condition(value, element)
            case e.Push(queue=queue, value=value), QueueSort(element=element, capacity=capacity):
                yield self.condition(queue, sort)
                yield self.condition(value, element)
                yield b.less_eq(b.num(capacity), b.length(queue))
            case e.Insert(set_=members, value=value), SetSort(element=element):
                yield self.condition(members, sort)
                yield self.condition(value, element)
            case _:
                yield b.not_(b.in_domain(term, sort))


def _unfair(system: System, name: str, listed: int | None = None) -> System:
    """The system without the fairness constraint of an action, or without one of several."""

    def without(action: Action) -> Action:
        if listed is None:
            return replace(action, fairness=Fairness.NONE)
        several = [replace(o, fairness=Fairness.NONE) if at == listed else o for at, o in enumerate(action.several)]
        return replace(action, several=tuple(several))

    actions = tuple(without(a) if a.name == name else a for a in system.actions)
    return _with_free(replace(system, actions=actions), partial(_unfair, name=name, listed=listed))


def _idling(system: System) -> System:
    """The system without fairness of its next-state relation."""
    return _with_free(replace(system, progress=Fairness.NONE), _idling)


def _beginning(system: System, name: str, value: Value) -> System:
    variables = tuple(replace(v, initial=(value,)) if v.name == name else v for v in system.variables)
    return _with_free(replace(system, variables=variables), lambda free: _beginning(free, name, value))


def _with_free(system: System, change: Callable[[System], System]) -> System:
    """The system, with the same change in the one without its constraint."""
    if system.constraint is None:
        return system
    constraint: StateConstraint = replace(system.constraint, free=change(system.constraint.free))
    return replace(system, constraint=constraint)


def _other_initial(variable: Variable) -> Value | None:
    """A value with which a variable does not begin: the next one of its sort, if it is a truth value, a number or a name."""
    if not isinstance(variable.sort, BoolSort | EnumSort | RangeSort) or cardinality(variable.sort) < 2:
        return None
    every = list(values(variable.sort)) if cardinality(variable.sort) <= _FEW else [*variable.initial, *_near(variable)]
    at = every.index(variable.initial[0]) if variable.initial and variable.initial[0] in every else -1
    others = (every[(at + k) % len(every)] for k in range(1, len(every)))
    return next((value for value in others if value not in variable.initial), None)


_FEW = 1000
"""Largest number of values of a sort that are listed."""


def _near(variable: Variable) -> list[Value]:
    """The values next to the first initial one of a large range."""
    assert isinstance(variable.sort, RangeSort)
    first = variable.initial[0]
    assert isinstance(first, int)
    return [value for value in (first + 1, first - 1) if variable.sort.lo <= value <= variable.sort.hi]


def kinds() -> tuple[str, ...]:
    """The kinds of mutants, in their order."""
    return (
        "action",
        *chain.from_iterable([kind] for kind, _, _ in _GUARDS),
        "update",
        "value",
        "fairness",
        "initial value",
    )
