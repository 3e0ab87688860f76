"""Proofs for all behaviours, however long, with counterexamples where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from streamproof import interrupts
from streamproof.symbolic.discovery import Explored
from streamproof.symbolic.goals import candid, chosen
from streamproof.symbolic.induction import Cti
from streamproof.symbolic.portfolio import Engine, Lemma, Portfolio
from streamproof.symbolic.solver import INTERRUPTED, Effort, SolverBudget, Stopped
from streamproof.system.errors import UsageError
from streamproof.system.expr import Expr
from streamproof.system.model import Property, System
from streamproof.system.records import dataclass
from streamproof.system.timely import timely
from streamproof.system.verdict import CheckResult, Finding, Seconds, Verdict


@dataclass(frozen=True)
class Proof(CheckResult):
    """What an attempt to prove answers."""

    k: Mapping[str, int] = field(default_factory=dict)
    """The strength of induction that proved a property, for those that it proved."""
    lemmas: tuple[Finding, ...] = ()
    """One finding per lemma offered."""
    used: tuple[str, ...] = ()
    """The lemmas that the proofs rest on."""
    dropped: tuple[str, ...] = ()
    """Those that could not be shown."""
    ctis: Mapping[str, Cti] = field(default_factory=dict)
    """For each property or lemma left open, and under `NO_MISTAKE`, why it is not inductive."""
    confirmed: bool | None = None
    """Whether the whole proof was checked a second time, with the other kind of numbers. None: there was nothing to check,
    or it was not asked for."""
    depth: int = -1
    """Steps that the search for counterexamples covered."""
    queries: int = 0
    strength: int = 0
    """The strongest induction that any part of it takes."""
    invariant: tuple[Expr, ...] = ()
    """What was found beside the lemmas and is needed: conditions on the leaves of single states, for a certificate."""
    discovered: tuple[Lemma, ...] = ()
    """The same, in the same order, in the model's terms."""
    engines: Mapping[str, Engine] = field(default_factory=dict)
    """Which engine decided a property, for those decided."""
    reachable: int | None = None
    """How many states there are, where all of them were explored as evidence for discovery."""


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
    timeout: int | None = 60_000,
    seconds: float | None = None,
    reproducible: bool = False,
    on_progress: Callable[[Effort], None] | None = None,
) -> Proof:
    """Prove the `properties` (names; None: all) for every behaviour, by an engine or (`Engine.AUTO`) by all of them.

    Induction is of strength 1 to `max_k`. `lemmas` (None: the system's own) are claims offered as help. They are proved
    too, together with the properties; one that cannot be proved is dropped, and the answer says which and shows why.
    Discovery and PDR propose further ones, which are proved in the same way; for discovery, `explored` gives reachable
    states of the system, all or some, and is called when they are needed. What stays open is searched for counterexamples
    of up to `depth` steps. `simple` restricts induction to loop-free fragments, which makes more claims inductive.
    `confirm` checks the finished proof again with other arithmetic. `timeout` bounds one query, in milliseconds, `seconds`
    the whole run; with `reproducible`, both are of the solver's own count of steps (`solver.STEPS` to a second) instead of
    the clock's, so that no other load on the machine changes an answer. Ctrl-C ends the run with what is known.

    Raises `UsageError` for an unknown property, a strength below 1, a negative depth or `Engine.SEARCH` (which is `bmc`),
    `ModelError` for a lemma that is no invariant, `TooLarge` where the state has too many parts, and `ReplayFailure` where
    interpreter and solver disagree.
    """
    if max_k < 1:
        raise UsageError(f"induction of strength {max_k}", remedy="choose 1 or more")
    if depth < 0:
        raise UsageError(f"a depth of {depth} steps", remedy="0 looks at the initial states only; choose 0 or more")
    if engine is Engine.SEARCH:
        raise UsageError("a search proves nothing", remedy="choose another engine, or use bmc")
    if lemmas is not None:
        system = replace(system, lemmas=tuple(lemmas))
    asked = chosen(system, properties)
    budget = SolverBudget(timeout, seconds, on_progress, reproducible)
    with timely("preparing the proof", silent=True):
        portfolio = Portfolio(system, asked, budget, max_k=max_k, simple=simple, depth=depth, explored=explored)
    stopped: str | None = None
    try:
        with interrupts.limited(None if reproducible else seconds), interrupts.doing("proving"):
            portfolio.run(engine)
            if confirm:
                portfolio.confirm()
    except Stopped as stop:
        stopped = stop.why
    except interrupts.TimeUp:
        stopped = budget.out_of_time().why
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    if stopped is not None:
        portfolio.stop(stopped)
    return _answer(system, portfolio, asked, budget, stopped)


def _answer(
    system: System, portfolio: Portfolio, asked: tuple[Property, ...], budget: SolverBudget, stopped: str | None
) -> Proof:
    """What was found, so far as it was found."""
    answers = {p: portfolio.finding(p) for p in asked}
    proofs = [attempt for _, attempt in portfolio.contributing]
    attempts = [attempt for _, attempt in portfolio.attempts]
    needed = {p for attempt in proofs for p in attempt.needed}
    found = dict.fromkeys(p for attempt in proofs for p in attempt.found if p in needed)
    shown = {p for attempt in attempts for p in attempt.proven}
    own = portfolio.first.lemmas
    confirmations = {attempt.confirmed for attempt in proofs}
    return Proof(
        findings=tuple(candid(system, finding) for finding, _ in answers.values()),
        stopped=stopped,
        interrupted=stopped == INTERRUPTED,
        seconds=Seconds(budget.elapsed, 0.0, budget.elapsed),
        k={p.name: attempt.proven[p] for attempt in reversed(proofs) for p in asked if p in attempt.proven},
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
        discovered=portfolio.told(found),
        engines={p.name: engine for p, (_, engine) in answers.items() if engine is not None},
    )


def _best(findings: Sequence[Finding]) -> Finding:
    """The first that decides, or the first."""
    return next((f for f in findings if f.verdict is not Verdict.INCONCLUSIVE), findings[0])
