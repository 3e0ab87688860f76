"""The generated successor function: one straight pass over every action instance, guards first.

For a model of two counters it reads::

    def expand(_states, _number, _seen, _new, _parents, _edges, _hits, _limit):
     ...
     for a, b, in _states:
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import NamedTuple, TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.watch import unpacking
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Assuming
from streamproof.system.expr import Expr
from streamproof.system.model import Instance, Property, State, System
from streamproof.system.records import dataclass
from streamproof.system.substitute import Substitution

StepHit: TypeAlias = tuple[int, int, int, bool]
"""Which step property, the source's number, which instance, and whether it is a mistake in the property itself."""


class Batch(NamedTuple):
    """What one call of `expand` did."""

    expanded: int
    """How many of the given states were expanded completely."""
    generated: tuple[int, ...]
    """Successors per instance, duplicates included."""
    distinct: tuple[int, ...]
    """States met for the first time, per instance."""
    least: int
    most: int
    """Smallest and largest number of successors of a state that was expanded completely."""
    stuck: int
    """The first state without a successor that is not a legal end, or -1."""
    faulty: int
    """The state in which the model makes a mistake, or -1; expansion stopped there."""


Expand: TypeAlias = Callable[
    [Sequence[State], int, dict[State, int], list[State], "array[int]", "array[int]", list[StepHit], int],
    tuple[int, tuple[int, ...], tuple[int, ...], int, int, int, int],
]
"""Called with states, the number of the first, the table of all states, and the lists that receive new states, their
predecessors, edges and broken step properties; stops early once more than the given number of states are known.
Returns the fields of a `Batch`."""

GROUPING_LIMIT = 40
"""Nesting of shared guards in the generated source; Python's own limit on indentation is 100."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One instance as it is written: what is left of it where its guard is true."""

    number: int
    guard: tuple[Expr, ...]
    faults: Expr
    after: tuple[Expr, ...]
    changes: bool
    steps: tuple[tuple[int, Expr, Expr], ...]
    """Number, mistake and expression of each step property."""

    @property
    def roots(self) -> tuple[Expr, ...]:
        """Every term that is written for the instance."""
        return (*self.guard, self.faults, *self.after, *(term for _, *terms in self.steps for term in terms))


def rules_of(system: System, steps: Sequence[tuple[int, Property]]) -> list[Rule]:
    """Every instance of a simplified scalar system as it is written, with the numbered step properties it may break."""
    told = [(k, b.or_(check.condition for check in prop.checks), b.not_(prop.expr)) for k, prop in steps]
    unmoved = {term: term for term in _of_one_state(term for _, *terms in told for term in terms)}
    now = [b.var(v.name, v.sort) for v in system.variables]
    then = [b.next_(v.name, v.sort) for v in system.variables] if steps else []
    return [
        _rule(system, number, instance, (now, then), told, unmoved) for number, instance in enumerate(system.instances)
    ]


def _of_one_state(roots: Iterable[Expr]) -> set[Expr]:
    """The subterms of `roots` that say nothing of the next state."""
    found: set[Expr] = set()
    for term in e.subterms(*roots):
        if not isinstance(term, e.Next) and found.issuperset(e.children(term)):
            found.add(term)
    return found


def expander(
    system: System,
    steps: Sequence[tuple[int, Property]],
    *,
    edges: bool,
    canonical: Callable[[State], State] | None = None,
) -> Expand:
    """The successor function of a simplified scalar system, which checks the numbered step properties on its way.

    With `edges`, the number of each successor is appended to `_edges`, and -1 after the last one of each state. With
    `canonical`, the states are representatives, and each successor is replaced by its own; steps are checked before.
    """
    rules = rules_of(system, steps)
    live = [rule for rule in rules if b.FALSE not in rule.guard]
    faults = b.or_(check.condition for i in system.instances for check in i.guard_checks)
    writer = Writer(local_names(system))
    with writer.block("def expand(_states, _number, _seen, _new, _parents, _edges, _hits, _limit):"):
        writer.line("_put = _seen.setdefault; _add = _new.append; _parent = _parents.append; _edge = _edges.append")
        writer.line("_known = len(_seen); _first = _number; _least = 1 << 60; _most = 0; _stuck = _faulty = -1")
        for rule in live:
            writer.line(f"_g{rule.number} = _d{rule.number} = 0")
        with writer.block(f"for {unpacking(system)} in _states:"):
            writer.line("_degree = 0")
            pending = [(rule, rule.guard) for rule in live]
            common = shared([faults, *_first_questions(pending)])
            if faults is not b.FALSE:
                with writer.block(f"if {writer.term(faults, common)}:"):
                    _fail(writer)
            _rules(writer, pending, common, edges, canonical is not None)
            _finish_state(writer, b.FALSE if system.terminal is None else system.terminal, edges)
        counted = {rule.number for rule in live}
        generated, distinct = (
            "".join(f"_{letter}{rule.number}, " if rule.number in counted else "0, " for rule in rules)
            for letter in "gd"
        )
        writer.line(f"return _number - _first, ({generated}), ({distinct}), _least, _most, _stuck, _faulty")
    return cast(Expand, load("expand", system.name, writer.source, _canonical=canonical))


def _rule(
    system: System,
    number: int,
    instance: Instance,
    variables: tuple[Sequence[Expr], Sequence[Expr]],
    steps: Sequence[tuple[int, Expr, Expr]],
    unmoved: Mapping[Expr, Expr],
) -> Rule:
    """`variables`: each now and after the step; `steps`: number, mistake and negation of each step property; `unmoved`:
    what every step leaves as it is in them."""
    guard: list[Expr] = []
    here = Assuming()
    for conjunct in instance.guard:
        rest = here.assume(conjunct.expr)
        guard.extend(rest.args if isinstance(rest, e.And) else (rest,))
    updates = dict(instance.updates)
    before, then = variables
    after = [updates.get(v.name, term) for v, term in zip(system.variables, before, strict=True)]
    told: list[tuple[int, Expr, Expr]] = []
    if steps:
        step = Substitution({**unmoved, **dict(zip(then, after, strict=True))})
        told = [(k, here(step(mistake)), here(step(broken))) for k, mistake, broken in steps]
    return Rule(
        number,
        tuple(term for term in guard if term is not b.TRUE),
        b.or_(check.condition for check in instance.effect_checks),
        tuple(after),
        after != before,
        tuple((k, mistake, broken) for k, mistake, broken in told if not (mistake is broken is b.FALSE)),
    )


_Pending: TypeAlias = tuple[Rule, tuple[Expr, ...]]
"""An instance with the part of its guard that has not been asked yet."""


def _first_questions(rules: Sequence[_Pending]) -> list[Expr]:
    """What `_rules` asks first, in order; neighbours with the same question count once."""
    return [question for question, _ in groupby(guard[0] for _, guard in rules if guard)]


def _rules(writer: Writer, rules: Sequence[_Pending], leading: set[Expr], edges: bool, represent: bool) -> None:
    """Neighbours that ask the same first question are asked it once; the order of the instances is kept."""
    at = 0
    while at < len(rules):
        rule, guard = rules[at]
        end = at + 1
        while guard and end < len(rules) and rules[end][1][:1] == guard[:1]:
            end += 1
        if end > at + 1 and writer.nesting < GROUPING_LIMIT:
            with writer.block(f"if {writer.term(guard[0], leading)}:"):
                inner = [(other, rest[1:]) for other, rest in rules[at:end]]
                _rules(writer, inner, shared(_first_questions(inner)), edges, represent)
            at = end
        else:
            _write(writer, rule, guard, shared(rule.roots) | leading, edges, represent)
            at += 1


def _write(
    writer: Writer, rule: Rule, guard: tuple[Expr, ...], common: set[Expr], edges: bool, represent: bool
) -> None:
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
            parts = [writer.term(term, common) for term in rule.after]
            writer.line(f"_next = ({', '.join(parts)},)")
            if represent:  # a state that is known is a representative
                writer.line("if _next not in _seen: _next = _canonical(_next)")
            writer.line("_at = _put(_next, _known)")
            with writer.block("if _at == _known:"):
                writer.line(f"_known += 1; _add(_next); _parent(_number); _d{rule.number} += 1")
        writer.line(f"_g{rule.number} += 1; _degree += 1")
        if edges:
            writer.line(f"_edge({'_at' if rule.changes else '_number'})")
        for k, mistake, broken in rule.steps:
            wrong, lost = writer.term(mistake, common), writer.term(broken, common)
            with writer.block(f"if {wrong} or {lost}:"):
                writer.line(f"_hits.append(({k}, _number, {rule.number}, {wrong}))")


def _fail(writer: Writer) -> None:
    writer.line("_faulty = _number")
    writer.line("break")


def _finish_state(writer: Writer, terminal: Expr, edges: bool) -> None:
    with writer.block("if not _degree and _stuck < 0:"):
        allowed = writer.term(terminal, shared([terminal]))
        with writer.block(f"if not {allowed}:"):
            writer.line("_stuck = _number")
    if edges:
        writer.line("_edge(-1)")
    writer.line("if _degree < _least: _least = _degree")
    writer.line("if _degree > _most: _most = _degree")
    writer.line("_number += 1")
    writer.line("if _known > _limit: break")
