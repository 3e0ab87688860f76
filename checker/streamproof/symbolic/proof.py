"""Proofs for all behaviours, however long: k-induction, with counterexamples where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from streamproof.symbolic.bmc import so_far, verdict
from streamproof.symbolic.certificate import Round, confirms
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import Goal, chosen, goals, lemma_goals
from streamproof.symbolic.induction import Cti, Induction
from streamproof.symbolic.search import Search
from streamproof.symbolic.solver import INTERRUPTED, Budget, Effort, Stopped
from streamproof.system.errors import UsageError
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
    integers: bool = False,
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
    attempt = _Attempt(system, chosen(system, properties), Budget(timeout, seconds, on_progress), integers)
    try:
        attempt.induct(max_k, simple=simple)
        attempt.look_for_counterexamples(depth)
        if confirm:
            attempt.confirm()
    except Stopped as stop:
        attempt.stopped = stop.why
    except KeyboardInterrupt:
        attempt.stopped = INTERRUPTED
    return attempt.answer(max_k)


_CONFIRM_TIMEOUT = 10_000
"""Milliseconds that one query of the second opinion may take: it must not cost more than the proof."""


class _Attempt:
    """The state of one attempt to prove."""

    def __init__(self, system: System, asked: tuple[Property, ...], budget: Budget, integers: bool) -> None:
        self._asked = asked
        self._budget = budget
        self._encoding = Encoding(scalarise(system), integers=integers)
        self._claims = goals(self._encoding, asked)
        self._lemmas = lemma_goals(self._encoding, asked)
        self._search = Search(self._encoding, (*self._claims, *self._lemmas), budget)
        self._rounds: list[Round] = []
        self._proven: dict[Goal, int] = {}
        self._rests_on: dict[Goal | None, frozenset[Goal]] = {}
        self._ctis: dict[Goal | None, Cti] = {}
        self._unknown: set[Goal | None] = set()
        self._safe = False
        self._confirmed: bool | None = None
        self.stopped: str | None = None

    def induct(self, max_k: int, *, simple: bool) -> None:
        """Rounds of rising strength, until nothing is open. Raises `Stopped`."""
        induction = Induction(self._encoding, self._budget, simple=simple)
        for k in range(1, max_k + 1):
            self._search.to(k - 1)
            if self._search.over or not self._open():
                return
            candidates = [g for g in self._search.open if g not in self._proven]
            result = induction.round(k, candidates, tuple(self._proven), safe=self._safe)
            self._ctis.update(result.ctis)
            self._unknown |= result.unknown
            self._rests_on.update(result.rests_on)
            self._proven.update(dict.fromkeys(result.proven, k))
            newly_safe = result.safe and not self._safe
            self._rounds.append(Round(k, tuple(g.prop for g in result.proven), newly_safe, simple and k > 1))
            self._safe = result.safe
            if self._safe:
                self._search.settle(self._proven)

    def look_for_counterexamples(self, depth: int) -> None:
        """Search for what would decide the properties that are still open. Raises `Stopped`."""
        if self._open() and not self._search.over:
            self._search.settle(self._lemmas)
            self._search.to(depth)
            self._search.close()

    def confirm(self) -> None:
        """Check the proof again over the other kind of numbers. Raises `Stopped`."""
        if self._safe and any(g in self._proven for g in self._claims):
            self._confirmed = False
            timeout = min(self._budget.timeout or _CONFIRM_TIMEOUT, _CONFIRM_TIMEOUT)
            again = replace(self._budget, timeout=timeout)
            try:
                self._confirmed = confirms(self._encoding, self._rounds, again)
            finally:
                self._budget.queries = again.queries

    def answer(self, max_k: int) -> Proof:
        """What was found, so far as it was found."""
        findings = tuple(self._finding(prop, max_k) for prop in self._asked)
        lemmas = tuple(self._lemma(goal) for goal in self._lemmas)
        proven = {g: k for g, k in self._proven.items() if self._safe}
        needed = {g for claim in self._claims if claim in proven for g in self._needs(claim)}
        settled = {*self._proven, *self._search.findings, *([None] if self._safe else [])}
        return Proof(
            findings,
            {g.name: proven[g] for g in self._claims if g in proven},
            lemmas,
            tuple(g.name for g in self._lemmas if g in needed),
            tuple(g.name for g in self._lemmas if g not in proven),
            {cti.of: cti for claim, cti in self._ctis.items() if claim not in settled},
            self._confirmed,
            self._search.depth,
            self._budget.queries,
            self._budget.elapsed,
            self.stopped == INTERRUPTED,
        )

    def _open(self) -> bool:
        """Whether some property is undecided; those proved up to the first mistake are, unless there is none."""
        return any(not g.lemma for g in self._search.open)

    def _needs(self, claim: Goal) -> set[Goal]:
        """Everything that the proof of a claim rests on, directly or not, well-behavedness included."""
        found: set[Goal] = set()
        pending = [*self._rests_on.get(claim, ()), *self._rests_on.get(None, ())]
        while pending:
            goal = pending.pop()
            if goal not in found:
                found.add(goal)
                pending += self._rests_on.get(goal, ())
        return found

    def _finding(self, prop: Property, max_k: int) -> Finding:
        goal = next((g for g in self._claims if g.prop is prop), None)
        if goal is not None and goal in self._proven and self._safe:
            return self._proved(goal)
        found = verdict(self._search, prop, self.stopped)
        decided = found.verdict is not Verdict.INCONCLUSIVE
        if goal is None or decided or self.stopped is not None or goal in self._search.given_up or self._search.blind:
            return found
        return replace(found, because=self._why_open(goal, max_k))

    def _proved(self, goal: Goal) -> Finding:
        because = f"by k-induction, k={self._proven[goal]}, for this instance"
        needs = self._needs(goal)
        lemmas = [g.name for g in self._lemmas if g in needs]
        if lemmas:
            because += f", with {'lemma' if len(lemmas) == 1 else 'lemmas'} {', '.join(lemmas)}"
        if self._confirmed:
            because += "; confirmed by a second procedure"
        if goal.prop.kind is Kind.REACHABLE:
            return goal.finding(Verdict.VIOLATED, f"true in no reachable state, {because}")
        return goal.finding(Verdict.HOLDS, because)

    def _why_open(self, goal: Goal, max_k: int) -> str:
        seen = "not reached" if goal.prop.kind is Kind.REACHABLE else "no violation"
        covered = f"{seen} in {so_far(self._search.depth)}"
        if goal in self._proven:
            return f"{covered}, and by induction none before the model's first mistake; {self._unsafe(max_k)}"
        if goal in self._unknown:
            return f"{covered}; the solver gave up on induction: raise the timeout, add a lemma, or use check"
        return (
            f"{covered}, but not inductive up to k={max_k}: add a lemma that excludes the first state of the "
            f"counterexample to induction, raise k, or use check"
        )

    def _unsafe(self, max_k: int) -> str:
        """Why it is open whether the model makes a mistake."""
        if None in self._unknown:
            return "whether it makes one, the solver does not know: raise the timeout, add a lemma, or use check"
        why = self._ctis[None].because.splitlines()[0]
        return (
            f"for all that induction up to k={max_k} knows it may make one ({why}): add a lemma that excludes the first "
            f"state of the counterexample to induction, raise k, or use check"
        )

    def _lemma(self, goal: Goal) -> Finding:
        if goal in self._proven:
            because = f"by k-induction, k={self._proven[goal]}, for this instance"
            if self._safe:
                return goal.finding(Verdict.HOLDS, because)
            return goal.finding(Verdict.INCONCLUSIVE, f"true up to the model's first mistake, {because}")
        if goal in self._search.findings:
            return self._search.findings[goal]
        if goal in self._unknown:
            return goal.finding(Verdict.INCONCLUSIVE, "the solver gave up on it: raise the timeout")
        if goal in self._ctis:
            because = f"not inductive of strength {self._ctis[goal].k}: {self._ctis[goal].because.splitlines()[0]}"
            return goal.finding(Verdict.INCONCLUSIVE, because)
        return goal.finding(Verdict.INCONCLUSIVE, "the attempt ended before it was tried")
