"""Parallel composition of systems: variables side by side, steps interleaved, joint actions synchronised.

Interleaving and shared variables are those of TLA+ (Leslie Lamport, "Composition: a way to make proofs harder", 1997);
joint actions are those of CSP and of PRISM's labels: all participants are enabled, and step simultaneously. Variables
of the same name are identified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Fairness, Instance, Kind, System, Variable, mapped_conjuncts
from streamproof.transform.assume import Substitution

JOINT_LIMIT = 200_000
"""Maximum number of instances of one joint action."""

Binding: TypeAlias = tuple[tuple[str, Any], ...]
"""Values of the parameters of a joint action."""

_STRENGTH = (Fairness.NONE, Fairness.WEAK, Fairness.STRONG)


@dataclass(frozen=True, slots=True)
class JointStep:
    """An instance that can participate in a joint action, its values of the joint parameters, and its machines."""

    binding: Binding
    instance: Instance
    machines: frozenset[str] = frozenset()
    """Names of machines; none takes two steps at once."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint action: a simultaneous step of each of its participants.

    Its instances are the combinations of one step per participant that agree in common parameters and in which no
    machine takes two steps. `fairness` None: the strongest of the participants' actions.
    """

    name: str
    participants: tuple[tuple[JointStep, ...], ...]
    fairness: Fairness | None = None
    loc: Loc | None = None
    doc: str = ""


def side_by_side(name: str, systems: Iterable[System]) -> System:
    """The interleaved composition: the initial conditions are conjoined, every step of a component is a step of the
    whole, and a state is terminal if it is terminal in every component.

    Properties and lemmas are kept, except deadlock and termination, which refer to a whole system. Raises `ModelError`
    if variables of the same name have different sorts or initial values, or if two actions have the same name.
    """
    every = tuple(systems)
    variables: dict[str, Variable] = {}
    for variable in (v for s in every for v in s.variables):
        same = variables.setdefault(variable.name, variable)
        if (same.sort, same.initial) != (variable.sort, variable.initial):
            raise ModelError(
                f"{variable.name} is {same.sort} and {variable.sort}"
                if same.sort != variable.sort
                else f"{variable.name} has different first values",
                loc=variable.loc,
                remedy=f"a shared variable is declared alike everywhere; the other place is {same.loc}",
            )
    actions = tuple(a for s in every for a in s.actions)
    for action, count in Counter(a.name for a in actions).items():
        if count > 1:
            raise ModelError(f"{action} is the name of {count} actions", remedy="rename one of them")
    ends = [b.FALSE if s.terminal is None else s.terminal for s in every]
    whole = (Kind.DEADLOCK, Kind.TERMINATION)
    return System(
        name,
        tuple(variables.values()),
        actions,
        tuple(p for s in every for p in s.properties if p.kind not in whole),
        initially=b.and_(s.initially for s in every),
        terminal=None if any(end is b.FALSE for end in ends) else b.and_(ends),
        lemmas=tuple(p for s in every for p in s.lemmas),
    )


def joined(system: System, joints: Sequence[Joint], blocked: Collection[Instance] = ()) -> System:
    """The system with joint actions; their participants, and `blocked` actions, no longer occur by themselves.

    Raises `ModelError` if two participants change one variable to different values.
    """
    alone = {i.key for i in blocked}
    fairness = {a.name: a.fairness for a in system.actions}
    several = {a.name for a in system.actions if a.several}
    made: list[Action] = []
    for joint in joints:
        for name in {step.instance.action for steps in joint.participants for step in steps} & several:
            if joint.fairness is None:
                raise ModelError(
                    f"{name} has several fairness constraints, and takes part in the joint action {joint.name}",
                    loc=joint.loc,
                    remedy="give the joint action one of its own: together(..., fairness=WEAK)",
                )
        instances = tuple(_instances(joint, {a.name: a.loc for a in system.actions}))
        alone |= {step.instance.key for steps in joint.participants for step in steps}
        constraints = {fairness[step.instance.action] for steps in joint.participants for step in steps}
        strongest = max(constraints, key=_STRENGTH.index, default=Fairness.NONE)
        names = tuple(name for name, _ in instances[0].args) if instances else ()
        given = strongest if joint.fairness is None else joint.fairness
        branches = dict.fromkeys(
            label for i in joint.participants for s in i for label in system.action(s.instance.action).branches
        )
        made.append(Action(joint.name, names, given, instances, joint.loc, joint.doc, branches=tuple(branches)))
    actions: list[Action] = []
    for action in system.actions:
        left = tuple(i for i in action.instances if i.key not in alone)
        if left or not action.instances:  # one that is never enabled is reported, as in any system
            actions.append(replace(action, instances=left))
    return replace(system, actions=(*actions, *made))


@dataclass(frozen=True, slots=True)
class _Row:
    """A combination of some participants' steps."""

    binding: Binding
    steps: tuple[Instance, ...]
    machines: frozenset[str]


def _instances(joint: Joint, places: Mapping[str, Loc | None]) -> Iterator[Instance]:
    rows = [_Row((), (), frozenset())]
    for participant in joint.participants:
        rows = [found for row in rows for given in participant if (found := _agreed(joint, row, given))]
        if len(rows) > JOINT_LIMIT:
            raise ModelError(
                f"action {joint.name} has more than {JOINT_LIMIT:,} instances", loc=joint.loc, remedy="smaller domains"
            )
    for row in rows:
        made = _together(joint, row, places)
        if made is not None:
            yield made


def _agreed(joint: Joint, row: _Row, step: JointStep) -> _Row | None:
    """`row` extended by one step; None if the steps disagree in a parameter, or a machine would take two."""
    if row.machines & step.machines:
        return None
    known = dict(row.binding)
    same: dict[Expr, Expr] = {}
    for name, value in step.binding:
        have = known.setdefault(name, value)
        if isinstance(value, e.Var) and isinstance(have, e.Var) and value.sort == have.sort:
            same[value] = have
        elif isinstance(value, e.Node) or isinstance(have, e.Node):
            raise ModelError(
                f"{name} of {joint.name} runs through {_term_text(have)} in one part and {_term_text(value)} in another",
                loc=joint.loc,
                remedy="let both run through the same range, or give the parameter of the model a value",
            )
        elif (type(have), have) != (type(value), value):
            return None
    other = any(old is not new for old, new in same.items())
    taken = changed(step.instance, Substitution(same)) if other else step.instance
    return _Row(tuple(known.items()), (*row.steps, taken), row.machines | step.machines)


def _term_text(value: Any) -> str:
    return str(value.sort) if isinstance(value, e.Var) else str(value)


def _together(joint: Joint, row: _Row, places: Mapping[str, Loc | None]) -> Instance | None:
    guard = tuple(c for step in row.steps for c in step.guard)
    early = tuple(c for step in row.steps for c in step.guard_checks)
    if b.and_(c.expr for c in guard) is b.FALSE and not early:
        return None
    updates: dict[str, Expr] = {}
    by: dict[str, Instance] = {}
    for step in row.steps:
        for name, term in step.updates:
            if updates.setdefault(name, term) is not term:
                raise ModelError(
                    f"{by[name].label} and {step.label} both change {name}, and happen at once in {joint.name}",
                    loc=joint.loc,
                    remedy=f"places: {places[by[name].action] or by[name].label} and {places[step.action] or step.label}; "
                    "write an action of the composite that calls the rules of its parts one after the other",
                )
            by.setdefault(name, step)
    counts = Counter(name for step in row.steps for name, _ in step.picks)
    named = [(step, n if counts[n] == 1 else f"{step.action}.{n}", n, v) for step in row.steps for n, v in step.picks]
    picks = tuple((name, value) for _, name, _, value in named)
    return Instance(
        joint.name,
        row.binding,
        picks,
        guard,
        tuple(updates.items()),
        early,
        tuple(c for step in row.steps for c in step.effect_checks),
        tuple(label for step in row.steps for label in (step.of or (step.label,))),
        joint.fairness is not None or all(step.fair for step in row.steps),
        tuple(name for step, name, own, _ in named if own in step.labelled),
    )


def changed(instance: Instance, change: Callable[[Expr], Expr]) -> Instance:
    """The instance with `change` applied to its terms."""
    return replace(
        instance,
        args=tuple((n, change(v) if isinstance(v, e.Var) else v) for n, v in instance.args),
        guard=mapped_conjuncts(instance.guard, change),
        updates=tuple((n, change(t)) for n, t in instance.updates),
        guard_checks=tuple(c.mapped(change) for c in instance.guard_checks),
        effect_checks=tuple(c.mapped(change) for c in instance.effect_checks),
    )
