"""Calls of a model's functions that rules have in common, lowered once.

Whether all consumers of a partition have finished is part of the rule of each of its 500 consumers. A call whose
arguments are plain values means the same in all of them, as a function of the state: from its second occurrence on it is
lowered in the state before any assignment, and its result and assignments are taken over by substitution of the present
state. Calls that require, choose, may be errors, or return local containers are lowered each time.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.base.records import dataclass
from streamproof.language.lower.lowering_context import Context, Halt, OutsideCalls
from streamproof.language.lower.terms import StateRef, Term, is_expr
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import Sort
from streamproof.transform.assume import CellSubstitution

_PLAIN = (str, int, bool, type(None))
_STATE = object()
_CLOSED = ((), ("__class__",))
"""What functions refer to that depend on nothing around them; their class, for `super()`."""


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A call in the state before any assignment."""

    result: Term
    assigned: Mapping[str, Expr]
    unrolled: int
    impure: bool
    """See `OutsideCalls`."""
    substitution: CellSubstitution
    """Of variables in the result and the assigned terms."""


class EqualCalls:
    """The calls in the rules of one model."""

    def __init__(self, sorts: Mapping[str, Sort]) -> None:
        self._variables = {name: b.var(name, sort) for name, sort in sorts.items()}
        self._known: dict[Any, _Lowered | None] = {}
        """By function and arguments; None: it is lowered each time."""
        self._met: set[Any] = set()
        self._kept: dict[int, Any] = {}
        """The objects whose numbers are in keys; kept, so that no other object gets a number of theirs."""
        self._tuples: dict[int, bool] = {}

    def key(self, function: Any, args: list[Term], kwargs: dict[str, Term]) -> Any:
        """What identifies a call, None if its arguments are not plain."""
        plain = function.__func__ if isinstance(function, types.MethodType) else function
        if kwargs or not isinstance(plain, types.FunctionType) or plain.__code__.co_freevars not in _CLOSED:
            return None
        owner = function.__self__ if isinstance(function, types.MethodType) else None
        self._kept[id(plain)] = plain
        self._kept[id(owner)] = owner
        parts: list[Any] = [id(plain), id(owner)]
        for arg in args:
            if type(arg) in _PLAIN:
                parts.append((type(arg), arg))
            elif type(arg) is StateRef and not arg.after and arg.names is None:
                parts.append(_STATE)
            elif type(arg) is tuple and self._is_plain(arg):
                parts.append(arg)
            else:
                return None
        return (*parts,) if _STATE in parts else None

    def _is_plain(self, value: tuple[Any, ...]) -> bool:
        """Whether a tuple has only texts, so that an equal one is the same."""
        number = id(value)
        if number not in self._tuples:
            self._kept[number] = value
            self._tuples[number] = all(type(part) is str for part in value)
        return self._tuples[number]

    def lowered(self, key: Any, context: Context, lower: Callable[[Context], Term]) -> _Lowered | None:
        """The call with this key from its second occurrence on, if it is one that can be taken over."""
        if key not in self._known:
            if key not in self._met:
                self._met.add(key)
                return None
            self._known[key] = self._alone(context, lower)
        return self._known[key]

    def _alone(self, context: Context, lower: Callable[[Context], Term]) -> _Lowered | None:
        state = dict(self._variables)
        alone = Context(context.sorts, state, context.label, outside=OutsideCalls(), calls=self)
        try:
            result = lower(alone)
        except (Halt, StreamproofError):
            return None
        done = alone.guards or alone.checks or alone.picks or alone.widths or alone.replaced
        if done or not (is_expr(result) or type(result) in _PLAIN) or alone.path is not b.TRUE:
            return None
        assigned = {n: t for n, t in alone.state.items() if t is not state[n]}
        roots = (*assigned.values(), *((result,) if is_expr(result) else ()))
        return _Lowered(result, assigned, alone.unrolled, alone.outside.impure, CellSubstitution(roots))

    def taken(self, call: _Lowered, context: Context) -> Term:
        """The result of a call in the present state, which is changed by its assignments."""
        state = context.state
        changed = {self._variables[n]: t for n, t in state.items() if t is not self._variables[n]}
        changed_terms = call.substitution.changed(changed)
        context.unrolled += call.unrolled
        context.outside.impure |= call.impure
        if call.assigned:
            context.state = {**state, **{n: changed_terms.get(t, t) for n, t in call.assigned.items()}}
        return changed_terms.get(call.result, call.result) if is_expr(call.result) else call.result
