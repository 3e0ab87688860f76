"""Proofs for all behaviours of any length, with counterexamples to violated properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from streamproof.base.errors import UsageError
from streamproof.base.options import timely
from streamproof.base.records import dataclass
from streamproof.symbolic.discovery.discovering import Explored
from streamproof.symbolic.goals import candid, chosen
from streamproof.symbolic.induction import Cti
from streamproof.symbolic.portfolio import Engine, Lemma, Portfolio
from streamproof.symbolic.solver import INTERRUPTED, Effort, SolverBudget
from streamproof.system.expr import Expr
from streamproof.system.model import Property, System
from streamproof.system.verdict import CheckResult, Finding, Seconds, Verdict
from streamproof.transform.constraint import within_constraint


@dataclass(frozen=True)
class Proof(CheckResult):
    """The result of a proof attempt."""

    k: Mapping[str, int] = field(default_factory=dict)
    """The strength of the induction, for the properties proved by it."""
    lemmas: tuple[Finding, ...] = ()
    """One finding per lemma offered."""
    used: tuple[str, ...] = ()
    """The lemmas in the proofs."""
    dropped: tuple[str, ...] = ()
    """The lemmas that were not proved."""
    ctis: Mapping[str, Cti] = field(default_factory=dict)
    """The counterexamples to induction of each open property or lemma, and, under `NO_MISTAKE`, of the absence of errors."""
    confirmed: bool | None = None
    """Whether the proof was confirmed with the other integer encoding. None: not applicable, or not requested."""
    depth: int = -1
    """Depth of the search for counterexamples, in steps."""
    queries: int = 0
    strength: int = 0
    """The largest strength of induction in the proof."""
    invariant: tuple[Expr, ...] = ()
    """The discovered lemmas in the proof, as conditions on the leaves of single states, for a certificate."""
    discovered: tuple[Lemma, ...] = ()
    """The same, in the same order, in the model's terms."""
    engines: Mapping[str, Engine] = field(default_factory=dict)
    """The engine that decided each decided property."""
    reachable: int | None = None
    """The number of states, if all of them were explored as samples for discovery."""


def prove(
    system: System,
    properties: Sequence[str] | None = None,
    *,
    engine: Engine = Engine.INDUCTION,
    max_k: int = 4,
    lemmas: Sequence[Property] | None = None,
    explored: Explored | None = None,
    depth: int = 20,
    simple: bool = True,
    confirm: bool = True,
    query_limit: float | None = 60.0,
    seconds: float | None = None,
    reproducible: bool = False,
    on_progress: Callable[[Effort], None] | None = None,
) -> Proof:
    """Proves the `properties` (names; None: all) for every behaviour, by one engine or (`Engine.AUTO`) by all of them.

    Induction has strength 1 to `max_k`. `lemmas` (None: the system's own) are proved together with the properties; the
    result lists those that cannot be proved, with the reason. Discovery and PDR propose further ones, which are proved
    in the same way; `explored` returns reachable states of the system, all or a sample, and is called on demand. For
    open properties, counterexamples of up to `depth` steps are searched. `simple` restricts induction to loop-free
    fragments, which makes more claims inductive. `confirm` checks the finished proof again with the other integer
    encoding. `query_limit` limits one query, `seconds` the whole run, both in seconds; with `reproducible`, both limits
    count the solver's steps (`solver.STEPS` per second) instead of the clock, so that the result does not depend on the
    machine's load. Ctrl-C ends the run with the results so far.

    Raises `UsageError` for an unknown property, a strength below 1, a negative depth or `Engine.SEARCH` (which is
    `bmc`), `ModelError` for a lemma that is not an invariant or step property, `TooLarge` if the state has too many
    components, and `ReplayFailure` if interpreter and solver disagree.
    """
    if max_k < 1:
        raise UsageError(f"induction of strength {max_k}", remedy="choose 1 or more")
    if depth < 0:
        raise UsageError(f"a depth of {depth} steps", remedy="0 looks at the initial states only; choose 0 or more")
    if engine is Engine.SEARCH:
        raise UsageError("a search proves nothing", remedy="choose another engine, or use bmc")
    if lemmas is not None:
        system = replace(system, lemmas=tuple(lemmas))
    requested = chosen(system, properties)
    budget = SolverBudget(query_limit, seconds, on_progress, reproducible)
    with timely("preparing the proof", silent=True):
        portfolio = Portfolio(system, requested, budget, max_k=max_k, simple=simple, depth=depth, explored=explored)

    def work() -> None:
        portfolio.run(engine)
        if confirm:
            portfolio.confirm()

    budget.run("proving", work)
    if budget.stopped is not None:
        portfolio.stop(budget.stopped)
    return _answer(system, portfolio, requested, budget)


def _answer(system: System, portfolio: Portfolio, requested: tuple[Property, ...], budget: SolverBudget) -> Proof:
    """The proof object, with the results so far."""
    answers = {p: portfolio.finding(p) for p in requested}
    proofs = [attempt for _, attempt in portfolio.contributing]
    attempts = [attempt for _, attempt in portfolio.attempts]
    needed = {p for attempt in proofs for p in attempt.needed}
    found = dict.fromkeys(p for attempt in proofs for p in attempt.found if p in needed)
    shown = {p for attempt in attempts for p in attempt.proven}
    own = portfolio.first.lemmas
    confirmations = {attempt.confirmed for attempt in proofs}
    proof = Proof(
        findings=tuple(candid(system, finding) for finding, _ in answers.values()),
        stopped=budget.stopped,
        interrupted=budget.stopped == INTERRUPTED,
        seconds=Seconds(budget.elapsed, 0.0, budget.elapsed),
        k={p.name: attempt.proven[p] for attempt in reversed(proofs) for p in requested if p in attempt.proven},
        lemmas=tuple(_best([attempt.lemma(lemma) for attempt in reversed(attempts)]) for lemma in own),
        used=tuple(p.name for p in own if p in needed),
        dropped=tuple(p.name for p in own if p not in shown),
        ctis={
            name: cti
            for attempt in attempts[-1:]
            for name, cti in attempt.ctis.items()
            if name not in {p.name for p, (_, engine) in answers.items() if engine is not None}
        },
        confirmed=None if None in confirmations or not proofs else confirmations == {True},
        depth=max(attempt.depth for attempt in attempts),
        queries=budget.queries,
        strength=max((attempt.strength for attempt in proofs), default=0),
        invariant=tuple(portfolio.leaf_terms[p] for p in found),
        discovered=portfolio.reported(found),
        engines={p.name: engine for p, (_, engine) in answers.items() if engine is not None},
    )
    return within_constraint(system, proof)


def _best(findings: Sequence[Finding]) -> Finding:
    """The first finding with a verdict, or the first one."""
    return next((f for f in findings if f.verdict is not Verdict.INCONCLUSIVE), findings[0])
