"""One proof attempt: rounds of k-induction on the properties of a system with a fixed set of lemmas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from streamproof.symbolic.arithmetic import DualArithmetic
from streamproof.symbolic.bmc import nothing, so_far, verdict
from streamproof.symbolic.confirmation import confirms
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import finding, goals, offered
from streamproof.symbolic.induction import Claim, Cti, Round
from streamproof.symbolic.search import Unrolling
from streamproof.symbolic.solver import SolverBudget
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Finding, Verdict
from streamproof.transform.scalarise import scalarise

MANY = 20
"""Minimum number of discovered lemmas from which integers are tried before bit-vectors."""


class ProofAttempt:
    """The state of a proof attempt on the `requested` properties of a system and on its lemmas.

    `found` are additional lemmas, not the model's own; `origin` is their source, for the report.
    """

    def __init__(
        self,
        system: System,
        requested: tuple[Property, ...],
        budget: SolverBudget,
        found: tuple[Property, ...] = (),
        origin: str = "",
    ) -> None:
        self.requested = requested
        self.found = found
        self._origin = origin
        self.lemmas = offered(system, requested)
        """The model's own lemmas."""
        self._budget = budget
        self.scalarised = scalarise(replace(system, lemmas=(*system.lemmas, *found)))
        encoding = Encoding(self.scalarised)
        every = (*requested, *self.lemmas, *found)
        self._search = Unrolling(encoding, goals(encoding, every), budget)
        # Discovered lemmas are mostly sums, which integers decide faster; the model's own lemmas can take long with
        # integers.
        self._inductions = DualArithmetic(encoding, every, budget, integers=len(found) >= MANY)
        self._rounds: list[Round] = []
        self._proven: dict[Property, int] = {}
        self._rests_on: dict[Claim, frozenset[Property]] = {}
        self._ctis: dict[Claim, Cti] = {}
        self._unknown: set[Claim] = set()
        self._safe = False
        self.confirmed: bool | None = None
        self.stopped: str | None = None
        """The reason for an early end; None if the attempt finished."""

    # --- execution ---------------------------------------------------------------------------------------------------

    def induct(self, max_k: int, *, simple: bool) -> None:
        """Rounds of increasing strength, until no property is open. Raises `Stopped`."""
        for k in range(len(self._rounds) + 1, max_k + 1):
            self._search.to(k - 1)
            if self._search.over or not self.open:
                return
            candidates = [p for p in self._search.open if p not in self._proven]
            facts = tuple(self._proven)
            self._record(
                self._inductions.round(
                    k, candidates, facts, safe=self._safe, simple=simple and k > 1, wanted=self.requested
                )
            )

    def _record(self, result: Round) -> None:
        self._rounds.append(result)
        self._ctis.update(result.ctis)
        self._unknown = result.unknown
        self._rests_on.update(result.rests_on)
        self._proven.update(dict.fromkeys(result.proven, result.k))
        self._safe = result.safe
        if self._safe:
            self._search.remove_goals(self._proven, true=True)

    def look_for_counterexamples(self, depth: int) -> None:
        """Bounded search for counterexamples and witnesses of the open properties. Raises `Stopped`."""
        if self.open and not self._search.over:
            self._search.remove_goals((*self.lemmas, *self.found), true=False)
            self._search.to(depth)
            self._search.close()

    def find(self, properties: Collection[Property]) -> None:
        """Unbounded search for the counterexamples and witnesses of these properties, which exist. Raises `Stopped`."""
        while not self._search.over and any(p in properties for p in self._search.open):
            self._search.to(self._search.depth + 1)

    def confirm(self) -> None:
        """Confirms the proof with the other encoding. Raises `Stopped`."""
        if self._safe and any(p in self._proven for p in self.requested):
            self.confirmed = False
            self.confirmed = confirms(self.scalarised, self._rounds, self._budget)

    # --- results so far ----------------------------------------------------------------------------------------------

    @property
    def open(self) -> tuple[Property, ...]:
        """The undecided requested properties; a proof up to the first model error counts only if the model is known to
        be safe."""
        return tuple(p for p in self.requested if p in self._search.open)

    @property
    def over(self) -> bool:
        """Whether all properties are decided, or the model makes an error."""
        return not self.open or self._search.over

    @property
    def depth(self) -> int:
        """Depth covered by the search, in steps."""
        return self._search.depth

    @property
    def proven(self) -> Mapping[Property, int]:
        """The proved properties, with the strength of the induction; unconditional results only."""
        return self._proven if self._safe else {}

    @property
    def facts(self) -> tuple[Property, ...]:
        """The proved properties, including those proved only up to the model's first error: enough to serve as lemmas."""
        return tuple(self._proven)

    @property
    def strength(self) -> int:
        """The largest strength of induction in the proofs of the requested properties; 0 without proofs."""
        proved = {p for p in self.requested if p in self.proven}
        safe = next((r.k for r in self._rounds if r.safe), 0)
        return max(safe, *(self._proven[p] for p in proved | self.needed)) if proved else 0

    @property
    def ctis(self) -> Mapping[str, Cti]:
        """Counterexamples to induction for the open properties."""
        settled = {*self.proven, *self._search.findings, *([None] if self._safe else [])}
        return {cti.of: cti for claim, cti in self._ctis.items() if claim not in settled}

    def needs(self, *claims: Property) -> set[Property]:
        """The transitive dependencies of the proofs of claims, including the absence of model errors."""
        found: set[Property] = set()
        pending = [p for claim in (*claims, None) for p in self._rests_on.get(claim, ())] if claims else []
        while pending:
            support = pending.pop()
            if support not in found:
                found.add(support)
                pending += self._rests_on.get(support, ())
        return found

    @property
    def needed(self) -> set[Property]:
        """The dependencies of the proofs of the requested properties."""
        return self.needs(*(p for p in self.requested if p in self.proven))

    # --- the result --------------------------------------------------------------------------------------------------

    def finding(self, prop: Property) -> Finding:
        """The finding for a requested property."""
        if prop in self.proven:
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
        because = f"by k-induction, k={self._proven[prop]}"
        needs = self.needs(prop)
        named = ", ".join(p.name for p in self.lemmas if p in needs)
        count = sum(p in needs for p in self.found)
        more = f"{count} {'lemma' if count == 1 else 'lemmas'} {self._origin}" if count else ""
        if named:
            more = f"{'lemma' if ',' not in named else 'lemmas'} {named}" + (f", and {more}" if more else "")
        if more:
            because += f", with {more}"
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

    def lemma(self, lemma: Property) -> Finding:
        """The finding for one of the model's lemmas."""
        if lemma in self._proven:
            because = f"by k-induction, k={self._proven[lemma]}"
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
