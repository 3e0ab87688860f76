"""The symbolic provers as engines; states of the explicit engine are the evidence for lemma discovery."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from streamproof.system.errors import StreamproofError
from streamproof.system.model import Kind, State, System
from streamproof.system.options import DEFAULTS, SearchOptions
from streamproof.system.verdict import Finding

if TYPE_CHECKING:
    from streamproof.symbolic import Effort, Proof

QUERY_SECONDS = 60.0
"""Default time limit of one query, in seconds."""
MOST_STATES = 20_000
"""Largest number of states explored as evidence for lemma discovery."""
MOST_TERMS = 200_000_000
"""Largest number of terms evaluated for these states: some seconds of generated Python."""
PROVABLE = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)
"""Kinds of property that induction can prove; reachability needs a witness and termination the state graph, so a search."""


class ExploredStates:
    """States of a system as evidence for lemma discovery, explored on first use: all, or the first `EVIDENCE`."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.all: int | None = None
        """Number of reachable states, if all were found."""

    def __call__(self) -> Iterable[State]:
        """The states; empty if the search fails."""
        from streamproof.explicit import explore
        from streamproof.explicit.exploration import terms_of

        try:
            most = min(MOST_STATES, 1 + MOST_TERMS // max(1, terms_of(self._system)))
            found = explore(self._system, SearchOptions(properties=(), max_states=most))
        except StreamproofError:
            # No evidence: the proof reports errors of the model.
            return ()
        self.all = found.counts.distinct if found.complete else None
        return found.states()


def _prove(
    engine: str,
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Effort], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Proof:
    """Prove the properties selected by the options; None: all kinds that induction can prove."""
    from streamproof.symbolic import Engine, prove
    from streamproof.symbolic.liveness import prove_all

    names = options.properties
    if names is None:
        names = [p.name for p in system.properties if p.kind in PROVABLE]
    patience = int(1000 * (QUERY_SECONDS if options.query_limit is None else options.query_limit))
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
        timeout=patience,
        seconds=options.time_limit,
        on_progress=on_progress,
    )
    return replace(proof, reachable=states.all)


auto = partial(_prove, "auto")
induction = partial(_prove, "induction")
discovery = partial(_prove, "discovery")
pdr = partial(_prove, "pdr")
