"""The portfolio of proof engines, in order: induction with the model's lemmas, a brief search, discovery, PDR.

Conditions proposed by discovery or PDR are not trusted: they become lemmas of another attempt, which proves them by
induction in its own solvers, together with the properties. Lemmas that the proofs do not use are then dropped, and the
rest is proved once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import count

from streamproof.base.records import dataclass
from streamproof.symbolic.attempt import MANY, ProofAttempt
from streamproof.symbolic.bmc import nothing, so_far
from streamproof.symbolic.discovery.discovering import CLOSED, Discovery, Explored, discover
from streamproof.symbolic.discovery.houdini import inductive
from streamproof.symbolic.discovery.leaf_names import in_terms_of_the_model
from streamproof.symbolic.discovery.pretty import pretty
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import ENDLESS, goals
from streamproof.symbolic.pdr import Pdr, Unknown
from streamproof.symbolic.solver import SolverBudget
from streamproof.system.expr import Const, Expr
from streamproof.system.model import Conjunct, Kind, Property, System
from streamproof.system.verdict import Finding, Trace, Verdict


class Engine(Enum):
    """The engine that decides a property; `AUTO` runs all of them in order."""

    AUTO = "auto"
    INDUCTION = "induction"
    """k-induction, with the model's lemmas only."""
    DISCOVERY = "discovery"
    """k-induction, with discovered lemmas if the model's do not suffice."""
    PDR = "pdr"
    """Property-directed reachability."""
    SEARCH = "search"
    """Bounded model checking, which accompanies induction; not a user's choice."""


INDUCING = 40.0
"""Time limit, in seconds, of induction with the model's own lemmas before other engines start; at most a quarter of the
run's limit."""
BRIEFLY = 10.0
"""Time limit, in seconds, of the search before that."""
REPROVING = 60.0
"""Time limit, in seconds, of proving proposed lemmas."""
PDR_SLICES = (2.0, 30.0, 60.0)
"""Successive time limits, in seconds, of PDR with either encoding, if the run has no limit."""
PROPOSED_BY_PDR = "invariant of PDR"


@dataclass(frozen=True, slots=True)
class Lemma:
    """A discovered invariant: its name in the report, its text, and its source."""

    name: str
    text: str
    source: str


@dataclass
class Portfolio:
    """The engines for the `requested` properties of one system."""

    system: System
    requested: tuple[Property, ...]
    budget: SolverBudget
    max_k: int
    simple: bool
    depth: int
    explored: Explored | None

    def __post_init__(self) -> None:
        first = ProofAttempt(self.system, self.requested, self.budget)
        self.attempts: list[tuple[Engine, ProofAttempt]] = [(Engine.INDUCTION, first)]
        """The first attempt, and those that proved more than the ones before."""
        self.leaf_terms: dict[Property, Expr] = {}
        """The discovered conditions on leaves."""
        self._found: dict[Property, Finding] = {}
        self._mistake: tuple[Trace, str] | None = None
        self._frames: int | None = None
        """Depth covered by PDR, in steps."""
        self._stopped = ""

    @property
    def first(self) -> ProofAttempt:
        """The attempt with the model's lemmas only."""
        return self.attempts[0][1]

    @property
    def open(self) -> tuple[Property, ...]:
        """The properties not yet decided."""
        if self._mistake is not None:
            return ()
        proven = {p for _, attempt in self.attempts for p in attempt.proven}
        return tuple(p for p in self.attempts[-1][1].open if p not in self._found and p not in proven)

    # --- execution ---------------------------------------------------------------------------------------------------

    def run(self, engine: Engine) -> None:
        """Runs the engine, or all of them. Raises `Stopped`."""
        discovery = Discovery()
        if engine is Engine.INDUCTION:
            self.first.induct(self.max_k, simple=self.simple)
        if engine in (Engine.AUTO, Engine.DISCOVERY):
            whole = self.budget.seconds
            with self.budget.slice(INDUCING if whole is None else min(INDUCING, whole / 4)):
                self.first.induct(self.max_k, simple=self.simple)
            with self.budget.slice(BRIEFLY):
                self.first.look_for_counterexamples(self.depth)
            if self.open and not self.first.over:
                discovery = discover(self.first.scalarised, self.open, self.explored, self.budget, self._known())
                self._prove_with({**discovery.kept, **discovery.offered}, Engine.DISCOVERY)
                self.first.find(discovery.refuted)
        if engine in (Engine.AUTO, Engine.PDR) and not self.first.over:
            self._direct(discovery, alone=engine is Engine.PDR)
        if engine is not Engine.PDR and self.open:
            self.first.induct(self.max_k, simple=self.simple)
            self.first.look_for_counterexamples(self.depth)

    def _direct(self, discovery: Discovery, *, alone: bool) -> None:
        """Runs PDR, with either encoding in turn and with growing time limits, given the known invariants.

        `alone`: it starts without lemmas and without its own limit; then it receives those of the model's lemmas that
        are inductive, and the discovered conditions.
        """
        known = self._known()
        for turn, seconds in enumerate(_rising(endlessly=alone)):
            if alone and turn == 1:
                known = self._inductive_lemmas()
                # The set of all states would leave nothing for PDR to find.
                discovery = discover(self.first.scalarised, self.open, self.explored, self.budget, known, whole=False)
            # Discovered conditions are mostly sums, which integers decide faster.
            for integers in (bool(discovery.kept), not discovery.kept):
                requested = [p for p in self.open if p.kind not in ENDLESS]
                if not requested or self.attempts[-1][1].over:
                    return
                encoding = Encoding(self.first.scalarised, integers=integers)
                with self.budget.slice(seconds):
                    pdr = Pdr(encoding, goals(encoding, requested), (*known, *discovery.kept), self.budget)
                    try:
                        pdr.run()
                    except Unknown:
                        continue
                    finally:
                        self._found |= pdr.findings
                        self._mistake = pdr.mistake
                        self._frames = max(self._frames or 0, pdr.frames)
                if pdr.invariant is not None:
                    proposed = dict.fromkeys(pdr.invariant, PROPOSED_BY_PDR)
                    # Hundreds of discovered lemmas are seldom needed in addition to the model's, and slow to prove
                    # again.
                    if known and len(discovery.kept) >= MANY and self._prove_with(proposed, Engine.PDR):
                        return
                    if self._prove_with({**discovery.kept, **proposed}, Engine.PDR):
                        return

    def _known(self) -> tuple[Expr, ...]:
        """The invariants proved by induction with the model's lemmas, as conditions on leaves."""
        scalarised = self.first.scalarised
        own, scalar = scalarised.original, scalarised.system
        twins = dict(zip((*own.properties, *own.lemmas), (*scalar.properties, *scalar.lemmas), strict=True))
        return tuple(twins[p].expr for p in self.first.facts if p.kind is Kind.INVARIANT)

    def _inductive_lemmas(self) -> tuple[Expr, ...]:
        """The model's lemmas that are inductive on their own, as conditions on leaves."""
        scalarised = self.first.scalarised
        lemmas = [p.expr for p in scalarised.system.lemmas if p.kind is Kind.INVARIANT]
        with self.budget.slice(REPROVING):
            return inductive(Encoding(scalarised, integers=True), lemmas, self.budget)
        return ()

    def _prove_with(self, conditions: Mapping[Expr, str], engine: Engine) -> bool:
        """Whether every property is proved with these conditions on leaves as additional lemmas."""
        before = {p for _, attempt in self.attempts for p in attempt.proven}
        found = tuple(self._as_lemmas(conditions))
        attempt = self._attempt(found, engine)
        if not {*attempt.proven} & {*self.requested} <= before:
            needed = tuple(p for p in found if p in attempt.needed)
            lean = self._attempt(needed, engine) if len(needed) < len(found) else attempt
            proved = {p for p in attempt.requested if p in attempt.proven}
            self.attempts.append((engine, lean if proved <= {*lean.proven} else attempt))
        elif attempt.over:
            # A system without initial states needs no proof: its search was complete.
            self.attempts.append((engine, attempt))
        return not self.open

    def _attempt(self, found: tuple[Property, ...], engine: Engine) -> ProofAttempt:
        requested = tuple(p for p in self.requested if p not in self._found)
        origin = "proposed by PDR" if engine is Engine.PDR else "discovered"
        attempt = ProofAttempt(self.system, requested, self.budget, found, origin)
        with self.budget.slice(REPROVING):
            attempt.induct(self.max_k, simple=self.simple)
        return attempt

    def _names(self) -> Iterator[str]:
        taken = {p.name for p in (*self.system.properties, *self.system.lemmas)}
        return (name for n in count(1) if (name := f"found_{n}") not in taken)

    def _as_lemmas(self, conditions: Mapping[Expr, str]) -> Iterator[Property]:
        """Conditions on leaves as invariants of the model, with unused names."""
        in_terms = in_terms_of_the_model(self.first.scalarised)
        names = self._names()
        for condition, source in conditions.items():
            whole = in_terms(condition)
            if not isinstance(whole, Const):
                # Its text would be as long as the list of all states.
                text = "the state is one of those explored" if source == CLOSED else pretty(whole)
                lemma = Property(next(names), Kind.INVARIANT, whole, (Conjunct(whole, text, None),), doc=source)
                self.leaf_terms[lemma] = condition
                yield lemma

    # --- results -----------------------------------------------------------------------------------------------------

    def stop(self, why: str) -> None:
        """Records the early end of the run."""
        self._stopped = f"{why}: "
        for _, attempt in self.attempts:
            attempt.stopped = why

    def confirm(self) -> None:
        """Confirms the proofs that the results use. Raises `Stopped`."""
        for _, attempt in self.contributing:
            attempt.confirm()

    @property
    def contributing(self) -> list[tuple[Engine, ProofAttempt]]:
        """The attempts that the results use, last first: each proves a property that the later ones do not."""
        done: set[Property] = set()
        chosen = []
        for engine, attempt in reversed(self.attempts):
            own = {p for p in attempt.requested if p in attempt.proven}
            if not own <= done:
                chosen.append((engine, attempt))
                done |= own
        return chosen

    def finding(self, prop: Property) -> tuple[Finding, Engine | None]:
        """The finding for a property, and the engine that decided it; None if none did."""
        if prop in self._found:
            return self._found[prop], Engine.PDR
        for engine, attempt in self.contributing:
            if prop in attempt.proven and prop in attempt.requested:
                # A property that needed no new lemma would have been proved without it.
                earlier = [e for e, a in self.attempts if prop in a.proven]
                return attempt.finding(prop), min(earlier, key=[e for e, _ in self.attempts].index, default=engine)
        for _, attempt in reversed(self.attempts):
            if prop in attempt.requested:
                found = attempt.finding(prop)
                if found.verdict is not Verdict.INCONCLUSIVE:
                    return found, Engine.SEARCH
        if self._mistake is not None and prop.kind not in ENDLESS:
            return Finding(prop.name, prop.kind, Verdict.ERROR, *self._mistake), Engine.PDR
        found = self.attempts[-1][1].finding(prop)
        if self._frames is not None and prop.name not in self.attempts[-1][1].ctis and prop.kind not in ENDLESS:
            covered = so_far(max(self._frames, self.first.depth))
            seen = f"{self._stopped}{nothing(prop)} in {covered}, and no invariant found: allow more time, or use check"
            found = replace(found, because=seen)
        return found, None

    def reported(self, lemmas: Iterable[Property]) -> tuple[Lemma, ...]:
        """Discovered lemmas for the report, numbered from 1."""
        return tuple(Lemma(name, m.conjuncts[0].text, m.doc) for name, m in zip(self._names(), lemmas, strict=False))


def _rising(*, endlessly: bool) -> Iterator[float]:
    yield from PDR_SLICES
    seconds = PDR_SLICES[-1]
    while endlessly:
        seconds *= 4
        yield seconds
