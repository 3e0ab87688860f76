"""From a model instance to a `System`: every action is lowered once per combination of its parameters and choices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from streamproof.language.declare import Decl, State
from streamproof.language.lowering import Lowering
from streamproof.language.model import Model, marked
from streamproof.language.primitives import MARK, ActionMark, InitiallyMark, PropertyMark, TerminalMark
from streamproof.language.terms import StateRef
from streamproof.language.world import World
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.model import Action, Conjunct, Instance, Kind, Property, System, Variable
from streamproof.system.sorts import Sort

INSTANCE_LIMIT = 200_000
DEADLOCK = "deadlock"
TERMINATION = "termination"


def compile_model(model: Model, properties: Iterable[Callable[..., Any]] = (), *, termination: bool = False) -> System:
    """The transition system of `model` with its own properties and the given ones. Raises `ModelError` at a mistake."""
    return _Compiler(model).run(tuple(properties), termination)


class _Compiler:
    def __init__(self, model: Model) -> None:
        self.model = model
        declared = model.state()
        if not isinstance(declared, State):
            raise ModelError(
                f"state() of {type(model).__name__} returned {type(declared).__name__}",
                loc=_of(type(model).state),
                remedy="return State(name=sort, ...)",
            )
        self.declarations: dict[str, Decl] = dict(declared.items())
        if not self.declarations:
            raise ModelError(
                "the state has no variables", loc=declared.loc, remedy="declare at least one in State(...)"
            )
        self.sorts: dict[str, Sort] = {n: d.sort for n, d in self.declarations.items()}
        self.place = declared.loc

    def run(self, extra: tuple[Callable[..., Any], ...], termination: bool) -> System:
        found = marked(type(self.model))
        self._refuse_clashes(found, extra)
        actions: list[Action] = []
        props: list[Property] = []
        lemmas: list[Property] = []
        initially: Expr = b.TRUE
        terminal: Expr | None = None
        for name, (mark, function) in found.items():
            match mark:
                case ActionMark():
                    actions.append(self._action(name, mark, function))
                case PropertyMark():
                    (lemmas if mark.lemma else props).append(self._property(name, mark, function))
                case TerminalMark():
                    cond = self._predicate(function, 1)[0]
                    terminal = cond if terminal is None else b.or_((terminal, cond))
                case InitiallyMark():
                    initially = b.and_((initially, self._predicate(function, 1)[0]))
        if not actions:
            raise ModelError(
                f"{type(self.model).__name__} has no actions",
                loc=self.place,
                remedy="mark at least one method with @action",
            )
        for function in extra:
            mark = getattr(function, MARK, None)
            if not isinstance(mark, PropertyMark):
                raise ModelError(
                    f"{function.__name__} is not marked as a property",
                    loc=_of(function),
                    remedy="decorate it with @invariant, @step, @reachable or @lemma",
                )
            (lemmas if mark.lemma else props).append(self._property(function.__name__, mark, function))
        if self.model.check_deadlock:
            doc = "Every reachable state has a successor or is a declared legal end."
            props.append(Property(DEADLOCK, Kind.DEADLOCK, b.TRUE, doc=doc))
        if termination:
            props.append(Property(TERMINATION, Kind.TERMINATION, b.TRUE, doc="No behaviour goes on for ever."))
        variables = tuple(Variable(n, d.sort, d.first, d.loc) for n, d in self.declarations.items())
        return System(
            name=type(self.model).title(),
            variables=variables,
            actions=tuple(actions),
            properties=tuple(props),
            initially=initially,
            terminal=terminal,
            parameters=self.model.settings(),
            variant=type(self.model).variant,
            lemmas=tuple(lemmas),
        )

    def _refuse_clashes(self, found: dict[str, Any], extra: tuple[Callable[..., Any], ...]) -> None:
        parameters = type(self.model).parameters()
        seen: dict[str, str] = dict.fromkeys(parameters, "a parameter")
        entries = [(n, "a state variable", self.place) for n in self.sorts]
        kinds = {ActionMark: "an action", PropertyMark: "a property"}
        entries += [(n, kinds.get(type(m), "a predicate"), _of(f)) for n, (m, f) in found.items()]
        entries += [(f.__name__, "a property", _of(f)) for f in extra]
        for name, kind, loc in entries:
            if name in (DEADLOCK, TERMINATION):
                raise ModelError(f"{name!r} is the name of a built-in property", loc=loc, remedy="choose another name")
            if name in seen:
                raise ModelError(f"{name!r} names {seen[name]} and {kind}", loc=loc, remedy="rename one of them")
            seen[name] = kind

    # --- actions

    def _action(self, name: str, mark: ActionMark, function: Callable[..., Any]) -> Action:
        names = list(inspect.signature(function).parameters)[1:]
        if not names:
            raise ModelError(
                f"action {name} takes no state", loc=_of(function), remedy=f"write def {name}(self, s, ...)"
            )
        given, declared = names[1:], dict(mark.domains)
        for p in given:
            if p not in declared:
                raise ModelError(
                    f"parameter {p!r} of action {name} has no domain",
                    loc=_of(function),
                    remedy=f"give it in the decorator: @action({p}=range(2))",
                )
        for p in declared:
            if p not in given:
                raise ModelError(
                    f"@action of {name} gives a domain for {p!r}, which is no parameter",
                    loc=_of(function),
                    remedy=f"its parameters are {', '.join(given) or 'none'}",
                )
        domains = [self._domain(name, p, declared[p], function) for p in given]
        instances: list[Instance] = []
        for values in product(*domains):
            instances.extend(self._instances(name, function, tuple(zip(given, values, strict=True))))
            if len(instances) > INSTANCE_LIMIT:
                raise ModelError(
                    f"action {name} has more than {INSTANCE_LIMIT:,} instances",
                    loc=_of(function),
                    remedy="smaller domains",
                )
        return Action(
            name, tuple(given), mark.fairness, tuple(instances), _of(function), inspect.getdoc(function) or ""
        )

    def _domain(self, action: str, parameter: str, given: Any, function: Callable[..., Any]) -> list[Any]:
        if isinstance(given, str):
            if not hasattr(self.model, given):
                raise ModelError(
                    f"domain {given!r} of {action}({parameter}) is no attribute of the model",
                    loc=_of(function),
                    remedy="name a parameter or something set in setup()",
                )
            given = getattr(self.model, given)
        if callable(given):
            given = given(self.model)
        if isinstance(given, int) and not isinstance(given, bool):
            given = range(given)
        if isinstance(given, Decl):
            from streamproof.system.sorts import values

            given = values(given.sort)
        if not isinstance(given, Iterable):
            raise ModelError(
                f"domain of {action}({parameter}) is {given!r}",
                loc=_of(function),
                remedy="use an int, a range, or a list",
            )
        return list(given)

    def _instances(
        self, name: str, function: Callable[..., Any], args: tuple[tuple[str, Any], ...]
    ) -> Iterator[Instance]:
        """One instance per way through the action's choices."""
        script: tuple[int, ...] = ()
        while True:
            world = self._world(script)
            lowering = Lowering(world)
            frame = lowering.enter(function, [self.model, StateRef(), *(v for _, v in args)], {}, 0, _of(function))
            from streamproof.language.sources import definition

            lowering.block(definition(inspect.unwrap(function)).body, frame)
            instance = self._instance(name, args, world)
            if instance is not None:
                yield instance
            taken = [script[i] if i < len(script) else 0 for i in range(len(world.widths))]
            while taken and taken[-1] + 1 >= world.widths[len(taken) - 1]:
                taken.pop()
            if not taken:
                return
            taken[-1] += 1
            script = tuple(taken)

    def _world(self, script: tuple[int, ...]) -> World:
        state = {n: b.var(n, s) for n, s in self.sorts.items()}
        return World(sorts=self.sorts, state=state, script=script)

    def _instance(self, name: str, args: tuple[tuple[str, Any], ...], world: World) -> Instance | None:
        updates = tuple((n, t) for n, t in world.state.items() if t is not b.var(n, self.sorts[n]))
        total = len(world.guards)
        early = tuple(p.check for p in world.checks if p.after_guards < total)
        late = tuple(p.check for p in world.checks if p.after_guards >= total)
        if any(g.expr is b.FALSE for g in world.guards) and not early:
            return None  # never enabled with these arguments: nothing to explore
        return Instance(name, args, tuple(world.picks), tuple(world.guards), updates, early, late)

    # --- properties

    def _predicate(self, function: Callable[..., Any], states: int) -> tuple[Expr, tuple[Conjunct, ...], World]:
        world = self._world(())
        world.in_action = False
        expected = 1 + states
        got = len(inspect.signature(function).parameters)
        if got != expected:
            shape = "(self, s)" if states == 1 else "(self, s, t)"
            raise ModelError(f"{function.__name__} takes {got} arguments", loc=_of(function), remedy=f"write {shape}")
        args: list[Any] = [self.model, StateRef(frozen=True), StateRef(after=True)][:expected]
        expr, parts = Lowering(world).predicate(function, args)
        return expr, parts, world

    def _property(self, name: str, mark: PropertyMark, function: Callable[..., Any]) -> Property:
        expr, parts, world = self._predicate(function, 2 if mark.kind is Kind.STEP else 1)
        checks = tuple(p.check for p in world.checks)
        return Property(name, mark.kind, expr, parts, checks, _of(function), inspect.getdoc(function) or "")


def _of(function: Any) -> Loc | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Loc(code.co_filename, code.co_firstlineno, function.__name__) if code else None
