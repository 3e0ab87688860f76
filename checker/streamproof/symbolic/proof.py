"""Proofs for all behaviours, however long: k-induction, with counterexamples where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from streamproof.symbolic.bmc import nothing, so_far, verdict
from streamproof.symbolic.certificate import confirms
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import chosen, finding, goals, offered
from streamproof.symbolic.induction import Claim, Cti, Round
from streamproof.symbolic.portfolio import Portfolio
from streamproof.symbolic.search import Search
from streamproof.symbolic.solver import INTERRUPTED, Budget, Effort, Stopped
from streamproof.system.errors import UsageError
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, Property, System
from streamproof.system.scalarise import scalarise
from streamproof.system.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True)
class Proof:
    """What an attempt to prove answers.

    `findings`: one per property asked for. `k`: the strength of induction that proved it, for those it proved.
    `lemmas`: one finding per lemma offered, `used`: the lemmas that the proofs rest on, `dropped`: those that could not
    be shown. `ctis`: for each property or lemma left open, and under `NO_MISTAKE`, why it is not inductive.
    `confirmed`: whether the whole proof was checked a second time, over integers (None: there was nothing to check, or
    it was not asked for). `depth`: steps that the search for counterexamples covered. `interrupted`: the user ended it.
    """

    findings: tuple[Finding, ...]
    k: Mapping[str, int]
    lemmas: tuple[Finding, ...]
    used: tuple[str, ...]
    dropped: tuple[str, ...]
    ctis: Mapping[str, Cti]
    confirmed: bool | None
    depth: int
    queries: int
    seconds: float
    interrupted: bool = False
    strength: int = 0
    """The strongest induction that any part of it takes."""
    invariant: tuple[Expr, ...] = ()
    """What was found beside the lemmas and is needed: conditions on the leaves of single states, for a certificate."""


def prove(
    system: System,
    properties: Sequence[str] | None = None,
    *,
    max_k: int = 4,
    lemmas: Sequence[Property] | None = None,
    depth: int = 20,
    simple: bool = True,
    confirm: bool = True,
    timeout: int | None = 60_000,
    seconds: float | None = None,
    on_progress: Callable[[Effort], None] | None = None,
) -> Proof:
    """Prove the `properties` (names; None: all) for every behaviour, by induction of strength 1 to `max_k`.

    `lemmas` (None: the system's own) are claims offered as help. They are proved too, together with the properties; one
    that cannot be proved is dropped, and the answer says which and shows why. What stays open is searched for
    counterexamples of up to `depth` steps. `simple` restricts induction to loop-free fragments, which makes more claims
    inductive. `confirm` checks the finished proof again with other arithmetic. `timeout` bounds one query, in
    milliseconds, `seconds` the whole run. Ctrl-C ends the run with what is known.

    Raises `UsageError` for an unknown property, a strength below 1 or a negative depth, `ModelError` for a lemma that is
    no invariant, `TooLarge` where the state has too many parts, and `ReplayFailure` where interpreter and solver disagree.
    """
    if max_k < 1:
        raise UsageError(f"induction of strength {max_k}", remedy="choose 1 or more")
    if depth < 0:
        raise UsageError(f"a depth of {depth} steps", remedy="0 looks at the initial states only; choose 0 or more")
    if lemmas is not None:
        system = replace(system, lemmas=tuple(lemmas))
    attempt = _Attempt(system, chosen(system, properties), Budget(timeout, seconds, on_progress))
    try:
        attempt.induct(max_k, simple=simple)
        attempt.look_for_counterexamples(depth)
        if confirm:
            attempt.confirm()
    except Stopped as stop:
        attempt.stopped = stop.why
    except KeyboardInterrupt:
        attempt.stopped = INTERRUPTED
    return attempt.answer()


class _Attempt:
    """The state of one attempt to prove."""

    def __init__(self, system: System, asked: tuple[Property, ...], budget: Budget) -> None:
        self._asked = asked
        self._lemmas = offered(system, asked)
        self._budget = budget
        self._scalarised = scalarise(system)
        encoding = Encoding(self._scalarised)
        every = (*asked, *self._lemmas)
        self._search = Search(encoding, goals(encoding, every), budget)
        self._portfolio = Portfolio(encoding, every, budget)
        self._rounds: list[Round] = []
        self._proven: dict[Property, int] = {}
        self._rests_on: dict[Claim, frozenset[Property]] = {}
        self._ctis: dict[Claim, Cti] = {}
        self._unknown: set[Claim] = set()
        self._safe = False
        self._confirmed: bool | None = None
        self.stopped: str | None = None

    def induct(self, max_k: int, *, simple: bool) -> None:
        """Rounds of rising strength, until nothing is open. Raises `Stopped`."""
        for k in range(1, max_k + 1):
            self._search.to(k - 1)
            if self._search.over or not self._wanted():
                return
            candidates = [p for p in self._search.open if p not in self._proven]
            self._record(
                self._portfolio.round(k, candidates, tuple(self._proven), safe=self._safe, simple=simple and k > 1)
            )

    def _record(self, result: Round) -> None:
        self._rounds.append(result)
        self._ctis.update(result.ctis)
        self._unknown = result.unknown
        self._rests_on.update(result.rests_on)
        self._proven.update(dict.fromkeys(result.proven, result.k))
        self._safe = result.safe
        if self._safe:
            self._search.settle(self._proven, true=True)

    def look_for_counterexamples(self, depth: int) -> None:
        """Search for what would decide the properties that are still open. Raises `Stopped`."""
        if self._wanted() and not self._search.over:
            self._search.settle(self._lemmas, true=False)
            self._search.to(depth)
            self._search.close()

    def confirm(self) -> None:
        """Have the proof checked again. Raises `Stopped`."""
        if self._safe and any(p in self._proven for p in self._asked):
            self._confirmed = False
            self._confirmed = confirms(self._scalarised, self._rounds, self._budget)

    def _wanted(self) -> bool:
        """Whether a property asked for is open; up to the first mistake proved is open, as long as there may be one."""
        return any(p in self._search.open for p in self._asked)

    # --- the answer --------------------------------------------------------------------------------------------------

    def answer(self) -> Proof:
        """What was found, so far as it was found."""
        proven = self._proven if self._safe else {}
        needed = {p for claim in self._asked if claim in proven for p in self._needs(claim)}
        before = [False, *(r.safe for r in self._rounds)][:-1] if self._rounds else []
        settled = {*proven, *self._search.findings, *([None] if self._safe else [])}
        return Proof(
            tuple(self._finding(p) for p in self._asked),
            {p.name: proven[p] for p in self._asked if p in proven},
            tuple(self._lemma(p) for p in self._lemmas),
            tuple(p.name for p in self._lemmas if p in needed),
            tuple(p.name for p in self._lemmas if p not in proven),
            {cti.of: cti for claim, cti in self._ctis.items() if claim not in settled},
            self._confirmed,
            self._search.depth,
            self._budget.queries,
            self._budget.elapsed,
            self.stopped == INTERRUPTED,
            max((r.k for r, safe in zip(self._rounds, before, strict=True) if r.proven or r.safe > safe), default=0),
        )

    def _needs(self, claim: Property) -> set[Property]:
        """Everything that the proof of a claim rests on, directly or not, the absence of mistakes included."""
        found: set[Property] = set()
        pending = [*self._rests_on.get(claim, ()), *self._rests_on.get(None, ())]
        while pending:
            support = pending.pop()
            if support not in found:
                found.add(support)
                pending += self._rests_on.get(support, ())
        return found

    def _finding(self, prop: Property) -> Finding:
        if prop in self._proven and self._safe:
            return self._proved(prop)
        found = verdict(self._search, prop, self.stopped)
        tried = prop in self._proven or prop in self._ctis or prop in self._unknown
        if (
            found.verdict is not Verdict.INCONCLUSIVE
            or not tried
            or prop in self._search.given_up
            or self._search.blind
        ):
            return found
        early = "" if self.stopped is None else f"{self.stopped}: "
        because = f"{early}{nothing(prop)} in {so_far(self._search.depth)}{self._why_open(prop, self._rounds[-1].k)}"
        return replace(found, because=because)

    def _proved(self, prop: Property) -> Finding:
        because = f"by k-induction, k={self._proven[prop]}, for this instance"
        needs = self._needs(prop)
        lemmas = [p.name for p in self._lemmas if p in needs]
        if lemmas:
            because += f", with {'lemma' if len(lemmas) == 1 else 'lemmas'} {', '.join(lemmas)}"
        if self._confirmed:
            because += "; confirmed by a second procedure"
        if prop.kind is Kind.REACHABLE:
            return finding(prop, Verdict.VIOLATED, f"true in no reachable state, {because}")
        return finding(prop, Verdict.HOLDS, because)

    def _why_open(self, prop: Property, k: int) -> str:
        lemma = "add a lemma that excludes the first state of the counterexample to induction, raise k, or use check"
        claim: Claim = prop
        text = f", but not inductive up to k={k}: {lemma}"
        if prop in self._proven:
            claim = None
            why = self._ctis[None].because.splitlines()[0] if None in self._ctis else ""
            text = (
                f", nor, by induction, before the model's first mistake; up to k={k} it may make one ({why}): {lemma}"
            )
        if claim in self._unknown:
            return "; the solver gave up on induction: raise the timeout, add a lemma, or use check"
        return text

    def _lemma(self, lemma: Property) -> Finding:
        if lemma in self._proven:
            because = f"by k-induction, k={self._proven[lemma]}, for this instance"
            if self._safe:
                return finding(lemma, Verdict.HOLDS, because)
            return finding(lemma, Verdict.INCONCLUSIVE, f"true up to the model's first mistake, {because}")
        if lemma in self._search.findings:
            return self._search.findings[lemma]
        if lemma in self._unknown:
            return finding(lemma, Verdict.INCONCLUSIVE, "the solver gave up on it: raise the timeout")
        if lemma in self._ctis:
            cti = self._ctis[lemma]
            return finding(
                lemma, Verdict.INCONCLUSIVE, f"not inductive of strength {cti.k}: {cti.because.splitlines()[0]}"
            )
        return finding(lemma, Verdict.INCONCLUSIVE, "the attempt ended before it was tried")
