"""`Native`: execution of a model's own functions on concrete states, as ordinary Python that a debugger can step through.

Each machine of a composition sees its own variables and parts, and a joint step runs several; a model without parts is one
machine. Lowering and this module share no code that determines what a rule does: tests compare them on every bundled model.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from streamproof.base.errors import EvaluationError, ModelError, StreamproofError, UsageError
from streamproof.base.records import dataclass
from streamproof.language.declare.composite import Carried, arguments, by_part, stated, within
from streamproof.language.declare.composition import Given, parsed
from streamproof.language.declare.machines import Machine, below, instantiate, resolve_pattern
from streamproof.language.declare.model import Model, marked
from streamproof.language.declare.primitives import (
    COPY,
    MARK,
    PICKS,
    ActionMark,
    Disabled,
    NoPick,
    Picks,
    PropertyMark,
    StateMark,
)
from streamproof.language.declare.variables import Bool
from streamproof.language.lower.conversion import plain, to_value
from streamproof.language.lower.domains import as_member, members
from streamproof.language.lower.model_reader import Scope, choice_conditions, searched
from streamproof.language.lower.sources import PACKAGE, RUNNING, CallSite, as_model_error, parameters
from streamproof.language.lower.terms import Entry, PartFamily, ScopeNames, VariableName
from streamproof.language.native.value_places import Box, FixedValue
from streamproof.language.native.views import checked, look
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Evaluation, Interpreter
from streamproof.system.model import Conjunct, Instance, Kind, System
from streamproof.system.model import State as Values
from streamproof.system.sorts import Sort
from streamproof.transform.constraint import cut_name

READ_ONLY = "a property cannot change the state"


class TooManyRuns(Exception):
    """A rule has more executions than were asked for."""


Reached: TypeAlias = Mapping[Instance, tuple[tuple[Expr, bool], ...]]
"""For each instance, and each of its picks, what `choice_conditions` returns."""


class MachineView:
    """The state visible to the rules of one machine: its variables and parts are attributes."""

    __slots__ = ("_names", "_sorts", "_values")
    _names: ScopeNames
    _sorts: Mapping[str, Sort]
    _values: Box | FixedValue

    def __init__(self, names: ScopeNames, sorts: Mapping[str, Sort], values: Box | FixedValue) -> None:
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_sorts", sorts)
        object.__setattr__(self, "_values", values)

    def _entry(self, name: str) -> Entry:
        # Calls of a part's own helpers receive its outside view, but may use names hidden there.
        for names in (self._names, self._names.inside):
            if names is not None and name in names.entries:
                return names.entries[name]
        return self._names.find(name, CallSite().loc)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        match self._entry(name):
            case VariableName(name=variable):
                return look(self._sorts[variable], self._values.part(variable))
            case ScopeNames() as part:
                return MachineView(part, self._sorts, self._values)
            case PartFamily() as family:
                return family.seen(lambda part: MachineView(part, self._sorts, self._values))

    def __setattr__(self, name: str, given: Any) -> None:
        entry = self._entry(name)
        if not isinstance(entry, VariableName):
            raise ModelError(
                f"{name} is a part, and cannot be assigned", loc=CallSite().loc, remedy="assign to its variables"
            )
        self._values.replace(entry.name, checked(self._sorts[entry.name], given, CallSite()))

    def __repr__(self) -> str:
        if self._names.path or any(self._names.parts()):
            return f"<{self._names.path or 'the state'}>"
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in self._names.entries)


def _copied(view: MachineView) -> MachineView:
    """A copy of what a view shows, that a rule may change."""
    return MachineView(view._names, view._sorts, Box(dict(view._values.get())))


@dataclass(frozen=True, slots=True)
class MachineStep:
    """One step of one machine: an action of its model with its arguments."""

    machine: Machine
    action: str
    args: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """The text form ``lane[0].push()``."""
        return f"{self.machine.called(self.action)}({', '.join(f'{n}={v}' for n, v in self.args)})"


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a rule that does not end at a `require`: its picks, and the state after it or the error."""

    picks: tuple[Any, ...]
    after: Values | None = None
    error: Exception | None = None
    fair: tuple[bool, tuple[int, ...]] = (True, ())
    """Whether the fairness constraint of the rule concerns the step, if it concerns some; and which of several do."""


class Native:
    """A model whose rules and properties, and those of its parts, run as ordinary Python functions.

        credit = Native(Credit(channels=2))
        state = next(credit.initial())
        state = credit.step(state, "send", 0)

    States are tuples, as in `System`; a mapping from variable names to values is also accepted.
    """

    def __init__(
        self, model: Model, properties: Sequence[Callable[..., Any]] = (), carries: Carried = MappingProxyType({})
    ) -> None:
        """`properties` are stated outside the model, `carries` those of its parts, as in a `Spec`."""
        self.model = model
        self._compiled: System | None = None
        self.whole = instantiate(model)
        machines = list(_machines(self.whole))
        self._marked = {m.path: marked(type(m.model)) for m in machines}
        self._named = {m.called(action): (m, action) for m in machines for action in m.actions}
        if not self.has_parts:
            self.whole.declared = searched(model, self.whole.declared)
        self._declared = dict(self.whole.declared)
        self._limits = [f for mark, f in self._marked[""].values() if mark is StateMark.CONSTRAINT]
        self._step_limits = [f for f in self._limits if len(parameters(f)) == 3]
        if self._step_limits:  # the variable that records a broken constraint on steps
            self._declared[cut_name(self._declared)] = Bool()
        self._sorts = {n: d.sort for n, d in self._declared.items()}
        self._within: dict[str, Scope] = {}
        self._reached: dict[Any, Reached] = {}
        self._given: dict[Any, list[Any]] = {}
        self.stated: dict[str, list[tuple[Machine, Any, Callable[..., Any]]]] = {}
        """Rules, properties and predicates by name: ``"lane.bounded"`` has an entry for each lane."""
        self._state(self.whole, "", properties, carries)

    def _state(self, machine: Machine, prefix: str, functions: Sequence[Callable[..., Any]], carries: Carried) -> None:
        """Collects the rules, properties and predicates of a machine and its parts by name."""
        own = [(name, mark, f) for name, (mark, f) in self._marked[machine.path].items()]
        for name, mark, function in (*own, *((f.__name__, getattr(f, MARK, None), f) for f in functions)):
            self.stated.setdefault(prefix + name, []).append((machine, mark, function))
        carries = by_part(machine, carries)
        for name, child in below(machine):
            more, deeper = stated(child, carries.get(name))
            self._state(child, f"{prefix}{name}.", more, deeper)

    @property
    def has_parts(self) -> bool:
        """Whether the model is a composition."""
        return self.whole.parts is not None

    def values(self, state: Values | Mapping[str, Any]) -> Values:
        """A state as a tuple. Raises `UsageError` or `ModelError` for a mapping that is not a state of the model."""
        if not isinstance(state, Mapping):
            return state
        for name in {*state} ^ {*self._sorts}:
            raise UsageError(f"{name!r} is {'missing' if name in self._sorts else 'no variable'}")
        return tuple(to_value(sort, state[n], None) for n, sort in self._sorts.items())

    def initial(self, most: int | None = None) -> Iterator[Values]:
        """The initial states among the first `most` combinations of initial values."""
        for state in islice(product(*(d.first for d in self._declared.values())), most):
            if self.begins(state):
                yield state

    def begins(self, state: Values) -> bool:
        """Whether the predicates of initial states are true."""
        return all(
            self._is_true(machine, function, [state])
            for machine in _machines(self.whole)
            for mark, function in self._marked[machine.path].values()
            if mark is StateMark.INITIALLY
        )

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

        `action` is a name as in traces: ``"send"``, or of a composition ``"flow.send"``, ``"lane[0].pop"``, or the name of a
        joint action, whose picks are those of its participants in their order. Raises `EvaluationError` where the checker
        would report one, `NoPick` for a choice without a pick.
        """
        if action not in self._named:
            raise UsageError(f"no action {action!r}", remedy=f"the actions are {', '.join(self._named)}")
        machine, own = self._named[action]
        names = _parameters(machine, own)
        if len(args) > len(names) or {*named} != {*names[len(args) :]}:
            raise UsageError(f"{action} takes {', '.join(names) or 'no parameters'}", remedy="give each of them once")
        given = {**dict(zip(names, args, strict=False)), **named}
        moves = _moves(machine, own, tuple((n, given[n]) for n in names))
        if len({m.machine.path for m in moves}) < len(moves):
            return None  # no machine takes two steps at once
        before = self.values(state)
        after = self._together(before, moves, picks) if self.inside(before) else None
        return None if after is None else self._cut(before, after)

    def enabled(self, state: Values | Mapping[str, Any]) -> tuple[Instance, ...]:
        """The actions that are possible in a state, each with its arguments and picks, as the functions themselves say.

        Their number and order are those of the model's system; `take` and, by name, `step` take them. Raises
        `EvaluationError` where the checker would report one.
        """
        if self._compiled is None:
            from streamproof.language.declare.spec import compile_model

            self._compiled = compile_model(self.model, without_properties=True)
        system, before = self._compiled, self.values(state)
        return tuple(i for i in system.instances if self.take(before, i, system) is not None)

    def picks(self, state: Values, instance: Instance, system: System) -> list[Any] | None:
        """The picks of an instance that its actions reach in `state`, in the form that `step` requires.

        None if an unreached choice does not have the first pick of its domain: that instance is disabled, because
        another one represents it.
        """
        if not instance.picks:
            return []
        guard = instance.guard if system.constraint is None else system.constraint.own_guard(instance)
        reached = _reached(instance, self._conditions(instance, guard), Evaluation(system.index, state, None))
        return None if reached is None else [*reached]

    def runs(self, state: Values, action: str, args: tuple[tuple[str, Any], ...], most: int) -> Iterator[Run]:
        """Every execution of an action with these arguments, with each answer to its choices, that ends after all its guards.

        Ends after `most` attempts. Lowering has no part in it.
        """
        machine, own = self._named[action]
        moves = _moves(machine, own, args)
        if len({m.machine.path for m in moves}) < len(moves) or not self.inside(state):
            return
        todo: list[tuple[Any, ...]] = [()]
        for _ in range(most):
            if not todo:
                return
            picks = Picks(todo.pop())
            fair: tuple[bool, tuple[int, ...]] = (True, ())
            try:
                with self._variables(moves) as variables:
                    after = self._moved(state, moves, picks)
                if after is None:
                    continue
                fair = self._fairness(state, moves, picks, variables)
            except NoPick as missing:
                todo += [(*picks.given, _hashable(plain(option))) for option in reversed(missing.options)]
            except EvaluationError as error:
                yield Run(picks.given, error=error)
            except StreamproofError:
                raise
            except Exception as error:
                yield Run(picks.given, error=error)
            else:
                yield Run(picks.given, self._cut(state, after), fair=fair)
        if todo:
            raise TooManyRuns

    def take(self, state: Values, instance: Instance, system: System) -> Values | None:
        """The state after a step of a trace, or None if the step is disabled."""
        picks = self.picks(state, instance, system)
        if picks is None or not self.inside(state):
            return None
        moves = _moves(*self._named[instance.action], instance.args)
        after = self._together(state, moves, picks, "" if instance.of else instance.label)
        return None if after is None else self._cut(state, after)

    def holds(
        self,
        prop: str | Callable[..., Any],
        state: Values | Mapping[str, Any],
        after: Values | Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether a property holds in a state, or for the step to `after`; ``"lane.bounded"`` is the conjunction over
        all lanes. Raises `KeyError` for an unknown name."""
        states = [self.values(s) for s in (state, after) if s is not None]
        if callable(prop):
            return self._is_true(self.whole, prop, states)
        found = self.stated[prop]
        answers = []
        for machine, mark, function in found:
            mine = [leaf.name for leaf in machine.inside.leaves()]
            same = after is not None and all(self._at(states[0], n) == self._at(states[-1], n) for n in mine)
            idle = "." in prop and isinstance(mark, PropertyMark) and mark.kind is Kind.STEP and same
            answers.append(idle or self._is_true(machine, function, states))
        some = any(isinstance(mark, PropertyMark) and mark.kind is Kind.REACHABLE for _, mark, _ in found)
        return any(answers) if some else all(answers)

    # --- constraints

    def inside(self, state: Values) -> bool:
        """Whether the constraints of the model are true, and the step to this state has broken none."""
        broken = bool(self._step_limits) and state[-1]
        limits = (f for f in self._limits if f not in self._step_limits)
        return not broken and all(self._is_true(self.whole, f, [state]) for f in limits)

    def _cut(self, before: Values, after: Values) -> Values:
        """`after`, with the record whether the step breaks a constraint on steps."""
        if not self._step_limits or after == before:
            return after
        return (*after[:-1], not all(self._is_true(self.whole, f, [before, after]) for f in self._step_limits))

    # --- execution

    def _at(self, state: Values, name: str) -> Any:
        return state[list(self._sorts).index(name)]

    def view(self, machine: Machine, state: Values | Mapping[str, Any], writable: bool = False) -> MachineView:
        """The state that the functions of a machine see."""
        values = dict(zip(self._sorts, self.values(state), strict=True))
        return MachineView(machine.inside, self._sorts, Box(values) if writable else FixedValue(values, READ_ONLY))

    def _is_true(self, machine: Machine, function: Callable[..., Any], states: Sequence[Values]) -> bool:
        views = [self.view(machine, s) for s in states]
        return bool(_run(machine.model, function, f"property {function.__name__}", views, Picks(())))

    def _moved(self, state: Values, moves: Sequence[MachineStep], picks: Picks, label: str = "") -> Values | None:
        """The values that some moves assign, whatever the constraints are; None if one of them is disabled. `label`: that of
        a single one in messages, if it has picks."""
        after = dict(zip(self._sorts, state, strict=True))
        for move in moves:
            view = self.view(move.machine, state, writable=True)
            _, function = self._marked[move.machine.path][move.action]
            try:
                _run(move.machine.model, function, label or move.label, [view, *self._arguments(move)], picks)
            except Disabled:
                return None
            changed = view._values.get()
            after |= {n: changed[n] for n, old in zip(self._sorts, state, strict=True) if changed[n] != old}
        if picks.used < len(picks.given):
            raise UsageError(f"{len(picks.given)} picks were given, {picks.used} used", remedy="leave the others out")
        return tuple(after.values())

    def _together(
        self, state: Values, moves: Sequence[MachineStep], given: Sequence[Any], label: str = ""
    ) -> Values | None:
        """`_moved`, for which the guards of all participants of a joint step come before every effect."""
        error: EvaluationError | None = None
        try:
            after = self._moved(state, moves, Picks(tuple(given)), label)
        except EvaluationError as mistake:
            after, error = None, mistake
        chosen = self._participants(state, moves, given) if after is None and len(moves) > 1 else None
        if chosen is not None:
            evaluation = Evaluation({n: at for at, n in enumerate(self._sorts)}, state, None)
            for instance, _ in chosen:
                Interpreter.refuse(instance.guard_checks, evaluation, instance)
            if any(self._is_disabled(state, move, picks) for move, (_, picks) in zip(moves, chosen, strict=True)):
                return None
        if error is not None:
            raise error
        return after

    def _is_disabled(self, state: Values, move: MachineStep, picks: tuple[Any, ...]) -> bool:
        """Whether one participant is disabled, and does not fail before."""
        with suppress(EvaluationError):
            return self._moved(state, [move], Picks(picks)) is None
        return False

    def _participants(
        self, state: Values, moves: Sequence[MachineStep], given: Sequence[Any]
    ) -> list[tuple[Instance, tuple[Any, ...]]] | None:
        """The instances of the participants whose reached picks are `given`, each with its own; None if there are none."""
        evaluation = Evaluation({n: at for at, n in enumerate(self._sorts)}, state, None)
        options = [
            [
                (one, picks)
                for one, why in self._ways(m).items()
                if (picks := _reached(one, why, evaluation)) is not None
            ]
            for m in moves
        ]
        fitting = (c for c in product(*options) if [v for _, picks in c for v in picks] == [*given])
        return next(map(list, fitting), None)

    def _arguments(self, move: MachineStep) -> list[Any]:
        """The arguments of a step as its function gets them: members of enumerations, not their values."""
        key = (move.machine.path, move.action, tuple((n, type(v), v) for n, v in move.args))
        if key not in self._given:
            mark, function = self._marked[move.machine.path][move.action]
            model = move.machine.model
            table = members(model, move.action, mark, cast(types.FunctionType, function)) if move.args else {}
            self._given[key] = [as_member(table, n, v) for n, v in move.args]
        return self._given[key]

    # --- partial fairness

    def _condition(self, moves: Sequence[MachineStep], mark: ActionMark) -> Callable[..., Any] | None:
        """The condition of a fairness constraint on a step of one machine, if it has one."""
        if len(moves) > 1 or mark.where is None:
            return None
        found = getattr(type(moves[0].machine.model), mark.where) if isinstance(mark.where, str) else mark.where
        return cast("Callable[..., Any]", found)

    def _mark(self, move: MachineStep) -> ActionMark:
        mark, _ = self._marked[move.machine.path][move.action]
        assert isinstance(mark, ActionMark)
        return mark

    @contextmanager
    def _variables(self, moves: Sequence[MachineStep]) -> Iterator[dict[str, Any]]:
        """The last values of the variables that the conditions of fairness name, of the rule or else of its helpers."""
        values: dict[str, Any] = {}
        mark = self._mark(moves[0])
        conditions = [c for one in (mark, *mark.several) if (c := self._condition(moves, one)) is not None]
        if not conditions:
            yield values
            return
        wanted = {name for condition in conditions for name in parameters(condition)[2:]}
        _, function = self._marked[moves[0].machine.path][moves[0].action]
        own = function.__code__

        def watch(frame: types.FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            names = [n for n in wanted if n in code.co_varnames and (code is own or n not in own.co_varnames)]
            if event == "return" and names and not code.co_filename.startswith(PACKAGE):
                local = frame.f_locals
                values.update((n, local[n]) for n in names if n in local)

        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            yield values
        finally:
            sys.setprofile(before)

    def _fairness(
        self, state: Values, moves: Sequence[MachineStep], picks: Picks, variables: Mapping[str, Any]
    ) -> tuple[bool, tuple[int, ...]]:
        """Whether the fairness constraint of a rule concerns an execution; and which of several do."""
        mark = self._mark(moves[0])
        if len(moves) > 1 or not mark.several:
            return self._is_fair(state, moves, picks, variables, mark), ()
        each = enumerate(mark.several)
        return False, tuple(at for at, one in each if self._is_fair(state, moves, picks, variables, one))

    def _is_fair(
        self,
        state: Values,
        moves: Sequence[MachineStep],
        picks: Picks,
        variables: Mapping[str, Any],
        mark: ActionMark,
    ) -> bool:
        """Whether a fairness constraint of a rule concerns an execution; true for all if it concerns the whole rule."""
        condition = self._condition(moves, mark)
        if len(moves) > 1:
            return True
        if mark.branches:
            return any(label in mark.branches for label in picks.labels)
        if condition is None:
            return True
        known = {**variables, **dict(zip((n for n, _ in moves[0].args), self._arguments(moves[0]), strict=True))}
        machine, view = moves[0].machine, self.view(moves[0].machine, state)
        args = [view, *(known.get(name) for name in parameters(condition)[2:])]
        return bool(_run(machine.model, condition, f"the fairness of {moves[0].label}", args, Picks(())))

    # --- assignment of picks to participants

    def _conditions(self, instance: Instance, guard: Sequence[Conjunct]) -> Sequence[tuple[Expr, bool]]:
        """The condition under which the instance, with this guard, reaches each of its picks: those of its participants, in
        their order."""
        options = [self._ways(move) for move in _moves(*self._named[instance.action], instance.args)]
        wanted = tuple(value for _, value in instance.picks)
        terms = tuple(c.expr for c in guard)
        for chosen in product(*(o.items() for o in options)):
            picks = tuple(value for one, _ in chosen for _, value in one.picks)
            if picks == wanted and tuple(c.expr for one, _ in chosen for c in one.guard) == terms:
                return [condition for _, conditions in chosen for condition in conditions]
        raise UsageError(f"{instance.label} is not a step of the model", remedy="give one of its system")

    def _ways(self, move: MachineStep) -> Reached:
        path = move.machine.path
        key = (path, move.action, move.args)
        if key not in self._reached:
            if path not in self._within:
                self._within[path] = within(move.machine, self.whole)
            self._reached[key] = choice_conditions(move.machine.model, move.action, move.args, self._within[path])
        return self._reached[key]


def _hashable(option: Any) -> Any:
    """An option of a choice as a pick; a set is one that does not change."""
    return frozenset(option) if isinstance(option, set) else option


def _reached(
    instance: Instance, conditions: Sequence[tuple[Expr, bool]], evaluation: Evaluation
) -> tuple[Any, ...] | None:
    """The picks that an instance reaches; None if an unreached choice does not have the first pick of its domain."""
    reached = []
    for (_, value), (condition, first) in zip(instance.picks, conditions, strict=True):
        if evaluation.value(condition):
            reached.append(value)
        elif not first:
            return None
    return tuple(reached)


def _run(model: Model, function: Callable[..., Any], label: str, args: Sequence[Any], picks: Picks) -> Any:
    """The result of a function of `model`."""
    running, token, copying = RUNNING.set(label), PICKS.set(picks), COPY.set(_copied)
    try:
        return function(model, *args)
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


def _machines(machine: Machine) -> Iterator[Machine]:
    yield machine
    for child in machine.children():
        yield from _machines(child)


def _parameters(machine: Machine, action: str) -> tuple[str, ...]:
    """The parameter names of an action, in order."""
    joint = next((j for j in machine.parts.joint if j.name == action), None) if machine.parts else None
    if joint is None:
        _, function = marked(type(machine.model))[action]
        return parameters(function)[2:]
    found: dict[str, None] = {}
    for pattern in (parsed(text, joint.loc) for text in joint.participants):
        found |= dict.fromkeys(pattern.parameters)
        if pattern.args is None:
            owner = resolve_pattern(machine, pattern, joint.loc)[0][0].machine
            found |= dict.fromkeys(_parameters(owner, owner.own_name(pattern.name, machine)))
    return tuple(found)


def _moves(machine: Machine, action: str, args: tuple[tuple[str, Any], ...]) -> list[MachineStep]:
    """The steps of single machines in an action, with joint actions resolved."""
    joint = next((j for j in machine.parts.joint if j.name == action), None) if machine.parts else None
    if joint is None:
        return [MachineStep(machine, action, args)]
    given, moves = dict(args), []
    for pattern in (parsed(text, joint.loc) for text in joint.participants):
        for choices in resolve_pattern(machine, pattern, joint.loc):
            owner = next(p.machine for p in choices if all(given[n] == k for n, k in p.binding.items()))
            own = owner.own_name(pattern.name, machine)
            wanted = arguments(_parameters(owner, own), pattern, joint.loc)
            taken = tuple((n, w.value if isinstance(w, Given) else given[w.name]) for n, w in wanted.items())
            moves += _moves(owner, own, taken)
    return moves
