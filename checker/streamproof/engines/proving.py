"""The symbolic provers as engines; states of the explicit engine are the evidence for lemma discovery, and show whether a
proof is vacuous."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.options import DEFAULTS, SearchOptions
from streamproof.explicit.exploration import explore, terms_of
from streamproof.explicit.findings import antecedents
from streamproof.interrupts import TimeUp, requested
from streamproof.system import build as b
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.verdict import CheckResult, Finding, Verdict, number_of
from streamproof.transform.scalarise import scalarise

if TYPE_CHECKING:
    from streamproof.symbolic.proof import Proof
    from streamproof.symbolic.solver import Effort

QUERY_SECONDS, ANY_QUERY_SECONDS, RANK_QUERY_SECONDS = 60.0, 10.0, 2.0
"""Default time limits of one query, in seconds: of a proof of one instance, for every size, by a ranking function."""
RANK_SECONDS = 60.0
"""Default time limit of the search for a rank of one property, in seconds."""
MOST_STATES = 20_000
"""Largest number of states explored as evidence for lemma discovery."""
MOST_TERMS = 200_000_000
"""Largest number of terms evaluated for these states: some seconds of generated Python."""
SECONDS = 120.0
"""Default time limit of a run, in seconds; most runs that end at all end long before."""
PROVABLE = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)
"""Kinds of property that are proved unless others are chosen by name."""
BY_NAME = (Kind.TEMPORAL, Kind.REACHABLE)
"""Kinds of property that are proved only if they are chosen by name: they may take long, or need a witness."""


R = TypeVar("R", bound=CheckResult)


def seconds_of(given: float | None, usual: float = SECONDS) -> float | None:
    """The time limit of a run in seconds, `usual` unless one is given; None if there is none."""
    seconds = usual if given is None else given
    return None if math.isinf(seconds) else seconds


def states_worth(system: System) -> int:
    """The largest number of states of a system to explore beside a proof."""
    return min(MOST_STATES, 1 + MOST_TERMS // max(1, terms_of(system)))


class ExploredStates:
    """States of a system as evidence for lemma discovery, explored on first use: all, or the first `EVIDENCE`."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.all: int | None = None
        """Number of reachable states, if all were found."""

    def __call__(self) -> Iterable[State]:
        """The states; empty if the search fails."""
        try:
            found = explore(self._system, SearchOptions(properties=(), max_states=states_worth(self._system)))
        except StreamproofError:
            # No evidence: the proof reports errors of the model.
            return ()
        self.all = found.counts.distinct if found.complete else None
        return found.states()


def with_vacuity(finding: Finding, vacuous: bool | None, why: str = "not known whether it is vacuous") -> Finding:
    """The finding of an engine that visits no states, and whether it is vacuous; `why` is said unless it is not."""
    return replace(finding, vacuous=vacuous, because=finding.because + (f"; {why}" if vacuous is not False else ""))


def examined(system: System, result: R, options: SearchOptions = DEFAULTS) -> R:
    """The result of an engine that visits no states, in which every property that holds says whether it is vacuous.

    Reachable states decide it: all, or those found within bounds. If these do not, a proof or a counterexample of the
    condition that the antecedent is never true does. Raises `ReplayFailure` if the search of all states refutes a property.
    """
    names = [f.property for f in result.findings if f.is_vacuous() is None]
    if not names:
        return result
    left = None if options.time_limit is None else options.time_limit - result.seconds.total
    seconds = options.tuning.examining if left is None else min(options.tuning.examining, left)
    known: Mapping[str, tuple[bool | None, str]] = {}
    if seconds > 0 and not (result.interrupted or requested()):
        try:
            known = _vacuous(system, names, seconds, options.tuning.examined_states)
        except (StreamproofError, TimeUp) as error:
            if isinstance(error, StreamproofError) and error.exit_code is Exit.DISAGREE:
                raise
    found = (with_vacuity(f, *known.get(f.property, (None,))) if f.property in names else f for f in result.findings)
    return replace(result, findings=tuple(found))


def _vacuous(
    system: System, names: list[str], seconds: float, bounds: tuple[int, ...]
) -> dict[str, tuple[bool | None, str]]:
    """For each of these proved properties for which it is known, whether it is vacuous, and why. `bounds`: numbers of states
    of the searches, one after the other."""
    from streamproof.symbolic.portfolio import Engine
    from streamproof.symbolic.proof import prove
    from streamproof.symbolic.replay import ReplayFailure

    known: dict[str, tuple[bool | None, str]] = {}
    for most in bounds:
        open_ = tuple(name for name in names if name not in known)
        if not open_:
            return known
        limits = SearchOptions(properties=open_, max_states=min(most, states_worth(system)), time_limit=seconds)
        found = explore(system, limits)
        for finding in found.findings:
            if finding.verdict is Verdict.VIOLATED:
                raise ReplayFailure(f"{finding.property} was proved, and a behaviour violates it")
            if (vacuous := found.vacuity(finding.property)) is not None:
                known[finding.property] = vacuous, finding.because.partition(";")[0]
    scalar = replace(scalarise(system).system, constraint=None)
    never = [
        Property(name, Kind.INVARIANT, b.not_(b.or_(antecedents(scalar.property(name)))))
        for name in open_
        if name not in known and (system.constraint is None or system.property(name).kind is Kind.INVARIANT)
    ]
    if never:
        proof = prove(replace(scalar, properties=tuple(never)), engine=Engine.AUTO, seconds=seconds, confirm=False)
        decided = {Verdict.HOLDS: True, Verdict.VIOLATED: False}
        because = "vacuous: its antecedent is false in every reachable state"
        known |= {f.property: (decided[f.verdict], because) for f in proof.findings if f.verdict in decided}
    return known


def _prove(
    engine: str,
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Effort], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Proof:
    """Prove the properties selected by the options; None: all kinds that induction can prove."""
    from streamproof.symbolic.liveness import prove_all
    from streamproof.symbolic.portfolio import Engine
    from streamproof.symbolic.proof import prove

    names = options.properties
    if names is None:
        names = [p.name for p in system.properties if p.kind in PROVABLE]
    states = ExploredStates(system)
    answer = (
        prove_all if any(system.property(n).kind is Kind.TEMPORAL for n in names) else partial(prove, explored=states)
    )
    proof = answer(
        system,
        tuple(names),
        engine=Engine(engine),
        max_k=options.max_k,
        depth=options.depth,
        query_limit=QUERY_SECONDS if options.query_limit is None else options.query_limit,
        seconds=options.time_limit,
        on_progress=on_progress,
    )
    proof = replace(proof, reachable=states.all)
    return replace(proof, notes=tuple(_notes(proof)))


def _notes(proof: Proof) -> Iterator[str]:
    """Remarks about all proofs, and a hint at check for small state spaces."""
    proved = [f for f in proof.findings if f.property in proof.k]
    if proved:
        what = "the proof is" if len(proved) == 1 else f"the {len(proved)} proofs are"
        yield f"{what} for this instance" + ("; confirmed by a second procedure" if proof.confirmed else "")
    if proof.reachable is not None and any(f.verdict is Verdict.INCONCLUSIVE for f in proof.findings):
        found = number_of(proof.reachable, "reachable state")
        yield f"use streamproof check for open properties: the model has only {found}"


auto = partial(_prove, "auto")
induction = partial(_prove, "induction")
discovery = partial(_prove, "discovery")
pdr = partial(_prove, "pdr")
