"""The waist: a transition system as one immutable value. The language produces it, every engine and exporter consumes it.

A `System` is ground: there is one `Instance` per combination of an action's parameters and picks of its
nondeterministic choices, in a fixed order. An instance is enabled in a state if all its guard conjuncts are true;
taking it assigns the variables named in `updates` simultaneously. A `Check` that is true is an error of the model (exit
code 75): checks marked ``guard`` are evaluated in every state, the others only where the instance is enabled.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cached_property, partial
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, UsageError, did_you_mean
from streamproof.base.records import dataclass, replace
from streamproof.base.text import html_table, parameters_text
from streamproof.system.build import TRUE, or_, var
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula, rewritten
from streamproof.system.sorts import ArraySort, EnumSort, KeySort, Sort, Value, show

State: TypeAlias = tuple[Value, ...]
"""One value per variable, in the order of `System.variables`."""


class Fairness(Enum):
    """The fairness constraint on an action for each combination of its parameters: none, weak or strong.

    The picks are not subject to fairness. See `temporal` for the meaning.
    """

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"

    def where(self, condition: Any) -> PartialFairness:
        """Fairness of the steps of an action for which `condition` is true: WF(A and condition) in TLA+.

        `condition` is a function ``(self, s, ...)`` of the state before the step, or the name of a method; further parameters
        are those of the action, and its variables that receive a choice (None where it is not reached).
        """
        return PartialFairness(self, condition)

    def branch(self, *names: str) -> PartialFairness:
        """Fairness of the steps of an action that take a branch, labelled `name` by ``choose(name=...)``.

        Several branches are one constraint, on the steps that take any of them.
        """
        return PartialFairness(self, branches=names)


@dataclass(frozen=True, slots=True)
class PartialFairness:
    """A fairness constraint on some steps of an action; see `Fairness.where` and `Fairness.branch`."""

    fairness: Fairness
    condition: Any = None
    branches: tuple[str, ...] | None = None


REACHED = "the choice is reached"
NOT_REACHED = "the choice is not reached"
"""The guard conjuncts by which an action with labelled branches is split where it may not reach the choice."""


class Kind(Enum):
    """The kind of a property."""

    INVARIANT = "invariant"
    """True in every reachable state."""
    STEP = "step"
    """True of every reachable step; `expr` also reads the next state."""
    REACHABLE = "reachable"
    """True in at least one reachable state; holds with a witness."""
    DEADLOCK = "deadlock"
    """Every reachable state has an enabled instance or is terminal (`System.terminal`)."""
    TERMINATION = "termination"
    """No infinite behaviour: the graph of reachable states has no cycle, self-loops included."""
    TEMPORAL = "temporal"
    """`formula` is true of every fair behaviour; `expr` is not used."""


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition with its source text and position."""

    expr: Expr
    text: str
    loc: Loc | None

    @property
    def denied(self) -> str:
        """The text for a false conjunct: a negation is shown without its ``not``."""
        written, gap, note = self.text.partition("  [")
        try:
            tree = ast.parse(written, mode="eval").body
        except (SyntaxError, ValueError):
            return f"not ({written}){gap}{note}"
        match tree:
            case ast.UnaryOp(op=ast.Not()):
                said = written.removeprefix("not").strip()
            case ast.BoolOp() | ast.IfExp() | ast.Lambda() | ast.NamedExpr():
                said = f"not ({written})"
            case _:
                said = f"not {written}"
        return said + gap + note


@dataclass(frozen=True, slots=True)
class Check:
    """An error of the model where `condition` is true; `operands` are shown with their values in the message."""

    condition: Expr
    message: str
    loc: Loc | None
    operands: tuple[tuple[str, Expr], ...] = ()

    def mapped(self, change: Callable[[Expr], Expr]) -> Check:
        """The check with `change` applied to its terms."""
        operands = tuple((text, change(term)) for text, term in self.operands)
        return Check(change(self.condition), self.message, self.loc, operands)


def mapped_conjuncts(conjuncts: Iterable[Conjunct], change: Callable[[Expr], Expr]) -> tuple[Conjunct, ...]:
    """The conjuncts with `change` applied to their terms."""
    return tuple(replace(c, expr=change(c.expr)) for c in conjuncts)


def fires(checks: Iterable[Check]) -> Expr:
    """One of the checks reports an error."""
    return or_(check.condition for check in checks)


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable. `initial` lists its initial values (their product, filtered by `System.initially`)."""

    name: str
    sort: Sort
    initial: tuple[Value, ...]
    loc: Loc | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """One ground action, with fixed parameters and picks."""

    action: str
    args: tuple[tuple[str, Any], ...]
    picks: tuple[tuple[str, Any], ...]
    guard: tuple[Conjunct, ...]
    updates: tuple[tuple[str, Expr], ...]
    guard_checks: tuple[Check, ...] = ()
    effect_checks: tuple[Check, ...] = ()
    of: tuple[str, ...] = ()
    """The labels of the component steps of a joint action."""
    fair: bool = True
    """Whether the fairness constraint of the action applies; an action that is fair in part has instances of both kinds."""
    labelled: tuple[str, ...] = ()
    """The names of the picks that are labels of branches; such a pick is None where its choice is not reached."""
    listed: tuple[int, ...] = ()
    """The positions in `Action.several` of the fairness constraints that apply."""
    sorts: tuple[Sort | None, ...] = field(default=(), compare=False, repr=False)
    """The sorts of the values of `args` and `picks`, in this order, where their text needs one, such as a union."""

    @property
    def key(self) -> tuple[object, ...]:
        """The action, parameters and picks, with the types of their values: True is not 1."""
        return self.action, *((n, type(v), v) for n, v in (*self.args, ("", None), *self.picks))

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The values of the parameters and of the picks, as text."""
        values = [v for _, v in (*self.args, *self.picks)]
        if len(self.sorts) == len(values):
            pairs = zip(values, self.sorts, strict=True)
            values = [v if sort is None or v is None else show(sort, v) for v, sort in pairs]
        every = tuple(map(_value_text, values))
        return every[: len(self.args)], every[len(self.args) :]

    @property
    def branches(self) -> tuple[str, ...]:
        """The labels of the branches taken, in their order."""
        return tuple(v for n, v in self.picks if n in self.labelled and v is not None)

    @property
    def label(self) -> str:
        """The label in traces: ``send(c=1)[k=2]: lost``."""
        given, picked = self.texts
        args = ", ".join(f"{n}={v}" for (n, _), v in zip(self.args, given, strict=True))
        picks = ", ".join(f"{n}={v}" for (n, _), v in zip(self.picks, picked, strict=True) if n not in self.labelled)
        branches = ", ".join(self.branches) if self.labelled else ""
        return f"{self.action}({args})" + (f"[{picks}]" if picks else "") + (f": {branches}" if branches else "")


def _value_text(value: Any) -> str:
    """A parameter or pick as text; the members of a set are in order, as they are not in Python."""
    if not isinstance(value, frozenset):
        return str(value)
    members = sorted(value, key=lambda v: (type(v).__name__, v) if isinstance(v, int | str) else ("", str(v)))
    return f"{{{', '.join(map(_value_text, members))}}}"


@dataclass(frozen=True, slots=True)
class ListedFairness:
    """One of several fairness constraints on an action, on those of its instances that have its position in `listed`."""

    fairness: Fairness
    part: str = ""
    """The steps that it concerns, as in its label: ``: delivered``, `` where late``; empty: every step."""


@dataclass(frozen=True, slots=True)
class Action:
    """A named rule of the protocol and its ground instances."""

    name: str
    parameters: tuple[str, ...]
    fairness: Fairness
    instances: tuple[Instance, ...]
    loc: Loc | None = None
    doc: str = ""
    internal: bool = False
    """Whether the action is hidden: compositions around the system cannot name it."""
    branches: tuple[str, ...] = ()
    """The labels of its branches, those included that no instance takes."""
    fair_branch: str | None = None
    """The branch whose steps the fairness constraint concerns, or several joined by "or"; None: those of the instances that
    are `fair`."""
    several: tuple[ListedFairness, ...] = ()
    """Its fairness constraints where it has more than one; `fairness` is none then."""

    @property
    def is_fair(self) -> bool:
        """Whether the action has a fairness constraint."""
        return any(f is not Fairness.NONE for f in (self.fairness, *(one.fairness for one in self.several)))

    @property
    def fairness_text(self) -> str:
        """Its fairness constraints in words: ``weak``, ``weak and strong``, ``none``."""
        given = [f.value for f in (self.fairness, *(one.fairness for one in self.several)) if f is not Fairness.NONE]
        return " and ".join(given) or Fairness.NONE.value


@dataclass(frozen=True, slots=True)
class Property:
    """A property. `conjuncts` are the parts of `expr`, so that a report can name the false ones."""

    name: str
    kind: Kind
    expr: Expr
    conjuncts: tuple[Conjunct, ...] = ()
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""
    formula: Formula | None = None
    """The formula of a temporal property; None for every other kind."""
    views: tuple[tuple[str, Expr], ...] = ()
    """Named terms shown in a trace in addition to the variables: for a refinement, the abstract state."""


@dataclass(frozen=True, slots=True)
class StateConstraint:
    """The condition of the states whose steps are followed, as conjuncts; see `constraint`."""

    conjuncts: tuple[Conjunct, ...]
    free: System
    """The system without it."""
    on_steps: bool = False
    """Whether the last conjunct is that no step has broken a constraint on steps, as a variable records."""
    unread: tuple[str, ...] = ()
    """The variables of unbounded integers that it does not read, each with its sort."""

    @property
    def text(self) -> str:
        """Its source text."""
        return " and ".join(c.text for c in self.conjuncts)

    def own_formula(self, name: str) -> Formula:
        """The formula of the temporal property called `name` without the constraint."""
        formula = self.free.property(name).formula
        assert formula is not None, "a temporal property has a formula"
        return formula

    def own_guard(self, instance: Instance) -> tuple[Conjunct, ...]:
        """The guard of an instance of the constrained system, without the constraint."""
        return instance.guard[len(self.conjuncts) :]


@dataclass(frozen=True, slots=True)
class Derived:
    """A named value that traces show in addition to the variables; none where one of `checks` is true."""

    name: str
    expr: Expr
    checks: tuple[Check, ...] = ()
    loc: Loc | None = None
    doc: str = ""


@dataclass(frozen=True)
class System:
    """A finite transition system with its properties. Build it with the language, or by hand for tests."""

    name: str
    variables: tuple[Variable, ...]
    actions: tuple[Action, ...]
    properties: tuple[Property, ...] = ()
    initially: Expr = TRUE
    terminal: Expr | None = None
    """The condition for terminal states; None: no state is terminal (every state without a successor is a deadlock)."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variant: str | None = None
    lemmas: tuple[Property, ...] = ()
    """Auxiliary invariants for the induction engines; they have no verdict unless also listed in `properties`."""
    constraint: StateConstraint | None = field(default=None, compare=False, repr=False)
    """The state constraint that is part of guards, terminal states and formulas, for counts and exports."""
    derived: tuple[Derived, ...] = field(default=(), compare=False, repr=False)
    """Values that traces show."""
    progress: Fairness = Fairness.NONE
    """The fairness constraint on the next-state relation: some step, of whatever action, is taken."""

    def values_of(self, names: Sequence[str]) -> dict[str, Expr]:
        """The terms of a view: of variables and derived values by name. Raises `UsageError` for an unknown name, and for a
        value that some states do not have."""
        derived = {one.name: one for one in self.derived}
        found: dict[str, Expr] = {}
        for name in names:
            if name in self.index:
                found[name] = var(name, self.variables[self.index[name]].sort)
            elif name not in derived:
                known = [*self.index, *derived]
                remedy = did_you_mean(name, known) or f"its variables and derived values are: {', '.join(known)}"
                raise UsageError(f"{self.name} has no variable or derived value {name!r}", remedy=remedy)
            elif derived[name].checks:
                why = derived[name].checks[0].message
                raise UsageError(f"{name} has no value in some states ({why})", remedy="a view has one in every state")
            else:
                found[name] = derived[name].expr
        return found

    @property
    def heading(self) -> str:
        """Name, variant and parameters: ``cyclic no-priority (depth=1)``."""
        title = " ".join(filter(None, (self.name, self.variant)))
        return f"{title} ({parameters_text(self.parameters)})" if self.parameters else title

    def _repr_html_(self) -> str:
        """Variables, actions and properties, for a notebook."""
        rows: list[tuple[str, str, object]] = [("variable", v.name, v.sort) for v in self.variables]
        rows += [
            (
                "action",
                a.name,
                f"{len(a.instances):,} instance{'' if len(a.instances) == 1 else 's'}, fairness {a.fairness_text}",
            )
            for a in self.actions
        ]
        rows += [("property", p.name, p.kind.value) for p in self.properties]
        return html_table((self.heading, "", ""), rows)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each variable in a state."""
        return {v.name: at for at, v in enumerate(self.variables)}

    @cached_property
    def named_places(self) -> tuple[Mapping[str, int], ...]:
        """Position of each element with a name as key, of each variable."""
        return tuple(_named_places(v.sort) for v in self.variables)

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Every ground instance, in declaration order."""
        return tuple(i for a in self.actions for i in a.instances)

    def with_instances(self, change: Callable[[Instance], Instance], **more: Any) -> System:
        """The system with other instances, and with `more` of its fields replaced."""
        actions = (replace(a, instances=tuple(map(change, a.instances))) for a in self.actions)
        return replace(self, actions=tuple(actions), **more)

    def rewritten(
        self,
        instance: Callable[[Instance], Instance],
        term: Callable[[Expr], Expr],
        checks: Callable[[tuple[Check, ...]], tuple[Check, ...]],
        **more: Any,
    ) -> System:
        """The system with other instances, terms of conditions, and checks of properties; `more` are further fields."""

        def prop(p: Property) -> Property:
            formula = None if p.formula is None else rewritten(p.formula, term)
            conjuncts = mapped_conjuncts(p.conjuncts, term)
            return replace(p, expr=term(p.expr), conjuncts=conjuncts, checks=checks(p.checks), formula=formula)

        changed = replace(
            self.with_instances(instance),
            properties=tuple(map(prop, self.properties)),
            initially=term(self.initially),
            terminal=None if self.terminal is None else term(self.terminal),
            lemmas=tuple(map(prop, self.lemmas)),
        )
        return replace(changed, **more)

    @property
    def unconstrained(self) -> System:
        """The system without its constraint."""
        return self if self.constraint is None else self.constraint.free

    def action(self, name: str) -> Action:
        """The action called `name`; raises `KeyError`."""
        for a in self.actions:
            if a.name == name:
                return a
        raise KeyError(name)

    def property(self, name: str) -> Property:
        """The property called `name`; raises `KeyError`."""
        for p in self.properties:
            if p.name == name:
                return p
        raise KeyError(name)

    def named(self, state: State) -> Iterator[tuple[Variable, Value]]:
        """The variables with their values in `state`."""
        return zip(self.variables, state, strict=True)


def fresh(name: str, taken: Collection[str]) -> str:
    """`name`, with underscores behind it if it is taken."""
    while name in taken:
        name += "_"
    return name


@dataclass(frozen=True, slots=True)
class FairnessConstraint:
    """A fairness constraint on one action for one combination of its parameters; any picks satisfy it. That on the next-state
    relation has no action."""

    action: str
    args: tuple[tuple[str, Any], ...]
    fairness: Fairness
    numbers: tuple[int, ...]
    """Positions in `System.instances`, one per combination of picks."""
    branch: str | None = None
    """The branch whose steps it concerns."""
    texts: tuple[str, ...] = ()
    """The values of `args` as text, as in the label of a step."""
    part: str = ""
    """The end of the label of one of several constraints on the action."""

    @property
    def label(self) -> str:
        """The label in traces: ``send(c=1)``, or ``send(c=1): delivered`` for a branch."""
        if not self.action:
            return PROGRESS
        branch = self.part if self.branch is None else f": {self.branch}"
        return (
            f"{self.action}({', '.join(f'{n}={v}' for (n, _), v in zip(self.args, self.texts, strict=True))}){branch}"
        )


PROGRESS = "some step"
"""The label of the fairness constraint on the next-state relation."""


def fairness_constraints(system: System) -> tuple[FairnessConstraint, ...]:
    """Every fairness constraint of the system, in the order of the actions; that on the next-state relation is the last."""
    found: list[FairnessConstraint] = []
    begin = 0
    for action in system.actions:
        if action.fairness is not Fairness.NONE:
            found += _constraints(action, begin, None)
        for at, one in enumerate(action.several):
            if one.fairness is not Fairness.NONE:
                found += _constraints(action, begin, at)
        begin += len(action.instances)
    if system.progress is not Fairness.NONE and begin:
        found.append(FairnessConstraint("", (), system.progress, tuple(range(begin))))
    return tuple(found)


def _constraints(action: Action, begin: int, listed: int | None) -> Iterator[FairnessConstraint]:
    """The constraint of an action, or one of several, for each combination of its parameters; its instances are numbered from
    `begin` on."""
    groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    texts: dict[tuple[tuple[str, Any], ...], tuple[str, ...]] = {}
    for number, instance in enumerate(action.instances, begin):
        if instance.fair if listed is None else listed in instance.listed:
            groups.setdefault(instance.args, []).append(number)
            texts.setdefault(instance.args, instance.texts[0])
    fairness = action.fairness if listed is None else action.several[listed].fairness
    part = "" if listed is None else action.several[listed].part
    for args, numbers in groups.items():
        yield FairnessConstraint(action.name, args, fairness, tuple(numbers), action.fair_branch, texts[args], part)


def without_fairness(system: System) -> System:
    """The system without fairness constraints."""
    actions = tuple(replace(a, fairness=Fairness.NONE, several=()) for a in system.actions)
    return replace(system, actions=actions, progress=Fairness.NONE)


def parameter_json(value: Any) -> Any:
    """A model parameter as JSON data: numbers, strings, lists and objects unchanged, anything else as text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(k): parameter_json(v) for k, v in value.items()}
        case set() | frozenset():
            return sorted((parameter_json(v) for v in value), key=partial(json.dumps, ensure_ascii=False))
        case Sequence() | range():
            return [parameter_json(v) for v in value]
        case _:
            return str(value)


def _named_places(sort: Sort) -> Mapping[str, int]:
    index = sort.index if isinstance(sort, ArraySort) else None
    if isinstance(index, KeySort):
        return {key: index.places[index.typed[str, key]] for key in index.keys if type(key) is str}
    return index.places if isinstance(index, EnumSort) else {}
