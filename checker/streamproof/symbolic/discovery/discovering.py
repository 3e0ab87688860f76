"""Discovery for one system: conservation laws, candidates from samples, clauses from CTIs, and the set of all states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from streamproof.base.records import dataclass
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
from streamproof.transform.scalarise import Scalarised

LAW = "conservation law"
DRIFT = "conserved by all actions but one"
MINED = "true of all explored states"
LEARNED = "excludes a counterexample to induction"
CLOSED = "the set of all explored states"

MANY = 500
"""Maximum number of candidates of a group that are tried at once; relevant further ones are learned individually."""
MINING_SECONDS = 20.0
LEARNING_SECONDS = 60.0
CLOSING_SECONDS = 60.0
BRIEFLY = 5.0
"""Time limits, in seconds, of mining and of learning, if the set of all states can be tried afterwards."""

Explored = Callable[[], Iterable[State]]
"""Returns reachable states of a system: all of them, or a sample."""


@dataclass
class Discovery:
    """The result of discovery: conditions on leaves, each with its source.

    `kept` are inductive together. `offered` are inductive only together with the properties. `refuted` are properties
    that an explored state, or a step from one, decides: an unbounded search finds the behaviour.
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
    """Searches for conditions that make the properties inductive; `known` are invariants over leaves. Raises `Stopped`.

    The set of all explored states is tried last, and only as a complete proof by itself.
    """
    # Integers, because half of the many candidates are sums, which take far longer with bit-vectors.
    encoding = Encoding(scalarised, integers=True)
    found = Discovery()
    budget.report("discovering invariants", 0, len(properties))
    states = () if explored is None else tuple(map(scalarised.encode, explored()))
    samples = Samples(scalarised.system, states) if states else None
    brief = whole and reachable_set.promising(scalarised.system, states)
    requested = goals(encoding, properties)
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
            if found.kept and enough(encoding, requested, [*known, *found.kept], budget):
                return found
    if samples is not None:
        with budget.slice(BRIEFLY if brief else LEARNING_SECONDS):
            clauses = learned(encoding, requested, [*known, *found.kept], samples, budget, found.refuted)
            found.offered = dict.fromkeys(clauses, LEARNED)
    if brief and not found.offered:
        with budget.slice(CLOSING_SECONDS):
            budget.report("trying the set of all states", 0, len(properties))
            # Bit-vectors: equations with constants and without sums give a plain SAT problem.
            bits = Encoding(scalarised)
            condition = reachable_set.member(scalarised.system, states)
            if inductive(bits, [condition], budget):
                found.kept = {condition: CLOSED}
                lost = (g.prop for g in goals(bits, properties) if not enough(bits, [g], [condition], budget))
                found.refuted.update(dict.fromkeys(lost))
    return found
