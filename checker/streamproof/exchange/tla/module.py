"""TLA+: a system as a module for TLC and Apalache, with TLC's configuration files.

TLC counts the same states, successors and levels: states correspond one to one, ``Next`` has one disjunct for each
action, its parameters bound by quantifiers, and nothing inside a step can be split into two. The properties are in
``NAME.cfg``. Properties with another kind of check have separate configurations: reachability (violated means reached),
termination of a model with fairness (which would exclude infinite behaviours), until and release.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import partial
from typing import assert_never

from streamproof.base.errors import ModelError, TooLarge
from streamproof.base.files import GENERATOR
from streamproof.base.options import deep_stack
from streamproof.base.records import dataclass, replace
from streamproof.exchange.tla.actions import WORDS, Actions
from streamproof.exchange.tla.behaviours import (
    Guesses,
    comment,
    defined,
    direct,
    is_direct,
    is_endless_only,
    is_watchable,
    leaves,
    skeleton,
    watched_module,
    within,
)
from streamproof.exchange.tla.families import GROUND
from streamproof.exchange.tla.images import Images
from streamproof.exchange.tla.layout import Bind, Text, atom, beside, bulleted, closed, separated
from streamproof.exchange.tla.names import STANDARD, TlaNames, identifier
from streamproof.exchange.tla.quantifiers import for_all
from streamproof.exchange.tla.terms import TlaWriter, WrittenPassage
from streamproof.exchange.tla.values import belongs, initial, literal, type_text
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import AndF, Atom, Formula, folded
from streamproof.system.model import Fairness, Kind, Property, System, fires
from streamproof.system.sorts import BOOL
from streamproof.transform.assume import Assuming, Substitution, simplify

MISTAKE = "NoMistake"
"""The invariant that is violated at a model error."""
TYPES = "TypeOK"
"""The invariant that every variable has a value of its sort."""
IDLE = "(ENABLED (Next /\\ UNCHANGED vars))"
"""The invariant that no stuttering step is enabled."""
INSIDE = b.var(".inside", BOOL)
"""Placeholder in formulas for the operator that states the constraint."""
STACK = 20_000
"""Maximum stack depth while writing terms."""


class Means(Enum):
    """The meaning of a violation reported by TLC."""

    VIOLATED = "violated"
    REACHED = "reached"
    MISTAKE = "mistake"


@dataclass(frozen=True, slots=True)
class TlcClaim:
    """A claim checked by TLC: an invariant or a property of a configuration."""

    name: str
    property: str | None
    """The property that it belongs to; None: to the model."""
    means: Means
    temporal: bool = False
    """Whether it is a property of steps or behaviours rather than an invariant."""
    idle: bool = False
    """Whether it concerns stuttering steps; such a step then follows the state that violates it."""
    endless_only: bool = False
    """Whether TLC may miss finite behaviours within a constraint that refute it; see `tla_behaviours.is_endless_only`."""


@dataclass(frozen=True, slots=True)
class TlcRun:
    """One configuration of TLC: the claims about one specification."""

    name: str
    """The file name, without the suffix."""
    module: str
    specification: str
    claims: tuple[TlcClaim, ...]
    about: str
    constraint: str | None = None
    """The operator that limits the states whose steps are followed."""
    alias: str | None = None
    """The operator for the states of traces, with the derived values."""
    view: str | None = None
    """The operator by which states are identified."""

    def configuration(self, *, deadlock: bool = True) -> str:
        """The text of the file; `deadlock` disables TLC's own deadlock check, and has the alias."""
        lines = [f"\\* {comment(self.about)}", f"\\* {GENERATOR} export", f"SPECIFICATION {self.specification}"]
        if deadlock:
            lines.append("CHECK_DEADLOCK FALSE")
            lines += [] if self.alias is None else [f"ALIAS {self.alias}"]
        if self.constraint is not None:
            lines.append(f"CONSTRAINT {self.constraint}")
        if self.view is not None:
            lines.append(f"VIEW {self.view}")
        for word, temporal in (("INVARIANT", False), ("PROPERTY", True)):
            lines += [f"{word} {c.name}" for c in self.claims if c.temporal is temporal]
        return "\n".join((*lines, ""))


@dataclass(frozen=True, slots=True)
class Tla:
    """Modules and configurations, and the data needed to interpret TLC's output."""

    module: str
    modules: Mapping[str, str]
    """Texts by module name; the first is the model's."""
    runs: tuple[TlcRun, ...]
    """The first one checks every property that must hold."""
    variables: Mapping[str, str]
    """TLA+'s names by those of the model."""
    actions: Mapping[str, str]
    """The model's names by TLA+'s operators."""
    left_out: tuple[str, ...]
    """Properties without a TLA+ text."""

    @property
    def files(self) -> Mapping[str, str]:
        """Every file by its name."""
        texts = {f"{name}.tla": text for name, text in self.modules.items()}
        return {**texts, **{f"{run.name}.cfg": run.configuration() for run in self.runs}}


def export(system: System, view: Sequence[str] | None = None) -> Tla:
    """`system` in TLA+; `view`: the variables and derived values by which TLC identifies states, where no property is about
    endless behaviours. Raises `TooLarge` for integers beyond 32 bits and for terms that nest too deeply, `ModelError` for a
    system without variables, and `UsageError` for an unknown name in the view."""
    if not system.variables:
        raise ModelError("a system without variables has no TLA+ module", remedy="declare at least one variable")
    try:
        with deep_stack(STACK):
            return _TlaExport(system, view).document()
    except RecursionError:
        raise TooLarge("a term nests too deeply for TLA+ text", remedy="choose smaller parameters") from None


def module_name(system: System) -> str:
    """The name of the module: the model's, without its package, and the variant's."""
    name = identifier("_".join(filter(None, (system.name.rsplit(".", 1)[-1], system.variant))))
    return f"{name}_model" if name.lower() in {word.lower() for word in STANDARD} else name


@dataclass
class _TlaExport:
    system: System
    view: Sequence[str] | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.system.constraint is not None:
            self.system = replace(self.system, properties=tuple(map(self._own, self.system.properties)))
        self.module, self.title = module_name(self.system), comment(self.system.heading)
        self.names = TlaNames({self.module})
        self.plain = simplify(self.system)
        self.variables = {v.name: self.names.new(v.name) for v in self.system.variables}
        self.claim_names = {p.name: self.names.new(p.name) for p in self.system.properties}
        self.images = Images(self.system, self.variables, self.names)
        self.writer = TlaWriter({**self.variables, **self.images.names}, self.names, self.images.tuples)
        self.actions = Actions(self.system, self.plain, self.writer)
        same = {b.next_(v.name, v.sort): b.var(v.name, v.sort) for v in self.system.variables}
        self.next_is_now = Substitution({**same, **self.images.next_is_now})
        self.fair = [text for a in self.system.actions if self.actions.of(a) for text in self.actions.fairness(a)]
        if self.system.progress is not Fairness.NONE and self.actions.groups:
            self.fair.append(atom(f"{WORDS[self.system.progress]}(Next)"))
        self.main: list[TlcClaim] = [TlcClaim(TYPES, None, Means.MISTAKE)]
        self.runs: list[TlcRun] = []
        self.left_out: list[str] = []
        self.stems = TlaNames({self.module, f"{self.module}_states"})
        self.seen: str | None = None
        self.viewed: str | None = None
        self.inside = None if self.system.constraint is None else self.names.new("Inside")

    def _own(self, prop: Property) -> Property:
        """A property with the formula as the user wrote it, which TLC checks within the constraint."""
        assert self.system.constraint is not None, "a constrained system"
        return prop if prop.formula is None else replace(prop, formula=self.system.constraint.own_formula(prop.name))

    def document(self) -> Tla:
        start, steps, about = list(self._start()), list(self._steps()), list(self._properties())
        shown = [*self._traced_state(), *self._viewed_state()]
        body = "\n".join((*self._helpers(), *start, *steps, *about, *shown))
        used = [("Integers", ""), ("Sequences", "<<"), ("FiniteSets", "Cardinality("), ("TLC", ":>")]
        sequences = any("Seq(" in type_text(v.sort) for v in self.system.variables)
        extended = [m for m, sign in used if (sequences if m == "Sequences" else sign in body)]
        text = "\n".join((*self._head(), f"EXTENDS {', '.join(extended)}", "", *self._declared(), body, "=" * 78, ""))
        main = TlcRun(self.module, self.module, "Spec", tuple(self.main), f"{self.title}: what must hold")
        states = TlcRun(
            f"{self.module}_states",
            self.module,
            "UnfairSpec",
            tuple(c for c in self.main if c.name == MISTAKE),
            f"{self.title}: counting only",
        )
        operators = {g.name: g.action.name for g in self.actions.groups}
        return Tla(
            self.module,
            {self.module: text, **self.extra},
            tuple(
                replace(
                    run,
                    constraint=self.inside,
                    alias=self.seen if run.module == self.module else None,
                    view=None if self._endless(run) else self.viewed,
                )
                for run in (main, states, *self.runs)
            ),
            self.variables,
            operators,
            tuple(self.left_out),
        )

    def _endless(self, run: TlcRun) -> bool:
        """Whether a configuration is about endless behaviours, for which TLC supports no view."""
        endless = {p.name for p in self.system.properties if p.kind in (Kind.TEMPORAL, Kind.TERMINATION)}
        return any(claim.property in endless for claim in run.claims)

    # --- the head

    def _head(self) -> Iterator[str]:
        line = f"---- MODULE {self.module} ----"
        yield line.center(78, "-")
        yield f"\\* {self.title}, {GENERATOR} export"
        yield "\\*"
        yield f"\\*   java -cp tla2tools.jar tlc2.TLC -workers 1 {self.module}.tla"
        yield f"\\*   java -cp tla2tools.jar tlc2.TLC -workers 1 -config {self.module}_states.cfg {self.module}.tla"
        yield "\\*"
        others = " Others:" if self.runs else ""
        yield f"\\* The first checks everything that must hold, the second only counts states.{others}"
        for run in self.runs:
            yield f"\\*   -config {run.name}.cfg {run.module}.tla   {comment(run.about)}"
        yield ""

    def _declared(self) -> Iterator[str]:
        yield "VARIABLES"
        last = len(self.system.variables) - 1
        for at, v in enumerate(self.system.variables):
            yield f"    \\* @type: {type_text(v.sort)};"
            yield f"    {self.variables[v.name]}{',' if at < last else ''}"
        yield ""
        yield f"vars == <<{', '.join(self.variables.values())}>>"
        yield ""

    def _helpers(self) -> Iterator[str]:
        if any("tag: Str" in type_text(v.sort) for v in self.system.variables):
            yield "\\* An option with a value, and one without, which has the same value beside its tag whatever its kind."
            yield "\\* @type: a => { tag: Str, value: a };"
            yield 'Some(given) == [tag |-> "Some", value |-> given]'
            yield "\\* @type: a => { tag: Str, value: a };"
            yield 'None(given) == [tag |-> "None", value |-> given]'
            yield ""
        if self.writer.needs:
            yield "\\* Division that rounds down, and its remainder, for divisors of either sign; 0 for a divisor of 0."
            yield "\\* @type: (Int, Int) => Int;"
            yield "FloorDiv(left, right) =="
            yield "    IF right > 0 THEN left \\div right"
            yield "    ELSE IF right < 0 THEN (-left) \\div (-right) ELSE 0"
            yield "\\* @type: (Int, Int) => Int;"
            yield "FloorMod(left, right) =="
            yield "    IF right > 0 THEN left % right"
            yield "    ELSE IF right < 0 THEN -((-left) % (-right)) ELSE 0"
            yield ""
        for name, text in self.writer.tables.found.values():
            yield from defined(name, text).lines
            yield ""

    # --- the transitions

    def _start(self) -> Iterator[str]:
        types = [belongs(atom(self.variables[v.name]), v.sort) for v in self.system.variables]
        yield from _definition(TYPES, bulleted("/\\", types), "Every variable has a value of its sort.")
        items = []
        for v in self.system.variables:
            distinct = list(dict.fromkeys(v.initial))
            if len(distinct) == 1:
                first = closed(literal(v.sort, distinct[0]), Bind.COMPUTED)
                items.append(beside(f"{self.variables[v.name]} = ", first, bind=Bind.COMPARED))
            else:
                items.append(beside(f"{self.variables[v.name]} \\in ", initial(v.sort, distinct), bind=Bind.COMPARED))
        if self.system.initially is not b.TRUE:
            condition = self.writer.ground(self.system.initially)
            items.append(beside("(", condition, ") = TRUE", bind=Bind.COMPARED))
        yield from _definition("Init", bulleted("/\\", items))

    def _steps(self) -> Iterator[str]:
        for action in self.system.actions:
            for at, group in enumerate(self.actions.of(action)):
                if at == 0 and action.doc:
                    yield from _remark(action.doc)
                for definition in self.actions.definitions(group):
                    yield from definition.lines
                yield ""
        if self.system.constraint is not None and self.inside is not None:
            limits = [closed(self.writer.ground(c.expr), Bind.COMPARED) for c in self.system.constraint.conjuncts]
            yield from _definition(self.inside, bulleted("/\\", limits), "The states whose steps are followed.")
        yield from _definition("Next", self.actions.next_step())
        yield from _definition("UnfairSpec", atom("Init /\\ [][Next]_vars"))
        if self.fair:
            yield from _definition("Fairness", bulleted("/\\", self.fair), "Fairness constraints of the actions.")
        yield from _definition("Spec", atom("UnfairSpec /\\ Fairness" if self.fair else "UnfairSpec"))
        mistakes = self.actions.mistakes()
        if mistakes:
            denied = [beside("~", closed(self._of_state(m), Bind.ATOM), bind=Bind.COMPARED) for m in mistakes]
            yield from _definition(MISTAKE, bulleted("/\\", denied), "The model makes no mistake in this state.")
            self.main.append(TlcClaim(MISTAKE, None, Means.MISTAKE))

    def _traced_state(self) -> Iterator[str]:
        """The state as traces show it: its variables, and the derived values that exist in every state."""
        total = [one for one in self.system.derived if not one.checks]
        if not total:
            return
        self.seen = self.names.new("Shown")
        parts = [atom(f"{name} |-> {name}") for name in self.variables.values()]
        for one in total:
            parts.append(beside(f"{self.names.new(one.name)} |-> ", self.writer.ground(one.expr)))
        yield from _definition(
            self.seen, separated("[", parts, "]"), "The states of traces, with their derived values."
        )

    def _viewed_state(self) -> Iterator[str]:
        """The values by which TLC identifies states."""
        if self.view is not None:
            self.viewed = self.names.new("View")
            parts = [closed(self.writer.ground(term), Bind.LOOSE) for term in self.system.values_of(self.view).values()]
            yield from _definition(
                self.viewed, separated("<<", parts, ">>"), "States with equal values are explored once."
            )

    # --- the properties

    def _properties(self) -> Iterator[str]:
        for image in self.images.images:
            yield from _definition(image.name, self.writer.ground(image.term), image.about)
        for elements, name in self.images.tuples.items():
            yield from _definition(name, atom(f"<<{elements}>>"))
        for prop, simple in zip(
            map(self.images.of, self.system.properties), map(self.images.of, self.plain.properties), strict=True
        ):
            match prop.kind:
                case Kind.INVARIANT | Kind.REACHABLE:
                    yield from self._of_states(prop, simple)
                case Kind.STEP:
                    yield from self._of_steps(prop, simple)
                case Kind.DEADLOCK:
                    yield from self._deadlock(prop)
                case Kind.TERMINATION:
                    yield from self._termination(prop)
                case Kind.TEMPORAL:
                    yield from self._temporal(prop, simple)
                case _:
                    assert_never(prop.kind)

    def _claim(self, prop: Property, name: str, means: Means, *, temporal: bool = False, idle: bool = False) -> None:
        self.main.append(TlcClaim(name, prop.name, means, temporal, idle))

    def _known(self, simple: Property) -> Assuming:
        """The condition under which the property is evaluated: its evaluation is not an error."""
        return Assuming(b.not_(c.condition) for c in simple.checks)

    def _sane(self, prop: Property, simple: Property) -> tuple[list[str], list[TlcClaim]]:
        """The definition and the claim that the evaluation of a property is no error; empty if it cannot be one."""
        wrong = fires(simple.checks)
        if wrong is b.FALSE:
            return [], []
        name = self.names.new(f"sane_{prop.name}")
        lines = self._state(name, b.not_(wrong), f"Evaluating {prop.name} is no mistake of the model.")
        return list(lines), [TlcClaim(name, prop.name, Means.MISTAKE)]

    def _state(self, name: str, expr: Expr, about: str, given: Assuming | None = None, sure: str = "") -> Iterator[str]:
        text = self._condition(expr, given)
        text = beside(sure, closed(text, Bind.COMPARED), bind=Bind.LOOSE) if sure else text
        yield from _definition(name, text, about)

    def _condition(self, expr: Expr, given: Assuming | None = None) -> Text:
        return self._of_state(self.writer.whole((expr,), given=None if given is None else [given]))

    def _of_state(self, text: Text) -> Text:
        """A state-level condition, also for constants: TLC rejects invariants equal to FALSE."""
        if text.words & {*self.writer.variables.values(), *self.actions.guard_names}:
            return text
        match text.lines:
            case ("TRUE",):
                return Text(("vars = vars",), Bind.COMPARED)
            case ("FALSE",):
                return Text(("vars # vars",), Bind.COMPARED)
            case _:
                return beside("vars = vars /\\ ", closed(text, Bind.COMPARED), bind=Bind.LOOSE)

    def _of_states(self, prop: Property, simple: Property) -> Iterator[str]:
        lines, sane = self._sane(prop, simple)
        yield from lines
        known = self._known(simple)
        # Where its evaluation is an error, the property is not constrained.
        sure = f"{sane[0].name} => " if sane else ""
        if prop.kind is Kind.INVARIANT:
            name = self.claim_names[prop.name]
            yield from self._state(name, prop.expr, prop.doc, known, sure)
            self.main += [*sane, TlcClaim(name, prop.name, Means.VIOLATED)]
            return
        name = self.names.new(f"unreached_{prop.name}")
        about = f"{prop.doc} Violated means: {prop.name} is reached."
        yield from self._state(name, b.not_(prop.expr), about.strip(), known, sure)
        self._run(prop.name, "UnfairSpec", [*sane, TlcClaim(name, prop.name, Means.REACHED)], "violated means: reached")

    def _run(self, suffix: str, specification: str, claims: Sequence[TlcClaim], about: str, module: str = "") -> None:
        module = module or self.module
        name = self.stems.new(f"{self.module}_{suffix}")
        general = (TlcClaim(TYPES, None, Means.MISTAKE), TlcClaim(MISTAKE, None, Means.MISTAKE))
        first = [c for c in general if c in self.main]
        self.runs.append(TlcRun(name, module, specification, (*first, *claims), f"{suffix}: {about}"))

    def _of_steps(self, prop: Property, simple: Property) -> Iterator[str]:
        wrong = fires(simple.checks)
        for means, name, expr, about in (
            (Means.MISTAKE, f"sane_{prop.name}", b.not_(wrong), f"Evaluating {prop.name} is no mistake of the model."),
            (Means.VIOLATED, prop.name, b.or_((wrong, prop.expr)), prop.doc),
        ):
            if means is Means.MISTAKE and wrong is b.FALSE:
                continue
            known = None if means is Means.MISTAKE else self._known(simple)
            # In parentheses: [x \in S ...] would be parsed as a function.
            text = self._condition(expr, known)
            given = self.claim_names[prop.name] if means is Means.VIOLATED else self.names.new(name)
            yield from _definition(given, beside("[][(", text, ")]_vars"), about)
            self._claim(prop, given, means, temporal=True)
            # A step without change is a step of ours, but stuttering in TLA+, so it is detected in states.
            standing = Assuming()(self.next_is_now(expr))
            if standing is not b.TRUE and self.actions.may_idle():
                still = self.names.new(f"{name}_idle")
                otherwise = closed(self._condition(standing), Bind.COMPARED)
                about = f"{name}, for steps that change nothing."
                yield from _definition(still, beside(IDLE, " => ", otherwise, bind=Bind.LOOSE), about)
                self._claim(prop, still, means, idle=True)

    def _deadlock(self, prop: Property) -> Iterator[str]:
        items = self.actions.some_enabled()
        if self.system.terminal is not None:
            items.append(self.writer.ground(self.system.terminal))
        name = self.claim_names[prop.name]
        about = prop.doc or "Something can happen, or ending here is legal."
        yield from _definition(name, self._of_state(bulleted("\\/", items) if items else atom("FALSE")), about)
        self._claim(prop, name, Means.VIOLATED)

    def _termination(self, prop: Property) -> Iterator[str]:
        name = self.claim_names[prop.name]
        claims = []
        if self.actions.may_idle():
            still = self.names.new(f"{prop.name}_idle")
            about = f"{prop.name}: no step leads from a state to itself."
            yield from _definition(still, beside("~", IDLE, bind=Bind.COMPARED), about)
            claims.append(TlcClaim(still, prop.name, Means.VIOLATED, idle=True))
        yield from _definition(name, atom("<>[][FALSE]_vars"), prop.doc)
        claims.append(TlcClaim(name, prop.name, Means.VIOLATED, temporal=True))
        if self.fair:
            self._run(prop.name, "UnfairSpec", claims, "of every behaviour, also where the scheduler is unfair")
        else:
            self.main += claims

    def _temporal(self, prop: Property, simple: Property) -> Iterator[str]:
        lines, sane = self._sane(prop, simple)
        yield from lines
        assert prop.formula is not None, "a temporal property has a formula"
        known = self._known(simple)

        def condition(expr: Expr) -> Text:
            if expr is INSIDE:
                return atom(self.inside or "")
            text = self._condition(expr, known)
            # TLC takes no variable alone as a property, and takes each part of a conjunction as one.
            alone = isinstance(formula, Atom | AndF) and isinstance(expr, e.Var)
            return beside(text, " = TRUE", bind=Bind.COMPARED) if alone else text

        def many(formulas: Sequence[Formula], text: Callable[[Formula, Callable[[Expr], Text]], Text]) -> Text | None:
            if any(leaf is INSIDE for f in formulas for leaf in leaves(f)):
                return None
            passage = WrittenPassage(self.writer, GROUND, [known])
            found = for_all(passage, [tuple((leaf,) for leaf in leaves(f)) for f in formulas])
            if found is None or len({skeleton(f) for f in formulas}) > 1:
                return None
            written = map(self._of_state, found[1])
            return beside(found[0], text(formulas[0], lambda _: next(written)), bind=Bind.LOOSE)

        def shape(formula: Formula) -> Hashable:
            conditions = [leaf for leaf in leaves(formula) if leaf is not INSIDE]
            return skeleton(formula), tuple(map(self.writer.shapes, conditions))

        name = self.claim_names[prop.name]
        formula = folded(prop.formula)
        limit = self.system.constraint
        if isinstance(formula, bool):
            inside = b.TRUE if limit is None else b.and_(c.expr for c in limit.conjuncts)
            yield from _definition(name, self._condition(b.or_((b.not_(inside), b.truth(formula)))), prop.doc)
            self.main += [*sane, TlcClaim(name, prop.name, Means.VIOLATED)]
            return
        endless_only = limit is not None and is_endless_only(formula)
        if is_direct(formula):
            formula = formula if limit is None else within(formula, Atom(INSIDE))
            yield from _definition(name, direct(formula, condition, many, shape), prop.doc)
            claim = TlcClaim(name, prop.name, Means.VIOLATED, temporal=True, endless_only=endless_only)
            self.main += [*sane, claim]
            return
        if not is_watchable(formula):
            self.left_out.append(prop.name)
            yield f"\\* {prop.name} is left out: no variable can stand for conditions on steps in until or leads to."
            yield ""
            return
        module = self.names.new(f"{self.module}_{prop.name}")
        new, title = self.names.new, comment(f"{self.title}: {prop.doc or prop.name}")
        guesses = Guesses(condition, partial(new, "until"))
        specification, self.extra[module] = watched_module(
            module, self.module, title, name, formula, guesses, new, fair=bool(self.fair)
        )
        claims = [*sane, TlcClaim(name, prop.name, Means.VIOLATED, temporal=True, endless_only=endless_only)]
        self._run(prop.name, specification, claims, "has an operator that TLA+ lacks", module)


def _remark(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip():
            yield f"\\* {comment(line)}"


def _definition(head: str, body: Text, about: str = "") -> Iterator[str]:
    yield from _remark(about)
    yield from defined(head, body).lines
    yield ""
