"""The generated successor function: straight-line code for all action instances, guards first.

For a model of two counters it reads::

    def expand(_states, _number, _seen, _new, _parents, _edges, _hits, _limit, _steps):
     ...
     for _state in _states:
      (a, b,) = _state
      _degree = 0
      if (a < 2):
       _next = ((a + 1), b)
       _at = _put(_next, _known)
       if _at == _known: _known += 1; _add(_next); _parent(_number); d0 += 1
       g0 += 1
       _degree += 1

`_seen` maps each state to its number, in the order of discovery; numbers are dense, so the predecessors fit an array.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import NamedTuple, TypeAlias, cast

from streamproof.base.options import TUNING, Tuning
from streamproof.base.records import dataclass
from streamproof.explicit.writer import Writer, load, local_names, shared, unpacking
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance, Property, State, System
from streamproof.transform.assume import Assuming, Substitution

StepHit: TypeAlias = tuple[int, int, int, bool]
"""Number of the step property, number of the source state, number of the instance, whether it is an evaluation error."""


class Batch(NamedTuple):
    """The result of one call of `expand`."""

    expanded: int
    """Number of states that were expanded completely."""
    generated: tuple[int, ...]
    """Successors per instance, duplicates included."""
    distinct: tuple[int, ...]
    """New states, per instance."""
    least: int
    most: int
    """Smallest and largest number of successors of a state that was expanded completely."""
    stuck: int
    """The first deadlock (a state without a successor that is not terminal), or -1."""
    faulty: int
    """The state with an evaluation error of the model, or -1; expansion stopped there."""


Steps: TypeAlias = tuple["array[int]", "array[int]", "array[int]"]
"""Receives the number of each successor, the number of its instance, and the number of successors of each state."""

Expand: TypeAlias = Callable[
    [Sequence[State], int, dict[State, int], list[State], "array[int]", "array[int]", list[StepHit], int, Steps | None],
    tuple[int, tuple[int, ...], tuple[int, ...], int, int, int, int],
]
"""Called with states, the number of the first, the table of all states, the lists that receive new states, their
predecessors, edges and broken step properties; stops early once more than the given number of states are known. The last
argument receives the steps; None: steps are not recorded. Returns the fields of a `Batch`."""

GROUPING_LIMIT = 40
"""Nesting of shared guards in the generated source; Python's own limit on indentation is 100."""


Judge: TypeAlias = Callable[[State, State], int]
"""Called with a state and its successor: 0 if the step satisfies the property, 1 if not, 2 at an evaluation error."""


class StepClaim:
    """A numbered step property of a simplified scalar system, specialised for the steps of an instance.

    Specialised forms are cached: most instances leave the variables of the property unchanged and share one form.
    """

    def __init__(self, system: System, number: int, prop: Property) -> None:
        self.number = number
        self._system = system
        self._mistake, self._broken = b.or_(check.condition for check in prop.checks), b.not_(prop.expr)
        terms = set(e.subterms(self._mistake, self._broken))
        self._unmoved = {term: term for term in _of_one_state(self._mistake, self._broken)}
        self.terms_after = len(terms) - len(self._unmoved)
        """Number of terms of the next state."""
        self._then = [(at, term) for at, v in enumerate(system.variables) if (term := b.next_(v.name, v.sort)) in terms]
        self._known: dict[tuple[Expr, ...], tuple[Expr, Expr]] = {}

    def of(self, after: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Its evaluation error and its negation, as conditions on the state before a step to the values `after`."""
        values = tuple(after[at] for at, _ in self._then)
        known = self._known.get(values)
        if known is None:
            step = Substitution({**self._unmoved, **{term: after[at] for at, term in self._then}})
            known = self._known[values] = step(self._mistake), step(self._broken)
        return known

    def moved(self, before: Sequence[Expr], after: Sequence[Expr]) -> bool:
        """Whether a step between these values may change a variable whose next value the property reads."""
        return any(after[at] is not before[at] for at, _ in self._then)

    def judge(self) -> Judge:
        """A generated function that checks a step against the property."""
        variables = self._system.variables
        later = {term: b.var(f"{variables[at].name}'", variables[at].sort) for at, term in self._then}
        step = Substitution(later)
        mistake, broken = step(self._mistake), step(self._broken)
        # Subscripts, not local variables: the first conjunct often decides, and reads few variables.
        writer = Writer(
            {v.name: f"_state[{at}]" for at, v in enumerate(variables)}
            | {f"{variables[at].name}'": f"_next[{at}]" for at, _ in self._then}
        )
        common = shared((mistake, broken))
        with writer.block("def judge(_state, _next):"):
            if mistake is not b.FALSE:
                with writer.block(f"if {writer.term(mistake, common)}:"):
                    writer.line("return 2")
            excuses = (
                broken.arg.args if isinstance(broken, e.Not) and isinstance(broken.arg, e.Or) else (b.not_(broken),)
            )
            for excuse in excuses:
                with writer.block(f"if {writer.term(excuse, common)}:"):
                    writer.line("return 0")
            writer.line("return 1")
        return cast(Judge, load("judge", self._system.name, writer.source))


def _of_one_state(*roots: Expr) -> Iterable[Expr]:
    """The subterms of `roots` that do not read the next state."""
    found: set[Expr] = set()
    for term in e.subterms(*roots):
        if not isinstance(term, e.Next) and found.issuperset(e.children(term)):
            found.add(term)
    return found


@dataclass(frozen=True, slots=True)
class Rule:
    """The form of an instance for code generation, simplified under its guard."""

    number: int
    guard: tuple[Expr, ...]
    faults: Expr
    after: tuple[Expr, ...]
    changes: bool
    steps: tuple[tuple[int, Expr, Expr], ...]
    """Number, evaluation error and negation of each step property."""
    apart: tuple[int, ...]
    """Numbers of the step properties that are evaluated by a function."""

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All terms in the code of the instance."""
        return (*self.guard, self.faults, *self.after, *(term for _, *terms in self.steps for term in terms))


def rules_of(system: System, steps: Sequence[tuple[int, Property]], *, apart: int | None = None) -> list[Rule]:
    """The rules of all instances of a simplified scalar system, with the numbered step properties that each may break.

    `apart`: properties with more terms of the next state are evaluated by a function of their own for most instances.
    """
    now = [b.var(v.name, v.sort) for v in system.variables]
    claims = [StepClaim(system, number, prop) for number, prop in steps]
    return [_rule(system, number, i, now, claims, apart) for number, i in enumerate(system.instances)]


def expander(
    system: System,
    steps: Sequence[tuple[int, Property]],
    *,
    edges: bool,
    graph: bool = False,
    canonical: Callable[[State], State] | None = None,
    tuning: Tuning = TUNING,
    judges: dict[int, Judge] | None = None,
) -> Expand:
    """The successor function of a simplified scalar system; it also checks the numbered step properties.

    With `edges`, it appends the number of each successor to `_edges`, and -1 after the last one of each state. With `graph`,
    it can also record the steps. With `canonical`, states are canonical representatives; each successor is replaced by its
    representative after its step is checked. `judges` keeps the functions of step properties for further calls.
    """
    rules = rules_of(system, steps, apart=tuning.large_property)
    live = [rule for rule in rules if b.FALSE not in rule.guard]
    faults = b.or_(check.condition for i in system.instances for check in i.guard_checks)
    writer = Writer(local_names(system))
    style = _Style(tuple(b.var(v.name, v.sort) for v in system.variables), edges, graph, canonical is not None, tuning)
    with writer.block("def expand(_states, _number, _seen, _new, _parents, _edges, _hits, _limit, _steps):"):
        writer.line("_put = _seen.setdefault; _add = _new.append; _parent = _parents.append; _edge = _edges.append")
        writer.line("_known = len(_seen); _first = _number; _least = 1 << 60; _most = 0; _stuck = _faulty = -1")
        for rule in live:
            writer.line(f"_g{rule.number} = _d{rule.number} = 0")
        if graph:
            with writer.block("if _steps:"):
                writer.line("_target, _instance, _degrees = (one.append for one in _steps)")
        with writer.block("for _state in _states:"):
            writer.line(f"{unpacking(system)} = _state")
            writer.line("_degree = 0")
            pending = [(rule, rule.guard) for rule in live]
            common = shared([faults, *_leading_conjuncts(pending)])
            if faults is not b.FALSE:
                with writer.block(f"if {writer.term(faults, common)}:"):
                    _fail(writer)
            _rules(writer, pending, common, style)
            _finish_state(writer, b.FALSE if system.terminal is None else system.terminal, style)
        counted = {rule.number for rule in live}
        generated, distinct = (
            "".join(f"_{letter}{rule.number}, " if rule.number in counted else "0, " for rule in rules)
            for letter in "gd"
        )
        writer.line(f"return _number - _first, ({generated}), ({distinct}), _least, _most, _stuck, _faulty")
    called = {number for rule in live for number in rule.apart}
    judges = {} if judges is None else judges
    judges.update({k: StepClaim(system, k, prop).judge() for k, prop in steps if k in called and k not in judges})
    named = {f"_judge{k}": judges[k] for k in called}
    return cast(Expand, load("expand", system.name, writer.source, _canonical=canonical, **named))


def _rule(
    system: System,
    number: int,
    instance: Instance,
    before: Sequence[Expr],
    claims: Sequence[StepClaim],
    apart: int | None,
) -> Rule:
    """The rule of an instance; `before` has the variables of the system."""
    guard: list[Expr] = []
    here = Assuming()
    for conjunct in instance.guard:
        rest = here.assume(conjunct.expr)
        guard.extend(rest.args if isinstance(rest, e.And) else (rest,))
    updates = dict(instance.updates)
    after = [updates.get(v.name, term) for v, term in zip(system.variables, before, strict=True)]
    large = [claim for claim in claims if apart is not None and claim.terms_after > apart]
    called = [claim.number for claim in large if claim.moved(before, after)]
    specialised: list[tuple[int, Expr, Expr]] = []
    for claim in claims:
        if claim.number not in called:
            mistake, broken = claim.of(after)
            specialised.append((claim.number, here(mistake), here(broken)))
    return Rule(
        number,
        tuple(term for term in guard if term is not b.TRUE),
        b.or_(check.condition for check in instance.effect_checks),
        tuple(after),
        after != before,
        tuple((k, mistake, broken) for k, mistake, broken in specialised if not (mistake is broken is b.FALSE)),
        tuple(called),
    )


PendingRule: TypeAlias = tuple[Rule, tuple[Expr, ...]]
"""A rule with the conjuncts of its guard that are not tested yet."""


def grouped(rules: Sequence[PendingRule]) -> Iterator[tuple[Expr | None, list[PendingRule]]]:
    """The rules in order: adjacent ones with the same leading conjunct, without it; each other one alone, after None."""
    for leading, members in groupby(rules, lambda pending: pending[1][:1]):
        group = list(members)
        if leading and len(group) > 1:
            yield leading[0], [(rule, guard[1:]) for rule, guard in group]
        else:
            yield from ((None, [pending]) for pending in group)


def _leading_conjuncts(rules: Sequence[PendingRule]) -> list[Expr]:
    """The first untested conjuncts, in order; adjacent equal ones count once."""
    return [conjunct for conjunct, _ in groupby(guard[0] for _, guard in rules if guard)]


@dataclass(frozen=True, slots=True)
class _Style:
    """The `variables` of a state, and the options of `expander`."""

    variables: tuple[Expr, ...]
    edges: bool
    graph: bool
    represent: bool
    tuning: Tuning


def _rules(writer: Writer, rules: Sequence[PendingRule], leading: set[Expr], style: _Style) -> None:
    """Write the rules in order; adjacent rules with the same leading conjunct share one test of it."""
    for first, inner in grouped(rules):
        if first is not None and writer.nesting < GROUPING_LIMIT:
            with writer.block(f"if {writer.term(first, leading)}:"):
                _rules(writer, inner, shared(_leading_conjuncts(inner)), style)
        else:
            for rule, rest in inner:
                guard = rest if first is None else (first, *rest)
                _write(writer, rule, guard, shared(rule.roots) | leading, style)


def _write(writer: Writer, rule: Rule, guard: tuple[Expr, ...], common: set[Expr], style: _Style) -> None:
    with ExitStack() as blocks:
        texts: list[str] = []
        for condition in guard:
            if texts and writer.nesting < 2 * GROUPING_LIMIT and writer.needs_lines(condition, common):
                blocks.enter_context(writer.block(f"if {' and '.join(texts)}:"))
                texts = []
            texts.append(writer.term(condition, common))
        if texts:
            blocks.enter_context(writer.block(f"if {' and '.join(texts)}:"))
        if rule.faults is not b.FALSE:
            with writer.block(f"if {writer.term(rule.faults, common)}:"):
                _fail(writer)
        if rule.changes:
            writer.line(f"_next = {_display(writer, rule, common, style)}")
            if style.represent:  # a state that is known is a representative
                writer.line("if _next not in _seen: _next = _canonical(_next)")
            writer.line("_at = _put(_next, _known)")
            with writer.block("if _at == _known:"):
                writer.line(f"_known += 1; _add(_next); _parent(_number); _d{rule.number} += 1")
        writer.line(f"_g{rule.number} += 1; _degree += 1")
        target = "_at" if rule.changes else "_number"
        if style.edges:
            writer.line(f"_edge({target})")
        if style.graph:
            writer.line(f"if _steps: _target({target}); _instance({rule.number})")
        for k, mistake, broken in rule.steps:
            wrong, lost = writer.term(mistake, common), writer.term(broken, common)
            with writer.block(f"if {wrong} or {lost}:"):
                writer.line(f"_hits.append(({k}, _number, {rule.number}, {wrong}))")
        for k in rule.apart:
            writer.line(f"_broken = _judge{k}(_state, _next)")
            writer.line(f"if _broken: _hits.append(({k}, _number, {rule.number}, _broken > 1))")


def _display(writer: Writer, rule: Rule, common: set[Expr], style: _Style) -> str:
    """The tuple display of the next state."""
    text: list[str] = []
    at = 0
    for same, run in groupby(zip(rule.after, style.variables, strict=True), lambda pair: pair[0] is pair[1]):
        terms = [term for term, _ in run]
        if same and len(terms) >= style.tuning.copied_variables:
            text.append(f"*_state[{at}:{at + len(terms)}]")
        else:
            text += [writer.term(term, common) for term in terms]
        at += len(terms)
    return f"({', '.join(text)},)"


def _fail(writer: Writer) -> None:
    writer.line("_faulty = _number")
    writer.line("break")


def _finish_state(writer: Writer, terminal: Expr, style: _Style) -> None:
    with writer.block("if not _degree and _stuck < 0:"):
        allowed = writer.term(terminal, shared([terminal]))
        with writer.block(f"if not {allowed}:"):
            writer.line("_stuck = _number")
    if style.edges:
        writer.line("_edge(-1)")
    if style.graph:
        writer.line("if _steps: _degrees(_degree)")
    writer.line("if _degree < _least: _least = _degree")
    writer.line("if _degree > _most: _most = _degree")
    writer.line("_number += 1")
    writer.line("if _known > _limit: break")
