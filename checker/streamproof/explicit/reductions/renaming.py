"""Renaming of interchangeable names in values, terms and systems.

For a renaming `r`: `renamed(sort, v, r)` is the value `v` with every name replaced (the elements of an array indexed by names
move with them). A term `t` becomes a term `t'` such that the value of `t'` in the renamed state is the renamed value of `t`
in the original state. This also holds where a total term has its sort's default: the default may be a name that is exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct, Instance, Property, System, mapped_conjuncts
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    ValueKeys,
    default,
    index_value,
    values,
)
from streamproof.transform.assume import Substitution

Renaming: TypeAlias = Mapping[EnumSort, Mapping[str, str]]
"""For some symmetric sorts, a permutation of their members."""


def symmetric_sorts(system: System) -> tuple[EnumSort, ...]:
    """The symmetric sorts with more than one member in the variables, in order of appearance."""
    found: dict[EnumSort, None] = {}
    for variable in system.variables:
        for sort in _within(variable.sort):
            if isinstance(sort, EnumSort) and sort.symmetric and len(sort.members) > 1:
                found[sort] = None
    return tuple(found)


def with_keys(system: System, renaming: Renaming) -> Renaming:
    """The renaming extended to the arrays whose keys contain names: ``(w1, w2)`` becomes ``(w2, w1)``."""
    names = {old: new for members in renaming.values() for old, new in members.items()}
    found = dict(renaming)
    for variable in system.variables:
        for sort in _within(variable.sort):
            if isinstance(sort, KeySort):
                moved = (
                    [index_value(sort, renamed(sort.item, key, renaming)) for key in sort.keys]
                    if isinstance(sort, ValueKeys)
                    else [index_value(sort, _host(key, names)) for key in sort.keys]
                )
                if set(moved) == set(sort.members):
                    found[sort] = dict(zip(sort.members, moved, strict=True))
    return found


def _within(sort: Sort) -> Iterator[Sort]:
    yield sort
    match sort:
        case ValueKeys(item=item):
            yield from _within(item)
        case BoolSort() | RangeSort() | EnumSort():
            pass
        case RecordSort(parts) | UnionSort(parts):
            for _, inner in parts:
                yield from _within(inner)
        case ArraySort(index, element):
            yield from _within(index)
            yield from _within(element)
        case OptionSort(element) | QueueSort(element, _) | SetSort(element):
            yield from _within(element)
        case _:
            assert_never(sort)


def renamed(sort: Sort, value: Value, renaming: Renaming) -> Value:
    """The value with every name of the renaming's sorts replaced."""
    match sort:
        case BoolSort() | RangeSort():
            return value
        case EnumSort():
            return renaming[sort][value] if sort in renaming else value
        case RecordSort(fields):
            return tuple(renamed(inner, item, renaming) for (_, inner), item in zip(fields, value, strict=True))
        case UnionSort():
            return (value[0], renamed(sort.payload(value[0]), value[1], renaming))
        case ArraySort(index, element):
            return tuple(renamed(element, value[at], renaming) for at in sources(index, renaming))
        case OptionSort(element):
            return None if value is None else renamed(element, value, renaming)
        case QueueSort(element, _):
            return tuple(renamed(element, item, renaming) for item in value)
        case SetSort(element):
            return frozenset(renamed(element, item, renaming) for item in value)
        case _:
            assert_never(sort)


def sources(index: Sort, renaming: Renaming) -> list[int]:
    """For each position of a renamed array, the position of its element in the original array."""
    keys = list(values(index))
    if not isinstance(index, EnumSort) or index not in renaming:
        return list(range(len(keys)))
    back = {new: old for old, new in renaming[index].items()}
    return [keys.index(back[key]) for key in keys]


class _Terms(Substitution):
    """Renames terms over composite variables."""

    def __init__(self, renaming: Renaming) -> None:
        super().__init__({})
        self._renaming = renaming

    def rebuild(self, term: Expr) -> Expr:
        match term:
            case e.Const(sort=sort, value=value):
                return b.const(sort, renamed(sort, value, self._renaming), term.loc)
            case e.MakeArray(sort=ArraySort(index, _) as sort, elements=parts):
                order = sources(index, self._renaming)
                return b.make_array(sort, (self._done[parts[at]] for at in order), term.loc)
            case e.Unwrap(arg=x):
                absent = b.is_none(self._done[x])
                return self._or_default(super().rebuild(term), term.sort, absent)
            case e.Payload(arg=x, case=case):
                other = b.not_(b.is_case(self._done[x], case))
                return self._or_default(super().rebuild(term), term.sort, other)
            case e.Peek(queue=x, index=y):
                at = self._done[y]
                outside = b.or_((b.less(at, b.num(0)), b.less_eq(b.length(self._done[x]), at)))
                return self._or_default(super().rebuild(term), term.sort, outside)
            case e.Select(array=x, index=y) if isinstance(x.sort, ArraySort):
                outside = b.not_(b.in_domain(self._done[y], x.sort.index))
                return self._or_default(super().rebuild(term), term.sort, outside)
            case _:
                return super().rebuild(term)

    def _or_default(self, term: Expr, sort: Sort, undefined: Expr) -> Expr:
        """A partial read; where it is undefined, its value is the renamed default."""
        usual = default(sort)
        other = renamed(sort, usual, self._renaming)
        return term if other == usual else b.ite(undefined, b.const(sort, other), term)


def renamed_system(system: System, renaming: Renaming) -> System:
    """The system whose behaviours are the renamed behaviours of `system`; instances and properties keep their order."""
    terms = _Terms(renaming)
    return system.with_instances(
        lambda instance: _instance(terms, renaming, instance),
        variables=tuple(
            replace(v, initial=tuple(renamed(v.sort, value, renaming) for value in v.initial)) for v in system.variables
        ),
        properties=tuple(_property(terms, p) for p in system.properties),
        initially=terms(system.initially),
        terminal=None if system.terminal is None else terms(system.terminal),
        lemmas=(),
    )


def _instance(terms: _Terms, renaming: Renaming, instance: Instance) -> Instance:
    names = {old: new for members in renaming.values() for old, new in members.items()}
    return Instance(
        instance.action,
        tuple((name, _host(value, names)) for name, value in instance.args),
        tuple((n, value if n in instance.labelled else _host(value, names)) for n, value in instance.picks),
        mapped_conjuncts(instance.guard, terms),
        tuple((name, terms(term)) for name, term in instance.updates),
        _checks(terms, instance.guard_checks),
        _checks(terms, instance.effect_checks),
        labelled=instance.labelled,
        sorts=instance.sorts,
    )


def _host(value: Any, names: Mapping[str, str]) -> Any:
    """A Python argument with the names replaced; used only to find the corresponding instance."""
    if isinstance(value, str):
        return names.get(value, value)
    if type(value) in (tuple, frozenset):
        return type(value)(_host(item, names) for item in value)
    return value


def _checks(terms: _Terms, checks: Iterable[Check]) -> tuple[Check, ...]:
    return tuple(replace(check, condition=terms(check.condition), operands=()) for check in checks)


def _property(terms: _Terms, prop: Property) -> Property:
    expr = terms(prop.expr)
    return Property(prop.name, prop.kind, expr, (Conjunct(expr, prop.name, prop.loc),), _checks(terms, prop.checks))
