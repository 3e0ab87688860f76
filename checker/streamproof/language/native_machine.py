"""Native execution of a model's own functions on concrete states, as ordinary Python that a debugger can step through.

Lowering and this module share no code that determines what a rule does: tests compare them on every bundled model.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, TypeAlias, cast

from streamproof.language.conversion import to_value
from streamproof.language.declare import Bool, State
from streamproof.language.domains import as_member, members
from streamproof.language.model import Model, marked
from streamproof.language.primitives import COPY, PICKS, ActionMark, ConstraintMark, Disabled, InitiallyMark, Picks
from streamproof.language.reader import choice_conditions
from streamproof.language.sources import RUNNING, CallSite, as_model_error, parameters, place
from streamproof.language.terms import describe
from streamproof.language.value_places import Box, FixedValue
from streamproof.language.views import checked, look
from streamproof.system.constraint import cut_name
from streamproof.system.errors import ModelError, StreamproofError, UsageError, nearest
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Conjunct, Instance, System
from streamproof.system.model import State as Values
from streamproof.system.sorts import Sort

READ_ONLY = "a property cannot change the state"

Reached: TypeAlias = Mapping[Instance, tuple[tuple[Expr, bool], ...]]
"""For each instance, and each of its picks, what `choice_conditions` returns."""


class StateView:
    """The state visible to a rule: its variables are attributes."""

    __slots__ = ("_sorts", "_values")
    _sorts: Mapping[str, Sort]
    _values: Box | FixedValue

    def __init__(self, sorts: Mapping[str, Sort], state: Values, writable: bool) -> None:
        values = dict(zip(sorts, state, strict=True))
        object.__setattr__(self, "_sorts", sorts)
        object.__setattr__(self, "_values", Box(values) if writable else FixedValue(values, READ_ONLY))

    def _sort(self, name: str) -> Sort:
        if name not in self._sorts:
            near = nearest(name, self._sorts)
            remedy = f"did you mean {near[0]!r}?" if near else f"the state has {', '.join(self._sorts)}"
            raise ModelError(f"no state variable {name!r}", loc=CallSite().loc, remedy=remedy)
        return self._sorts[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return look(self._sort(name), self._values.part(name))

    def __setattr__(self, name: str, given: Any) -> None:
        self._values.replace(name, checked(self._sort(name), given, CallSite()))

    def __repr__(self) -> str:
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in self._sorts)


def copied(view: Any) -> Any:
    """A copy of a state, or of the part of a composition that a view shows, that a rule may change."""
    made = object.__new__(type(view))
    for name in type(view).__slots__:
        object.__setattr__(made, name, object.__getattribute__(view, name))
    object.__setattr__(made, "_values", Box(dict(view._values.get())))
    return made


class NativeMachine:
    """A model without parts whose rules and properties run as ordinary Python functions."""

    def __init__(self, model: Model) -> None:
        self.model = model
        declared = model.state()
        if not isinstance(declared, State):
            raise ModelError(f"state() returned {describe(declared)}", loc=place(type(model).state))
        self._declared = dict(declared.items())
        self._found = marked(type(model))
        self._with_cut()
        self._reached: dict[Any, Reached] = {}

    def _with_cut(self) -> None:
        """Adds the variable that records broken constraints on steps, if there are any."""
        self._limits = [f for mark, f in marked(type(self.model)).values() if isinstance(mark, ConstraintMark)]
        self._step_limits = [f for f in self._limits if len(parameters(f)) == 3]
        if self._step_limits:
            self._declared[cut_name(self._declared)] = Bool()
        self._sorts = {n: d.sort for n, d in self._declared.items()}

    def values(self, state: Values | Mapping[str, Any]) -> Values:
        """A state as a tuple. Raises `UsageError` or `ModelError` for a mapping that is not a state of the model."""
        if not isinstance(state, Mapping):
            return state
        for name in {*state} ^ {*self._sorts}:
            raise UsageError(f"{name!r} is {'missing' if name in self._sorts else 'no variable'}")
        return tuple(to_value(sort, state[n], None) for n, sort in self._sorts.items())

    def initial(self, most: int | None = None) -> Iterator[Values]:
        """The initial states among the first `most` combinations of initial values."""
        predicates = [f for mark, f in self._found.values() if isinstance(mark, InitiallyMark)]
        for state in islice(product(*(d.first for d in self._declared.values())), most):
            if all(self._call(p, p.__name__, [state], ()) for p in predicates):
                yield state

    def step(
        self,
        state: Values | Mapping[str, Any],
        action: str,
        /,
        *args: Any,
        picks: Sequence[Any] = (),
        **named: Any,
    ) -> Values | None:
        """The state after an action, or None if it is disabled; `picks` are the results of its `choose` calls, in order.

        Raises `EvaluationError` where the checker would report one, `NoPick` for a choice without a pick.
        """
        mark, function = self._found.get(action, (None, None))
        if not isinstance(mark, ActionMark) or function is None:
            actions = [n for n, (m, _) in self._found.items() if isinstance(m, ActionMark)]
            raise UsageError(f"no action {action!r}", remedy=f"the actions are {', '.join(actions)}")
        names = parameters(function)[2:]
        given = [*zip(names, args, strict=False), *named.items()]
        before = self.values(state)
        if not self._inside(before):
            return None
        shown = f"{action}({', '.join(f'{n}={v}' for n, v in given)})"
        view = StateView(self._sorts, before, writable=True)
        try:
            self._run(function, shown, [view, *args], named, picks)
        except Disabled:
            return None
        return self._cut(before, tuple(view._values.get().values()))

    def picks(self, state: Values, instance: Instance, system: System) -> list[Any] | None:
        """The picks of an instance that its actions reach in `state`, in the form that `step` requires.

        None if an unreached choice does not have the first pick of its domain: that instance is disabled, because
        another one represents it.
        """
        if not instance.picks:
            return []
        interpreter, reached = Interpreter(system), []
        guard = instance.guard if system.constraint is None else system.constraint.own_guard(instance)
        for (_, value), (condition, first) in zip(instance.picks, self._conditions(instance, guard), strict=True):
            if interpreter.value(condition, state):
                reached.append(value)
            elif not first:
                return None
        return reached

    def _conditions(self, instance: Instance, guard: Sequence[Conjunct]) -> Sequence[tuple[Expr, bool]]:
        """The condition under which the instance, with this guard, reaches each of its picks."""
        key = (instance.action, instance.args)
        if key not in self._reached:
            self._reached[key] = choice_conditions(self.model, *key)
        return next(c for i, c in self._reached[key].items() if (i.picks, i.guard) == (instance.picks, guard))

    def take(self, state: Values, instance: Instance, system: System) -> Values | None:
        """The state after a step of a trace, or None if the step is disabled."""
        picks = self.picks(state, instance, system)
        if picks is None or not self._inside(state):
            return None
        after = self._taken(state, instance, picks)
        return None if after is None else self._cut(state, after)

    def _taken(self, state: Values, instance: Instance, picks: Sequence[Any]) -> Values | None:
        """The values that the action of an instance assigns, whatever the constraints are; None if it is disabled."""
        view = StateView(self._sorts, state, writable=True)
        _, function = self._found[instance.action]
        try:
            self._run(function, instance.label, [view, *(v for _, v in instance.args)], {}, picks)
        except Disabled:
            return None
        return tuple(view._values.get().values())

    def _inside(self, state: Values) -> bool:
        """Whether the constraints of the model are true, and the step to this state has broken none."""
        broken = bool(self._step_limits) and state[-1]
        return not broken and all(self._limit(f, [state]) for f in self._limits if f not in self._step_limits)

    def _cut(self, before: Values, after: Values) -> Values:
        """`after`, with the record whether the step breaks a constraint on steps."""
        if not self._step_limits or after == before:
            return after
        return (*after[:-1], not all(self._limit(f, [before, after]) for f in self._step_limits))

    def _limit(self, function: Callable[..., Any], states: Sequence[Values]) -> bool:
        return bool(self._call(function, function.__name__, states, ()))

    def holds(self, prop: str | Callable[..., Any], state: Values, after: Values | None = None) -> bool:
        """Whether a property holds in a state, or for the step from it to `after`."""
        function = self._found[prop][1] if isinstance(prop, str) else prop
        states = [state] if after is None else [state, after]
        return bool(self._call(function, f"property {function.__name__}", states, ()))

    def _call(self, function: Callable[..., Any], label: str, states: Sequence[Values], picks: Sequence[Any]) -> Any:
        views = [StateView(self._sorts, self.values(s), writable=False) for s in states]
        return self._run(function, label, views, {}, picks)

    def _run(
        self,
        function: Callable[..., Any],
        label: str,
        args: list[Any],
        named: dict[str, Any],
        picks: Sequence[Any] | Picks,
        model: Model | None = None,
    ) -> Any:
        """The result of a function of `model`; picks passed by the caller may remain unused."""
        answers = picks if isinstance(picks, Picks) else Picks(tuple(picks))
        owner = self.model if model is None else model
        name = function.__name__
        mark, rule = marked(type(owner)).get(name, (None, None)) if len(args) > 1 or named else (None, None)
        if isinstance(mark, ActionMark) and (table := members(owner, name, mark, cast(types.FunctionType, rule))):
            names = parameters(cast(types.FunctionType, rule))[2:]
            args = [*args[:1], *(as_member(table, n, v) for n, v in zip([*names, *args], args[1:], strict=False))]
            named = {n: as_member(table, n, v) for n, v in named.items()}
        running = RUNNING.set(label)
        token, copying = PICKS.set(answers), COPY.set(copied)
        try:
            result = function(owner, *args, **named)
        except (Disabled, StreamproofError):
            raise
        except Exception as error:
            mistake = as_model_error(error)
            if mistake is None:
                raise
            raise mistake from error
        finally:
            COPY.reset(copying)
            PICKS.reset(token)
            RUNNING.reset(running)
        if answers is not picks and answers.used < len(answers.given):
            raise UsageError(
                f"{len(answers.given)} picks were given, {answers.used} used", remedy="leave the others out"
            )
        return result
