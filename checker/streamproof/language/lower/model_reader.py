"""The reader of a single machine: lowers every action once per combination of parameters and choices, then the properties."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError
from streamproof.base.options import deep_stack
from streamproof.base.records import dataclass, replace
from streamproof.language.declare.declarations import check_module
from streamproof.language.declare.model import RESERVED, Model, check_progress, class_place, marked, progress_of
from streamproof.language.declare.primitives import (
    MARK,
    ActionMark,
    PropertyMark,
    RefinementMark,
    StateMark,
)
from streamproof.language.declare.variables import Decl, State
from streamproof.language.free.symbolic_parameters import call_user, watch
from streamproof.language.lower.cases import Case, shown_sort
from streamproof.language.lower.conversion import plain_inside
from streamproof.language.lower.domains import INSTANCE_LIMIT, Domains, as_member, members, too_many
from streamproof.language.lower.equal_calls import EqualCalls
from streamproof.language.lower.lowering import Lowering, PropertyReader
from streamproof.language.lower.lowering_context import Context, OutsideCalls, Pick, RuleInstances
from streamproof.language.lower.mutation_guard import MutationGuard
from streamproof.language.lower.partial_fairness import FairSteps, inherited_rules, labels
from streamproof.language.lower.sources import ordinary, parameters, place
from streamproof.language.lower.terms import ScopeNames, StateRef, describe
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import (
    NOT_REACHED,
    REACHED,
    Action,
    Check,
    Conjunct,
    Derived,
    Instance,
    Kind,
    ListedFairness,
    Property,
    System,
    Variable,
)
from streamproof.system.sorts import Sort
from streamproof.transform.unbounded import is_as_declared

READ_AGAIN = 8
"""Maximum number of choice branches of an action that are read twice to detect nondeterminism, if the rule calls impure
Python code."""
DEADLOCK = "deadlock"
TERMINATION = "termination"
DECLARED_AGAIN = 1_000
"""Maximum total number of initial values up to which `state()` is called twice to detect nondeterminism."""
STACK = 8_000
"""Maximum stack depth during lowering: nested calls of the model need several frames each."""

Compile: TypeAlias = Callable[[Model], System]
"""Compiles, without properties, the abstract model of a refinement."""


def choice_conditions(
    model: Model, action: str, args: tuple[tuple[str, Any], ...], within: Scope | None = None
) -> Mapping[Instance, tuple[tuple[Expr, bool], ...]]:
    """For each instance of an action with these arguments, and each pick: the condition under which the action reaches
    the choice, and whether the pick is the first option, which represents all options where the choice is not reached.

    The instances are those of the system without constraint.
    """
    with deep():
        mark, function = marked(type(model))[action]
        assert isinstance(mark, ActionMark)
        assert isinstance(function, types.FunctionType)
        table = members(model, action, mark, function)
        args = tuple((n, as_member(table, n, v)) for n, v in args)
        return {
            instance: tuple((p.reached_when, p.first) for p in picks)
            for instance, picks in Reader(model, within=within).instances(action, function, args)
        }


@contextmanager
def deep() -> Iterator[None]:
    """Raises the recursion limit during lowering; a rule that exceeds it is rejected."""
    try:
        with deep_stack(STACK):
            yield
    except RecursionError:
        raise ModelError(
            "the model nests too deeply to be lowered", remedy="shorten the recursion or the expression"
        ) from None


def searched(model: Model, declarations: Mapping[str, Decl]) -> dict[str, Decl]:
    """The declarations of a search: those of a model with a constraint have `searchable` integers."""
    wide = is_constrained(model) and not is_as_declared()
    return {name: decl.searched() if wide else decl for name, decl in declarations.items()}


def is_constrained(model: Model) -> bool:
    """Whether a model declares a constraint."""
    return any(mark is StateMark.CONSTRAINT for mark, _ in marked(type(model)).values())


def declared(model: Model) -> tuple[dict[str, Decl], Loc | None]:
    """The declarations of ``state()`` and their position. Raises `ModelError`."""
    home = place(type(model).state)
    if not inspect.signature(type(model).state).parameters:
        raise ModelError("state() takes no self", loc=home, remedy="write def state(self)")
    found = call_user(model.state, (), "state()", home)
    if not isinstance(found, State):
        raise ModelError(
            f"state() of {type(model).__name__} returned {describe(found)}",
            loc=home,
            remedy="end it with: return State(name=sort, ...)",
        )
    declarations = dict(found.items())
    if not declarations:
        raise ModelError("the state has no variables", loc=found.loc, remedy="declare at least one in State(...)")
    if watch() is None and sum(len(d.first) for d in declarations.values()) <= DECLARED_AGAIN:
        again = ordinary(model.state, "state()", home)
        if not isinstance(again, State) or dict(again.items()) != declarations:
            raise ModelError(
                f"state() of {type(model).__name__} is not deterministic: two calls gave different declarations",
                loc=home,
                remedy="compute what it uses in setup(), and keep lists: an iterator is empty after its first use",
            )
    return declarations, found.loc


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """The scope of a machine in a composition: the names of its variables and actions, and the names visible to it."""

    declared: Mapping[str, Decl]
    """Every variable accessible to its rules, by its name in the system."""
    loc: Loc | None
    names: ScopeNames
    called: Callable[[str], str]
    """The name in the system of one of its actions."""
    taken: tuple[tuple[str, str, Loc | None], ...] = ()
    """Reserved names (its variables, parts and the like), each with its kind and position."""
    composite: bool = False


class Reader:
    """Reads one machine, single or in a composition: its rules and properties."""

    def __init__(
        self,
        model: Model,
        without_properties: bool = False,
        free: frozenset[str] | None = None,
        within: Scope | None = None,
        abstract: Compile | None = None,
    ) -> None:
        self.model = model
        self.abstract = abstract
        self.free = free or frozenset()
        self.safety_only = free is not None
        self.without_properties = without_properties
        self.within = within
        if within is None:
            self.declarations, self.place = declared(model)
            if free is None:
                self.declarations = searched(model, self.declarations)
        else:
            self.declarations, self.place = dict(within.declared), within.loc
        self.names = None if within is None else within.names
        self.called = within.called if within is not None else str
        self.sorts: dict[str, Sort] = {n: d.sort for n, d in self.declarations.items()}
        self.end_checks: list[Check] = []
        self.constraints: list[Conjunct] = []
        self.step_constraints: list[Conjunct] = []
        self._instances: dict[str, RuleInstances] = {}
        self._labels: dict[str, dict[str, None]] = {}
        """The labels of the branches of each rule that was read."""
        self._fair: dict[str, FairSteps] = {}
        self._calls = EqualCalls(self.sorts) if not self.free and self.names is None else None
        self.outside = OutsideCalls()
        self.properties = PropertyReader(model, self.sorts, self.names, self.free, self.outside, self._of_rule)

    def run(self, extra: tuple[Callable[..., Any], ...], termination: bool) -> System:
        """The system of the machine; `extra` are properties stated outside the model. Raises `ModelError`."""
        found = marked(type(self.model))
        check_module(f for f in extra if isinstance(f, types.FunctionType))
        self._refuse_clashes(found, extra)
        above = f"{self.names.path}." if self.names is not None else ""
        parts = [] if self.names is None else [(p.path.removeprefix(above), p.model) for p in self.names.parts()]
        unchanged = MutationGuard(self.model, [*(f for _, f in found.values()), *extra], parts)
        actions: list[Action] = []
        props: list[Property] = []
        lemmas: list[Property] = []
        derived: list[Derived] = []
        initially: Expr = b.TRUE
        refinements: list[tuple[str, RefinementMark, types.FunctionType, int]] = []
        ends: list[Expr] = []
        for name, (mark, function) in found.items():
            if not isinstance(function, types.FunctionType):
                raise ModelError(
                    f"{name} is decorated, but is not a plain method",
                    loc=place(getattr(function, "__func__", function)) or self.place,
                    remedy=f"write def {name}(self, s, ...) without @staticmethod, @classmethod or @property",
                )
            match mark:
                case ActionMark():
                    actions.append(self._action(name, mark, function, unchanged))
                case PropertyMark() if not self.without_properties and self._wanted(mark):
                    (lemmas if mark.lemma else props).append(self.properties.property(name, mark, function))
                case RefinementMark() if not self.without_properties and not self.safety_only:
                    refinements.append((name, mark, function, len(props)))
                case StateMark.DERIVED if not self.without_properties and not self.safety_only:
                    derived.append(self.properties.derived(name, function))
                case StateMark.TERMINAL:
                    cond, _, checks = self.properties.predicate(function, 1)
                    ends.append(cond)
                    self.end_checks += checks
                case StateMark.INITIALLY:
                    initially = b.and_((initially, self.properties.total(function, "initially", "first values")))
                case StateMark.CONSTRAINT:
                    self._expect_outermost(name, function)
                    on_steps = len(parameters(function)) == 3
                    limit = self.properties.total(
                        function, "constraint", "steps" if on_steps else "states", 1 + on_steps
                    )
                    limits = self.step_constraints if on_steps else self.constraints
                    limits.append(Conjunct(limit, name, place(function)))
            self._expect(unchanged, function)
        if not actions and not (self.within is not None and self.within.composite):
            raise ModelError(
                f"{type(self.model).__name__} has no actions",
                loc=class_place(type(self.model)),
                remedy="mark at least one method with @action",
            )
        for function in extra:
            mark = getattr(function, MARK, None)
            if isinstance(mark, RefinementMark) and isinstance(function, types.FunctionType):
                refinements.append((function.__name__, mark, function, len(props)))
                continue
            if not isinstance(mark, PropertyMark):
                raise ModelError(
                    f"{function.__name__} is not marked as a property",
                    loc=place(function),
                    remedy="decorate it with @invariant, @step, @reachable, @temporal, @lemma or @refines(...)",
                )
            if self._wanted(mark):
                (lemmas if mark.lemma else props).append(self.properties.property(function.__name__, mark, function))
                self._expect(unchanged, function)
        for name, mark, function, at in reversed(refinements):
            from streamproof.language.lower.refinement import refined

            assert self.abstract is not None, "a bare model claims no refinement"
            props[at:at] = refined(
                self.abstract, self.model, self.sorts, self._variables(), initially, name, mark, function, self.names
            )
            unchanged.check(function)
        check_progress(self.model)
        props += built_in(self.model.check_deadlock and not self.without_properties, self.end_checks, termination)
        return System(
            name=type(self.model).title(),
            variables=self._variables(),
            actions=tuple(actions),
            properties=tuple(props),
            initially=initially,
            terminal=b.or_(ends) if ends else None,
            parameters={} if self.free else self.model.settings(),
            variant=type(self.model).variant,
            lemmas=tuple(lemmas),
            derived=tuple(derived),
            progress=progress_of(type(self.model)),
        )

    def _variables(self) -> tuple[Variable, ...]:
        return tuple(Variable(n, d.sort, d.first, d.loc) for n, d in self.declarations.items())

    def _wanted(self, mark: PropertyMark) -> bool:
        """Whether a property is included; temporal properties only on request in the parametric case."""
        return not (self.safety_only and mark.kind is Kind.TEMPORAL)

    def _refuse_clashes(self, found: dict[str, Any], extra: tuple[Callable[..., Any], ...]) -> None:
        parameters = type(self.model).parameters()
        seen: dict[str, str] = dict.fromkeys(parameters, "a parameter")
        entries = [(n, "a state variable", self.place) for n in self.sorts if self.within is None]
        if self.within is not None:
            entries = list(self.within.taken)
        kinds = {ActionMark: "an action", PropertyMark: "a property", RefinementMark: "a property"}
        entries += [(n, kinds.get(type(m), "a predicate"), place(f)) for n, (m, f) in found.items()]
        entries += [(f.__name__, "a property", place(f)) for f in extra]
        marks = [(n, m, f) for n, (m, f) in found.items()] + [(f.__name__, getattr(f, MARK, None), f) for f in extra]
        for n, m, f in marks:
            if not n.isidentifier():  # certificates quote these claims
                raise ModelError(
                    f"{n!r} is not an identifier", loc=place(f), remedy="name it as Python names a function"
                )
            if isinstance(m, RefinementMark):
                from streamproof.language.lower.refinement import promised

                entries += [
                    (p.name, f"a property of the refinement {n}", place(f)) for p in promised(n, m) if p.name != n
                ]
        for name, kind, loc in entries:
            if name in (DEADLOCK, TERMINATION):
                raise ModelError(f"{name!r} is the name of a built-in property", loc=loc, remedy="choose another name")
            if name in RESERVED and kind != "a state variable":
                raise ModelError(f"{name!r} is part of every model", loc=loc, remedy="choose another name")
            if name in seen:
                raise ModelError(f"{name!r} names {seen[name]} and {kind}", loc=loc, remedy="rename one of them")
            seen[name] = kind

    def _expect(self, unchanged: MutationGuard, function: Callable[..., Any]) -> None:
        """Raises `ModelError` if ordinary Python code run since the last check mutated an object."""
        if self.outside.impure:
            unchanged.check(function)
            self.outside.impure = False

    # --- actions

    def _action(self, name: str, mark: ActionMark, function: types.FunctionType, unchanged: MutationGuard) -> Action:
        domains = Domains(self.model, name, mark, function, self.free, self.called(name))
        instances: list[Instance] = []
        for at, args in enumerate(domains.combinations()):
            outside = self.outside if at else OutsideCalls()
            found = self.instances(name, function, args, outside=outside, alone=at == 0)
            made = [i for i, _ in islice(found, INSTANCE_LIMIT + 1)]
            if at == 0 and outside.impure:
                unchanged.check(function)
                self.outside.impure = True
                again = self.instances(name, function, args, alone=True)
                if made[:READ_AGAIN] != [i for i, _ in islice(again, READ_AGAIN)]:
                    raise ModelError(
                        f"action {name} is not deterministic: two evaluations gave different rules",
                        loc=place(function),
                        remedy="nondeterminism comes from choose(...), not from random numbers or the clock",
                    )
            instances.extend(made)
            if len(instances) > INSTANCE_LIMIT:
                raise too_many(name, f"{INSTANCE_LIMIT:,} instances", function)
        self.outside.impure |= domains.impure
        doc = inspect.getdoc(function) or ""
        branches = tuple(dict.fromkeys((*labels(function), *self._labels.get(self.called(name), ()))))
        if instances:
            rules = inherited_rules(function, name, type(self.model).__mro__)
            known = tuple(dict.fromkeys((*branches, *(label for f in rules for label in labels(f)))))
            self._fair_steps(name, mark, function).expect_known(domains.given, known, rules)
        return Action(
            self.called(name),
            tuple(domains.given),
            mark.fairness,
            tuple(instances),
            place(function),
            doc,
            branches=branches,
            fair_branch=" or ".join(mark.branches) or None,
            several=tuple(ListedFairness(one.fairness, one.part) for one in mark.several),
        )

    def instances(
        self,
        name: str,
        function: types.FunctionType,
        args: tuple[tuple[str, Any], ...],
        *,
        outside: OutsideCalls | None = None,
        alone: bool = False,
    ) -> Iterator[tuple[Instance, list[Pick]]]:
        """One instance per combination of values of the action's ``choose(...)`` calls.

        `outside` records the calls into ordinary Python during the reading; `alone`: nothing is taken over from other rules.
        """
        noted = outside or self.outside
        fair = self._fair.get(name) or self._fair_steps(name, marked(type(self.model))[name][0], function)
        name = self.called(name)
        label = f"{name}({', '.join(f'{n}={v if isinstance(v, Case) else plain_inside(v)}' for n, v in args)})"
        given = [self.model, StateRef(names=self.names), *(v for _, v in args)]
        script: tuple[int, ...] | None = ()
        while script is not None:
            state = {n: b.var(n, s) for n, s in self.sorts.items()}
            context = Context(self.sorts, state, label, script, free=self.free, outside=noted)
            context.calls = None if alone else self._calls
            Lowering(context).action(function, given)
            instance = self._instance(name, args, context)
            self._labels.setdefault(name, {}).update((p.value, None) for p in context.picks if p.labelled)
            for branch, picks in () if instance is None else _branch_parts(instance, context.picks):
                for part in fair.parts(branch, dict(args), picks):
                    yield part, list(picks)
            script = _next(context)

    def _fair_steps(self, name: str, mark: ActionMark, function: types.FunctionType) -> FairSteps:
        if name not in self._fair:
            self._fair[name] = FairSteps(self.properties, name, mark, function, self.outside)
        return self._fair[name]

    def _of_rule(self, rule: types.MethodType, state: StateRef | None, loc: Loc) -> RuleInstances:
        """The instances of a rule, for `enabled` and, without a state, `happened`. Raises `ModelError` unless it is a rule of
        this machine, in its state."""
        known = marked(type(self.model)).items() if rule.__self__ is self.model else ()
        name, mark, function = next(
            ((n, m, f) for n, (m, f) in known if f is rule.__func__), (rule.__name__, None, None)
        )
        if not isinstance(mark, ActionMark) or not isinstance(function, types.FunctionType):
            raise ModelError(
                f"{name} is no rule of {type(self.model).__name__}",
                loc=loc,
                remedy=f"name one with @action: {'happened(self.send)' if state is None else 'enabled(self.send, s)'}",
            )
        if state is not None and (state.names.path if state.names else "") != (self.names.path if self.names else ""):
            raise ModelError(
                f"{name} is asked of the state of another machine",
                loc=loc,
                remedy=f"write enabled(self.{name}, s, ...)",
            )
        if name not in self._instances:
            domains = Domains(self.model, name, mark, function, self.free, self.called(name))
            combinations = [*domains.combinations()]
            found = [i for args in combinations for i, _ in self.instances(name, function, args)]
            self._instances[name] = RuleInstances(found, [tuple(v for _, v in args) for args in combinations])
        return self._instances[name]

    def _instance(self, name: str, args: tuple[tuple[str, Any], ...], context: Context) -> Instance | None:
        updates = tuple((n, t) for n, t in context.state.items() if t is not b.var(n, self.sorts[n]))
        total = len(context.guards)
        early = tuple(p.check for p in context.checks if p.after_guards < total)
        late = tuple(p.check for p in context.checks if p.after_guards >= total)
        if any(g.expr is b.FALSE for g in context.guards) and not early:
            return None  # disabled in every state with these arguments
        picks = tuple((p.name, plain_inside(p.value)) for p in context.picks)
        sorts = (*(shown_sort(v) for _, v in args), *(p.sort for p in context.picks))
        args = tuple((n, plain_inside(v)) for n, v in args)
        labelled = tuple(p.name for p in context.picks if p.labelled)
        return Instance(
            name,
            args,
            picks,
            tuple(context.guards),
            updates,
            early,
            late,
            labelled=labelled,
            sorts=sorts if any(sorts) else (),
        )

    def _expect_outermost(self, name: str, function: Callable[..., Any]) -> None:
        """Raises `ModelError` for a constraint of a part of a composition."""
        if self.names is not None and self.names.path:
            raise ModelError(
                f"@constraint {name} is in a part of a composition",
                loc=place(function),
                remedy="a constraint limits the whole: state it in the outermost model",
            )


def built_in(deadlock: bool, checks: Sequence[Check], termination: bool) -> Iterator[Property]:
    """The properties without a function; `checks` are those of the conditions on terminal states."""
    if deadlock:
        doc = "Every reachable state has a successor or is terminal."
        yield Property(DEADLOCK, Kind.DEADLOCK, b.TRUE, checks=tuple(checks), doc=doc)
    if termination:
        yield Property(TERMINATION, Kind.TERMINATION, b.TRUE, doc="Every behaviour is finite.")


def _branch_parts(instance: Instance, picks: Sequence[Pick]) -> Iterator[tuple[Instance, list[Pick]]]:
    """The instance, or where it may not reach a labelled choice, its steps that reach it and those that do not."""
    parts = [(instance, list(picks))]
    for at, pick in enumerate(picks):
        if not pick.labelled or not pick.first or pick.reached_when is b.TRUE:
            continue
        split = []
        for one, its in parts:
            reached = Conjunct(pick.reached_when, REACHED, None)
            split.append(
                (replace(one, guard=(*one.guard, reached)), [*its[:at], replace(pick, first=False), *its[at + 1 :]])
            )
            none = (*one.picks[:at], (pick.name, None), *one.picks[at + 1 :])
            not_reached = Conjunct(b.not_(pick.reached_when), NOT_REACHED, None)
            split.append((replace(one, guard=(*one.guard, not_reached), picks=none), its))
        parts = split
    yield from parts


def _next(context: Context) -> tuple[int, ...] | None:
    """The choices of the next reading, in backtracking order: the last choice with an untried option takes that option."""
    script = context.script
    taken = [script[i] if i < len(script) else 0 for i in range(len(context.widths))]
    while taken and taken[-1] + 1 >= context.widths[len(taken) - 1]:
        taken.pop()
    return (*taken[:-1], taken[-1] + 1) if taken else None
