"""All that discovery offers for one system: laws, what states show, clauses from counterexamples to induction, all states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from streamproof.symbolic.discovery import reachable_set
from streamproof.symbolic.discovery.houdini import inductive
from streamproof.symbolic.discovery.laws import Books
from streamproof.symbolic.discovery.learning import enough, learned
from streamproof.symbolic.discovery.mining import mined
from streamproof.symbolic.discovery.samples import Samples
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import goals
from streamproof.symbolic.solver import SolverBudget
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State
from streamproof.system.records import dataclass
from streamproof.system.scalarise import Scalarised

LAW = "conservation law"
DRIFT = "conserved by all actions but one"
MINED = "true of all explored states"
LEARNED = "excludes a counterexample to induction"
CLOSED = "the set of all explored states"

MANY = 500
"""Candidates of one group that are tried at once: of the others, those that matter are learned one by one."""
MINING_SECONDS = 20.0
LEARNING_SECONDS = 60.0
CLOSING_SECONDS = 60.0
BRIEFLY = 5.0
"""Seconds for mining, and for learning, where the set of all states can be tried afterwards."""

Explored = Callable[[], Iterable[State]]
"""Gives reachable states of a system: all of them, or as many as may be had."""


@dataclass
class Discovery:
    """What was found, each condition on leaves with where it comes from.

    `kept` are inductive together. `offered` are not, alone: the claims need them, and they the claims. `refuted` are
    properties that an explored state, or a step from one, decides: to be found by a search, however deep.
    """

    kept: dict[Expr, str] = field(default_factory=dict)
    offered: dict[Expr, str] = field(default_factory=dict)
    refuted: dict[Property, None] = field(default_factory=dict)


def discover(
    scalarised: Scalarised,
    properties: Sequence[Property],
    explored: Explored | None,
    budget: SolverBudget,
    known: Sequence[Expr] = (),
    *,
    whole: bool = True,
) -> Discovery:
    """Look for what makes the properties inductive; `known` are invariants, conditions on leaves. Raises `Stopped`.

    The set of all explored states is tried last, and only as a `whole` answer.
    """
    # Integers: candidates are many, and half of them sums, which take bit-vectors far longer.
    encoding = Encoding(scalarised, integers=True)
    found = Discovery()
    budget.tell("discovering invariants", 0, len(properties))
    states = () if explored is None else tuple(map(scalarised.encode, explored()))
    samples = Samples(scalarised.system, states) if states else None
    brief = whole and reachable_set.promising(scalarised.system, states)
    asked = goals(encoding, properties)
    books = Books(scalarised.system)
    groups = [tuple((law.claim, LAW) for law in books.kept() if law.claim is not None)]
    bounds = tuple(condition for law in books.drifting() for condition in law.bounds)
    groups.append(tuple((c, DRIFT) for c in bounds[:MANY]))
    if samples is not None:
        groups += [tuple((c, MINED) for c in group[:MANY]) for group in mined(samples)]
    for group in groups:
        with budget.slice(BRIEFLY if brief else MINING_SECONDS):
            origin = found.kept | {c: source for c, source in group if samples is None or samples.all_satisfy(c)}
            found.kept = {c: origin[c] for c in inductive(encoding, list(origin), budget, known)}
            if found.kept and enough(encoding, asked, [*known, *found.kept], budget):
                return found
    if samples is not None:
        with budget.slice(BRIEFLY if brief else LEARNING_SECONDS):
            answer = learned(encoding, asked, [*known, *found.kept], samples, budget, found.refuted)
            found.offered = dict.fromkeys(answer.clauses, LEARNED)
    if brief and not found.offered:
        with budget.slice(CLOSING_SECONDS):
            budget.tell("trying the set of all states", 0, len(properties))
            # Bit-vectors: of an equation for each value, and no sums, they make a plain SAT question.
            bits = Encoding(scalarised)
            condition = reachable_set.member(scalarised.system, states)
            if inductive(bits, [condition], budget):
                found.kept = {condition: CLOSED}
                lost = (g.prop for g in goals(bits, properties) if not enough(bits, [g], [condition], budget))
                found.refuted.update(dict.fromkeys(lost))
    return found
