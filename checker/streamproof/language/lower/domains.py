"""The domains of an action's parameters, and the combinations of their values.

A domain is given in the decorator: a number n for 0..n-1, a range, a collection, a sort, the name of an attribute of the
model, or a function. A function ``lambda m: ...`` gets the model; ``lambda m, c: ...`` also gets the value of the earlier
parameter ``c``, so that its values may depend on it.
"""

from __future__ import annotations

import enum
import inspect
import math
import types
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError
from streamproof.language.declare.model import Model
from streamproof.language.declare.primitives import ActionMark
from streamproof.language.declare.variables import Decl
from streamproof.language.free.symbolic_parameters import (
    SymbolicInt,
    SymbolicRange,
    call_user,
    expect_sums,
    range_between,
    sort_of,
    term_of,
)
from streamproof.language.lower.access import attribute_outside
from streamproof.language.lower.conversion import in_order, plain_inside
from streamproof.language.lower.elements import refuse_iterator
from streamproof.language.lower.sources import decoration, parameters, place
from streamproof.language.lower.steadiness import READ_DRAWN, unsteady
from streamproof.language.lower.terms import describe, is_expr
from streamproof.system import build as b
from streamproof.system import sorts

INSTANCE_LIMIT = 200_000
COMBINATIONS = 10 * INSTANCE_LIMIT
"""Maximum number of combinations of an action's arguments, even if guards disable most of them."""
_READ_ALIKE = frozenset({list, tuple, set, frozenset, dict, range, enum.EnumType})
"""Types of domains with the same values at each reading."""


class Domains:
    """The domains of one action of a model.

    `free` are the parameters of the model without a value; `called` is the name of the action in the system.
    """

    def __init__(
        self,
        model: Model,
        name: str,
        mark: ActionMark,
        function: types.FunctionType,
        free: frozenset[str] = frozenset(),
        called: str = "",
    ) -> None:
        self.model, self.name, self.function, self.free, self.called = model, name, function, free, called or name
        self.given = _parameters(name, function, dict(mark.domains))
        self.impure = False
        """Whether functions of the model were called for the values."""
        self._declared = dict(mark.domains)

    def combinations(self) -> Iterator[tuple[tuple[str, Any], ...]]:
        """Every combination of values, the last parameter first to vary. Raises `ModelError`."""
        fixed = {p: self.values(p, {}) for p in self.given if not self.reads(p)}
        if len(fixed) == len(self.given):
            count = math.prod(map(len, fixed.values()))
        else:
            count = sum(1 for _ in islice(self._behind((), fixed), COMBINATIONS + 1))
        if count > COMBINATIONS:
            raise too_many(self.name, f"{COMBINATIONS:,} combinations of values", self.function)
        return self._behind((), fixed)

    def _behind(
        self, args: tuple[tuple[str, Any], ...], fixed: dict[str, list[Any]]
    ) -> Iterator[tuple[tuple[str, Any], ...]]:
        if len(args) == len(self.given):
            yield args
            return
        p = self.given[len(args)]
        for value in fixed[p] if p in fixed else self.values(p, dict(args)):
            yield from self._behind((*args, (p, value)), fixed)

    def reads(self, parameter: str) -> tuple[str, ...]:
        """The earlier parameters on which a domain depends."""
        given = self._declared[parameter]
        if not isinstance(given, types.FunctionType):
            return ()
        named = tuple(inspect.signature(given).parameters)[1:]
        before = self.given[: self.given.index(parameter)]
        for name in named:
            if name not in before:
                raise ModelError(
                    f"the domain of {self.name}({parameter}) depends on {name!r}, which is not an earlier parameter",
                    loc=decoration(self.function),
                    remedy=f"earlier parameters: {', '.join(before) or 'none'}",
                )
        return named

    def values(self, parameter: str, earlier: Mapping[str, Any]) -> list[Any]:
        """The values of a parameter, given those of the earlier parameters on which they depend. Raises `ModelError`."""
        loc, what = decoration(self.function), f"the domain of {self.name}({parameter})"
        domain = self._values(parameter, earlier, loc, what)
        given = self._declared[parameter]
        again = int(isinstance(given, str))
        if isinstance(given, types.FunctionType | types.MethodType):
            again = READ_DRAWN if _draws(given, type(self.model)) else 1
        compared = [plain_inside(v) for v in domain]
        for _ in range(again):
            if [plain_inside(v) for v in self._values(parameter, earlier, loc, what)] != compared:
                raise _not_deterministic(what, loc)
        return domain

    def _values(self, parameter: str, earlier: Mapping[str, Any], loc: Loc | None, what: str) -> list[Any]:
        """The same, evaluated once."""
        given = self._declared[parameter]
        if isinstance(given, str):
            try:
                given = attribute_outside(self.model, given, what, loc)
            except AttributeError:
                raise ModelError(
                    f"{what}, {given!r}, is not an attribute of the model",
                    loc=loc,
                    remedy="name a parameter or something set in setup(), or give a list",
                ) from None
        if isinstance(given, types.FunctionType | types.MethodType):
            self.impure = True
            wanted = [earlier[name] for name in self.reads(parameter)]
            if any(is_expr(value) for value in wanted):
                raise ModelError(
                    f"{what} depends on a parameter with any number of values",
                    loc=loc,
                    remedy="give it a domain of its own, and write the condition as require(...)",
                )
            given = call_user(given, (self.model, *wanted), what, loc)
        refuse_iterator(given, loc, what)
        expect_sums(given, loc)
        if type(given) is SymbolicInt:
            given = range_between([term_of(given)], loc)
        if type(given) is SymbolicRange:
            return [b.var(f"{self.called}.{parameter}", sort_of(given), loc)]
        if isinstance(given, int) and not isinstance(given, bool):
            given = range(given)
        if isinstance(given, Decl):
            few = sorts.cardinality_up_to(given.sort, INSTANCE_LIMIT) <= INSTANCE_LIMIT
            given = _cases(given) if few else range(INSTANCE_LIMIT + 1)
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise ModelError(f"{what} is {describe(given)}", loc=loc, remedy="use an int, a range, or a list")
        domain = _elements(given)
        if type(given) not in _READ_ALIKE and domain != _elements(given):
            raise _not_deterministic(what, loc)
        if len(domain) > INSTANCE_LIMIT:
            raise ModelError(
                f"{what} has more than {INSTANCE_LIMIT:,} values", loc=loc, remedy="a smaller domain, as range(3)"
            )
        for v in domain:
            try:
                hash(v)
            except TypeError:
                raise ModelError(
                    f"{what} holds {describe(v)}, which is not hashable", loc=loc, remedy="use tuples instead of lists"
                ) from None
        return domain


Members: TypeAlias = Mapping[str, Mapping[tuple[type, Any], Any]]
"""For parameters whose domains contain enumeration members: the member for each value, with its type."""


def members(model: Model, name: str, mark: ActionMark, function: types.FunctionType) -> Members:
    """The enumeration members in an action's domains: a system uses plain values, the model's functions get members."""
    found: dict[str, dict[tuple[type, Any], Any]] = {}
    domains = Domains(model, name, mark, function)
    for parameter, given in mark.domains:
        given = getattr(model, given, None) if isinstance(given, str) else given
        if isinstance(given, types.FunctionType):
            dependent = domains.reads(parameter)
            given = [dict(args)[parameter] for args in domains.combinations()] if dependent else given(model)
        given = _cases(given) if isinstance(given, Decl) else given
        for value in given if isinstance(given, enum.EnumType | list | tuple | Set | Mapping) else ():
            whole = plain_inside(value)
            if whole is not value:
                found.setdefault(parameter, {})[type(whole), whole] = value
    return found


def _cases(given: Decl) -> tuple[Any, ...]:
    """The values of a sort; those of a union as instances of its cases."""
    every = sorts.values(given.sort)
    if not isinstance(given.sort, sorts.UnionSort):
        return tuple(every)
    from streamproof.language.native.value_places import FixedValue
    from streamproof.language.native.views import look

    return tuple(look(given.sort, FixedValue(v)) for v in every)


def as_member(table: Members, name: str, value: Any) -> Any:
    """The enumeration member for a parameter's plain value, or the value itself."""
    return table[name].get((type(value), value), value) if name in table else value


def _parameters(name: str, function: types.FunctionType, declared: dict[str, Any]) -> list[str]:
    """The parameters of a rule behind the state. Raises `ModelError` unless each has a domain, and only those have."""
    names = list(parameters(function))[1:]
    if not names:
        raise ModelError(f"action {name} takes no state", loc=place(function), remedy=f"write def {name}(self, s, ...)")
    if function.__code__.co_kwonlyargcount:
        raise ModelError(
            f"action {name} has parameters behind a *",
            loc=place(function),
            remedy=f"write def {name}(self, s, ...)",
        )
    for p in names[1:]:
        if p not in declared:
            raise ModelError(
                f"parameter {p!r} of action {name} has no domain",
                loc=decoration(function),
                remedy=f"give it in the decorator: @action({p}=range(2))",
            )
    for p in declared:
        if p not in names[1:]:
            raise ModelError(
                f"@action of {name} gives a domain for {p!r}, which is not a parameter",
                loc=decoration(function),
                remedy=f"write def {name}(self, s, {', '.join(declared)})",
            )
    return names[1:]


def _draws(given: types.FunctionType | types.MethodType, model: type) -> bool:
    plain = given.__func__ if isinstance(given, types.MethodType) else given
    return isinstance(plain, types.FunctionType) and unsteady(plain, model.__mro__) is not None


def _not_deterministic(what: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{what} is not deterministic: two evaluations gave different values",
        loc=loc,
        remedy="keep a list or tuple, without random numbers or the clock; nondeterminism comes from choose(...)",
    )


def too_many(action: str, what: str, function: types.FunctionType) -> ModelError:
    """The error for an action with too many instances."""
    return ModelError(f"action {action} has more than {what}", loc=place(function), remedy="smaller domains")


def _elements(domain: Iterable[Any]) -> list[Any]:
    """The values of a domain, up to one more than the maximum."""
    return in_order(islice(domain, INSTANCE_LIMIT + 1) if not isinstance(domain, set | frozenset) else domain)
