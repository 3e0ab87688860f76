"""Native execution of a composite on concrete states: each part sees its own machine, a joint step runs several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from streamproof.language.composite import arguments, within
from streamproof.language.composition import Given, parsed
from streamproof.language.machines import Machine, below, instantiate, resolve_pattern
from streamproof.language.model import Model, marked
from streamproof.language.native_machine import READ_ONLY, NativeMachine, Reached
from streamproof.language.primitives import Disabled, InitiallyMark, Picks, PropertyMark
from streamproof.language.reader import Scope, choice_conditions
from streamproof.language.sources import CallSite, parameters
from streamproof.language.terms import Entry, PartFamily, ScopeNames, VariableName
from streamproof.language.value_places import Box, FixedValue
from streamproof.language.views import checked, look
from streamproof.system.errors import ModelError, UsageError
from streamproof.system.expr import Expr
from streamproof.system.model import Conjunct, Instance, Kind
from streamproof.system.model import State as Values
from streamproof.system.records import dataclass
from streamproof.system.sorts import Sort


class MachineView:
    """The state visible to the rules of one machine: its variables and parts are attributes."""

    __slots__ = ("_names", "_sorts", "_values")
    _values: Box | FixedValue

    def __init__(self, names: ScopeNames, sorts: Mapping[str, Sort], values: Box | FixedValue) -> None:
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_sorts", sorts)
        object.__setattr__(self, "_values", values)

    def _entry(self, name: str) -> Entry:
        names: ScopeNames = self._names
        # Calls of a part's own helpers receive its outside view, but may use names hidden there.
        if names.inside is not None and name not in names.entries and name in names.inside.entries:
            return names.inside.entries[name]
        return names.find(name, CallSite().loc)

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
        return f"<{self._names.path or 'the state'}>"


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


class NativeComposite(NativeMachine):
    """A composite whose rules and properties, and those of its parts, run as ordinary Python functions."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.whole = instantiate(model)
        self._declared = dict(self.whole.declared)
        self._with_cut()
        self._within: dict[str, Scope] = {}
        self._reached = {}
        self._named = {m.called(action): (m, action) for m in _machines(self.whole) for action in m.actions}

    def initial(self, most: int | None = None) -> Iterator[Values]:
        """The initial states among the first `most` combinations of initial values."""
        predicates = [
            (m, f)
            for m in _machines(self.whole)
            for mark, f in marked(type(m.model)).values()
            if isinstance(mark, InitiallyMark)
        ]
        for state in islice(product(*(d.first for d in self._declared.values())), most):
            if all(self._seen(m, f, [state]) for m, f in predicates):
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
        """The state after an action, or None if the action is disabled; raises as `NativeMachine.step`.

        `action` is a name as in traces: ``"flow.send"``, ``"lane[0].pop"``, or the name of a joint action. `picks` are
        those of its participants, in their order.
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
        after = self._moved(before, moves, Picks(tuple(picks))) if self._inside(before) else None
        return None if after is None else self._cut(before, after)

    def _taken(self, state: Values, instance: Instance, picks: Sequence[Any]) -> Values | None:
        machine, own = self._named[instance.action]
        return self._moved(state, _moves(machine, own, instance.args), Picks(tuple(picks)))

    def _limit(self, function: Callable[..., Any], states: Sequence[Values]) -> bool:
        return self._seen(self.whole, function, states)

    def holds(self, prop: str | Callable[..., Any], state: Values, after: Values | None = None) -> bool:
        """Whether a property holds in a state, or for the step to `after`; ``"lane.bounded"`` is the conjunction over
        all lanes."""
        states = [state] if after is None else [state, after]
        if callable(prop):
            return self._seen(self.whole, prop, states)
        *path, name = prop.split(".")
        machines = [self.whole]
        for part in path:
            machines = [child for m in machines for n, child in below(m) if n == part]
        found = [(m, *marked(type(m.model))[name]) for m in machines if name in marked(type(m.model))]
        answers = []
        for machine, mark, function in found:
            mine = [leaf.name for leaf in machine.inside.leaves()]
            same = after is not None and all(self._at(state, n) == self._at(after, n) for n in mine)
            idle = bool(path) and isinstance(mark, PropertyMark) and mark.kind is Kind.STEP and same
            answers.append(idle or self._seen(machine, function, states))
        some = any(isinstance(mark, PropertyMark) and mark.kind is Kind.REACHABLE for _, mark, _ in found)
        return any(answers) if some else all(answers)

    # --- execution

    def _at(self, state: Values, name: str) -> Any:
        return state[list(self._sorts).index(name)]

    def _view(self, machine: Machine, state: Values | Mapping[str, Any], writable: bool) -> MachineView:
        values = dict(zip(self._sorts, self.values(state), strict=True))
        box = Box(values) if writable else FixedValue(values, READ_ONLY)
        return MachineView(machine.inside, self._sorts, box)

    def _seen(self, machine: Machine, function: Callable[..., Any], states: Sequence[Values]) -> bool:
        views = [self._view(machine, s, False) for s in states]
        return bool(self._run(function, f"property {function.__name__}", views, {}, (), machine.model))

    def _moved(self, state: Values, moves: Sequence[MachineStep], picks: Picks) -> Values | None:
        after = dict(zip(self._sorts, state, strict=True))
        for move in moves:
            view = self._view(move.machine, state, True)
            _, function = marked(type(move.machine.model))[move.action]
            try:
                self._run(function, move.label, [view], dict(move.args), picks, move.machine.model)
            except Disabled:
                return None
            before = zip(self._sorts, state, strict=True)
            after |= {name: view._values.get()[name] for name, old in before if view._values.get()[name] != old}
        if picks.used < len(picks.given):
            raise UsageError(f"{len(picks.given)} picks were given, {picks.used} used", remedy="leave the others out")
        return tuple(after.values())

    # --- assignment of picks to participants

    def _conditions(self, instance: Instance, guard: Sequence[Conjunct]) -> Sequence[tuple[Expr, bool]]:
        """The picks of an instance are those of its participants, in their order."""
        machine, own = self._named[instance.action]
        options = [self._ways(move) for move in _moves(machine, own, instance.args)]
        wanted = tuple(value for _, value in instance.picks)
        terms = tuple(c.expr for c in guard)
        for chosen in product(*(o.items() for o in options)):
            picks = tuple(value for one, _ in chosen for _, value in one.picks)
            if picks == wanted and tuple(c.expr for one, _ in chosen for c in one.guard) == terms:
                return [condition for _, conditions in chosen for condition in conditions]
        raise UsageError(f"{instance.label} is not a step of the model", remedy="give one of its system")

    def _ways(self, move: MachineStep) -> Reached:
        key = (move.machine.path, move.action, move.args)
        if key not in self._reached:
            if move.machine.path not in self._within:
                self._within[move.machine.path] = within(move.machine, self.whole)
            self._reached[key] = choice_conditions(
                move.machine.model, move.action, move.args, self._within[move.machine.path]
            )
        return self._reached[key]


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
