"""Compilation of a composite: its parts are read in their places and composed in parallel, then joint actions are formed.

The properties of the parts are inherited: they become properties of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from streamproof.base.errors import Loc, ModelError, suggest
from streamproof.base.records import replace
from streamproof.language.declare.composition import Given, Named, Pattern, Together, parsed
from streamproof.language.declare.machines import Machine, SeenMachine, below, instantiate, places_of, resolve_pattern
from streamproof.language.declare.model import Model
from streamproof.language.lower.model_reader import Compile, Reader, Scope, built_in
from streamproof.system import build as b
from streamproof.system.formula import AndF, Formula
from streamproof.system.model import Action, Check, Conjunct, Derived, Fairness, Instance, Kind, Property, System
from streamproof.transform.composition import Joint, JointStep, joined, side_by_side


class Stated(Protocol):
    """The properties and lemmas that a `Spec` states for a machine."""

    model: type[Model]
    properties: Sequence[Callable[..., Any]]
    carries: Mapping[str, Any]


Carried = Mapping[str, Any]
"""Properties stated outside the models of the parts: a `Spec`, or functions, by part."""


def inherited(model: Model, carries: Carried) -> Iterator[tuple[str, Model, tuple[Callable[..., Any], ...], Carried]]:
    """The parts of a composite, each with its name, its external properties, and those for its own parts."""
    machine = instantiate(model)
    wanted = by_part(machine, carries)
    for name, child in below(machine):
        functions, deeper = stated(child, wanted.get(name))
        yield name, child.model, functions, deeper


def by_part(machine: Machine, carries: Carried) -> dict[str, Any]:
    """External properties by part; entries with a longer path are kept for that part."""
    found: dict[str, Any] = {}
    for path, what in carries.items():
        name, _, deeper = path.partition(".")
        if name not in machine.below:
            owner = machine.path or type(machine.model).title()
            known = list(machine.below)
            raise ModelError(
                f"carries={{{path!r}: ...}} of a Spec: {owner} has no part {name!r}",
                loc=machine.parts.loc if machine.parts else machine.loc,
                remedy=suggest(name, known, f"its parts: {', '.join(known) or 'none'}"),
            )
        before = found.get(name, ((), {}))
        found[name] = (before[0], {**before[1], deeper: what}) if deeper else ((*before[0], what), before[1])
    return found


def stated(child: Machine, carried: Any) -> tuple[tuple[Callable[..., Any], ...], Carried]:
    """The external properties of a part, and the entries for its own parts."""
    if carried is None:
        return (), {}
    functions: list[Callable[..., Any]] = []
    deeper = dict(carried[1])
    for what in carried[0]:
        if callable(what):
            functions.append(what)
            continue
        if isinstance(what, Iterable):
            functions += what
            continue
        spec: Stated = what
        if not isinstance(child.model, spec.model):
            raise ModelError(
                f"{child.path} is a {type(child.model).__name__}, and the Spec that is carried for it is "
                f"about {spec.model.__name__}",
                loc=child.loc,
                remedy=f"give the Spec of {type(child.model).__name__}",
            )
        functions += spec.properties
        deeper = {**spec.carries, **deeper}
    return tuple(functions), deeper


def carried_over(
    below: Sequence[tuple[str, Machine, System]], of: Callable[[System], Iterable[Property]]
) -> Iterator[tuple[str, Property]]:
    """The properties of the parts as properties of the whole; those of several parts of one name are joined."""
    families: dict[str, list[tuple[str, Property]]] = {}
    for name, child, system in below:
        note = child.path[child.path.rindex(name) :] if child.path.endswith("]") else ""
        for prop in of(system):
            families.setdefault(f"{name}.{prop.name}", []).append((note, _stuttering(prop, system)))
    for name, members in families.items():
        yield name, _merged(name, members)


def _stuttering(prop: Property, system: System) -> Property:
    """A step property of a part: it ranges over the steps that change a variable of the part."""
    if prop.kind is not Kind.STEP:
        return prop
    same = b.and_(b.eq(b.next_(v.name, v.sort), b.var(v.name, v.sort)) for v in system.variables)
    return replace(
        prop,
        expr=b.or_((same, prop.expr)),
        conjuncts=tuple(replace(c, expr=b.or_((same, c.expr))) for c in prop.conjuncts),
        checks=tuple(replace(c, condition=b.and_((b.not_(same), c.condition))) for c in prop.checks),
    )


def _merged(name: str, members: Sequence[tuple[str, Property]]) -> Property:
    first = members[0][1]
    if len(members) == 1 and not members[0][0]:
        return replace(first, name=name)
    noted = [
        replace(p, conjuncts=tuple(replace(c, text=f"{c.text}  [{note}]") for c in p.conjuncts)) for note, p in members
    ]
    conjuncts = tuple(c for p in noted for c in p.conjuncts)
    formulas: list[Formula] = [p.formula for p in noted if p.formula is not None]
    expr = b.and_(p.expr for p in noted)
    if first.kind is Kind.REACHABLE:
        expr = b.or_(p.expr for p in noted)
        conjuncts = (Conjunct(expr, name, first.loc),)
    return replace(
        first,
        name=name,
        expr=expr,
        conjuncts=conjuncts,
        checks=tuple(c for p in noted for c in p.checks),
        formula=AndF(tuple(formulas)) if formulas else None,
        views=tuple(
            (f"{note}: {text}", term) for (note, _), p in zip(members, noted, strict=True) for text, term in p.views
        ),
    )


class CompositeReader:
    """Reader of a composite and all its parts."""

    def __init__(
        self,
        model: Model,
        without_properties: bool,
        free: frozenset[str] | None,
        carries: Carried,
        abstract: Compile | None = None,
    ) -> None:
        self.model, self.without_properties = model, without_properties
        self.free, self.carries, self.abstract = free, carries, abstract
        self.safety_only = free is not None
        self.whole = instantiate(model)
        self.declarations = self.whole.declared
        self.end_checks: list[Check] = []
        self.constraints: list[Conjunct] = []
        self.step_constraints: list[Conjunct] = []
        self.derived: tuple[Derived, ...] = ()

    def run(self, extra: tuple[Callable[..., Any], ...], termination: bool) -> System:
        """The system of the composite; `extra` are properties stated outside the model. Raises `ModelError`."""
        system = self.read(self.whole, extra, self.carries)
        deadlock = self.model.check_deadlock and not self.without_properties
        return replace(
            system,
            name=type(self.model).title(),
            properties=(*system.properties, *built_in(deadlock, self.end_checks, termination)),
            parameters={} if self.free else self.model.settings(),
            variant=type(self.model).variant,
            derived=self.derived,
        )

    def read(self, machine: Machine, extra: tuple[Callable[..., Any], ...], carries: Carried) -> System:
        """The system of one machine in its place, including its parts."""
        carries = by_part(machine, carries)
        parts = [self._part(child, name, carries.get(name)) for name, child in below(machine)]
        reader = self._reader(machine)
        own = reader.run(extra, False)
        if machine is not self.whole and own.progress is not Fairness.NONE:
            raise ModelError(
                f"{machine.path} is a part of a composition, and has progress = {own.progress.name}",
                loc=machine.loc,
                remedy="state it in the outermost model, about the steps of all parts; for a part, its actions have fairness",
            )
        self.end_checks += reader.end_checks
        self.constraints += reader.constraints
        self.step_constraints += reader.step_constraints
        self.derived = own.derived  # the outermost model is read last
        own = replace(own, properties=tuple(p for p in own.properties if p.kind is not Kind.DEADLOCK))
        return own if machine.parts is None else self._composed(machine, own, parts)

    def _reader(self, machine: Machine) -> Reader:
        reader = Reader(machine.model, self.without_properties, self.free, within(machine, self.whole), self.abstract)
        reader.safety_only = self.safety_only
        return reader

    def _part(self, child: Machine, name: str, carried: Any) -> tuple[str, Machine, System]:
        functions, deeper = stated(child, carried)
        return name, child, self.read(child, functions, deeper)

    def _composed(self, machine: Machine, own: System, below: Sequence[tuple[str, Machine, System]]) -> System:
        parts = machine.parts
        assert parts is not None
        ended = [
            replace(s, properties=(), lemmas=(), terminal=s.terminal if child.model.check_deadlock else b.TRUE)
            for _, child, s in below
        ]
        base = replace(own, terminal=b.TRUE, properties=(), lemmas=())
        whole = side_by_side(own.name, [base, *ended])
        blocked, never = self._blocked(machine, whole)
        system = joined(whole, [self._joint(machine, whole, j) for j in parts.joint], blocked)
        order = {name: at for at, name in enumerate(self.whole.declared)}
        ends = [end for end in (own.terminal, whole.terminal) if end is not None]
        carried = dict(carried_over(below, lambda s: s.properties))
        lemmas = dict(carried_over(below, lambda s: s.lemmas))
        return replace(
            system,
            variables=tuple(sorted(system.variables, key=lambda v: order[v.name])),
            actions=tuple(
                replace(a, internal=a.internal or a.name in machine.internal)
                for a in system.actions
                if a.name not in never
            ),
            terminal=b.or_(ends) if ends else None,
            properties=(*carried.values(), *own.properties),
            lemmas=(*lemmas.values(), *own.lemmas),
            progress=own.progress,
        )

    def outermost(self) -> Reader:
        """Reads the composite's own declarations about its parts."""
        return self._reader(self.whole)

    # --- joint actions

    def _blocked(self, machine: Machine, whole: System) -> tuple[list[Instance], set[str]]:
        """The instances that occur only in joint actions, and the joint actions that are blocked."""
        assert machine.parts is not None
        joint = {j.name for j in machine.parts.joint}
        blocked: list[Instance] = []
        never: set[str] = set()
        for places in machine.parts.blocked:
            for text in places.places:
                for owner, name in places_of(machine, parsed(text, places.loc), places.loc):
                    if name in owner.inside.entries:
                        raise ModelError(f"{text} is a variable", loc=places.loc, remedy="only actions are blocked")
                    if owner is machine and name in joint:
                        never.add(machine.called(name))
                    else:
                        blocked += _action(machine, whole, owner, name, places.loc)[1]
        return blocked, never

    def _joint(self, machine: Machine, whole: System, joint: Together) -> Joint:
        participants: list[tuple[JointStep, ...]] = []
        owners = _owners(machine)
        fixed: list[JointStep] = []
        """The initial steps of the participants that do not depend on the joint parameters."""
        indices: list[tuple[str, list[Any]]] = []
        for pattern in (parsed(text, joint.loc) for text in joint.participants):
            for choices in resolve_pattern(machine, pattern, joint.loc):
                participants.append(
                    tuple(
                        JointStep(tuple(found.items()), instance, _machines(owners, instance))
                        for seen in choices
                        for found, instance in _rows(machine, whole, seen, pattern, joint.loc)
                    )
                )
                if len(choices) == 1 and not choices[0].binding:
                    fixed += participants[-1][:1]
                names = dict.fromkeys(name for seen in choices for name in seen.binding)
                indices += [(name, list(dict.fromkeys(seen.binding[name] for seen in choices))) for name in names]
        if len(participants) < 2:
            raise ModelError(
                f"only one machine participates in {joint.name}",
                loc=joint.loc,
                remedy="name two or more, or rename the action",
            )
        for one in (step for steps in participants for step in steps):
            for name, keys in indices:
                if dict(one.binding).get(name, keys[0]) not in keys:
                    raise ModelError(
                        f"{one.instance.label} participates in {joint.name}, but no part matches "
                        f"{name}={dict(one.binding)[name]!r}",
                        loc=joint.loc,
                        remedy=f"{name} goes through {', '.join(map(repr, keys))} there",
                    )
        for at, step in enumerate(fixed):
            if any(step.machines & other.machines for other in fixed[:at]):
                raise ModelError(
                    f"{' and '.join(sorted(step.machines))} would take two steps at once in {joint.name}",
                    loc=joint.loc,
                    remedy="a machine takes one step at a time; write a rule that does both",
                )
        texts = " and ".join(joint.participants)
        return Joint(
            machine.called(joint.name),
            tuple(participants),
            joint.fairness,
            joint.loc,
            joint.doc or f"{texts} together.",
        )


def within(machine: Machine, whole: Machine) -> Scope:
    """The scope of a machine in the composition `whole`, for reading its rules."""
    parts = machine.parts
    taken = [(n, "a state variable", machine.loc) for n in machine.own]
    if parts is not None:
        taken += [(n, "a part", parts.loc) for n in parts.machines]
        taken += [(s.name, "a shared variable", s.loc) for s in parts.shared if s.name not in machine.own]
        taken += [(j.name, "a joint action", j.loc) for j in parts.joint]
    visible = {leaf.name for leaf in machine.inside.leaves()}
    declared = {n: d for n, d in whole.declared.items() if n in visible}
    return Scope(declared, machine.loc, machine.inside, machine.called, tuple(taken), parts is not None)


def _action(
    machine: Machine, whole: System, owner: Machine, name: str, loc: Loc | None
) -> tuple[Action | None, tuple[Instance, ...]]:
    """The remaining instances of a part's action. Raises `ModelError` if it is unknown or hidden."""
    if name not in owner.actions:
        known = list(owner.actions_at(machine))
        raise ModelError(
            f"{owner.path or type(machine.model).__name__} has no action {name!r}",
            loc=loc,
            remedy=suggest(name, known, f"its actions: {', '.join(known) or 'none'}"),
        )
    called = owner.called(name)
    hidden = machine.internal.get(called)
    if hidden is not None and hidden[0] != machine.path:
        raise ModelError(f"{called} is hidden", loc=loc, remedy=f"{hidden[1]} hides it")
    found = next((a for a in whole.actions if a.name == called), None)
    return found, found.instances if found else ()


def _owners(machine: Machine) -> dict[str, str]:
    """The machine that owns each action, by the action's name in the system."""
    own = {machine.called(action): machine.path for action in machine.actions}
    return {**own, **{a: path for child in machine.children() for a, path in _owners(child).items()}}


def _machines(owners: Mapping[str, str], instance: Instance) -> frozenset[str]:
    """The machines that participate in a step."""
    return frozenset(owners[label.partition("(")[0]] for label in instance.of or (instance.label,))


def _rows(
    machine: Machine, whole: System, at: SeenMachine, pattern: Pattern, loc: Loc | None
) -> Iterator[tuple[dict[str, Any], Instance]]:
    """The instances in one machine that match a pattern, with their values of the joint parameters."""
    action, instances = _action(machine, whole, at.machine, at.machine.own_name(pattern.name, machine), loc)
    if action is None:
        return
    wanted = arguments(action.parameters, pattern, loc)
    for instance in instances:
        found, fits = dict(at.binding), True
        for name, value in instance.args:
            match wanted[name]:
                case Given(value=given):
                    fits = fits and type(given) is type(value) and given == value
                case Named(name=parameter):
                    have = found.setdefault(parameter, value)
                    fits = fits and (have is value or (type(have) is type(value) and bool(have == value)))
        if fits:
            yield found, instance


def arguments(parameters: tuple[str, ...], pattern: Pattern, loc: Loc | None) -> dict[str, Given | Named]:
    """The pattern's index for each parameter of an action. Raises `ModelError` for a missing parameter."""
    if pattern.args is None:
        return {name: Named(name) for name in parameters}
    found: dict[str, Given | Named] = {}
    for at, (name, value) in enumerate(pattern.args):
        if name is None and at < len(parameters):
            name = parameters[at]
        if name not in parameters or name in found:
            break
        found[name] = value
    if len(found) < len(pattern.args) or len(found) < len(parameters):
        shown = f"{pattern.text.partition('(')[0]}({', '.join(parameters)})"
        raise ModelError(
            f"{pattern.text} does not give the parameters of the action, {', '.join(parameters) or 'none'}",
            loc=loc,
            remedy=f"write {shown!r}: a name becomes a parameter of the joint action",
        )
    return found
