"""Proofs of temporal properties of finite systems as invariants of a larger system (liveness to safety)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from streamproof.symbolic.goals import finding
from streamproof.symbolic.portfolio import Engine
from streamproof.symbolic.proof import Proof, prove
from streamproof.symbolic.replay import ReplayFailure
from streamproof.symbolic.solver import Effort
from streamproof.system.model import Kind, Property, System
from streamproof.system.temporal import violation
from streamproof.system.verdict import Finding, Seconds, Verdict
from streamproof.transform.constraint import within_constraint
from streamproof.transform.liveness_to_safety import Safety, to_safety


class ProofOptions(TypedDict, total=False):
    """Arguments of `prove`."""

    max_k: int
    depth: int
    query_limit: float | None
    reproducible: bool
    on_progress: Callable[[Effort], None] | None


def prove_temporal(
    system: System,
    name: str,
    *,
    engine: Engine = Engine.AUTO,
    seconds: float | None = None,
    **options: Unpack[ProofOptions],
) -> Proof:
    """Proves the temporal property called `name`, or finds a fair lasso that violates it, within `depth` steps of the search.

    The invariants and lemmas of the system are offered as lemmas. Other arguments are as in `prove`; steps and
    induction in the result refer to the larger system (`system.liveness_to_safety`). Raises `UsageError` for another
    kind of property, and as `prove` does.
    """
    safety = to_safety(system, name)
    known = [
        replace(p, name=f"{p.name}, known") for p in (*system.lemmas, *system.properties) if p.kind is Kind.INVARIANT
    ]
    proof = prove(safety.system, [name], engine=engine, lemmas=known, seconds=seconds, **options)
    found = _of_behaviours(safety, proof.findings[0])
    proof = replace(proof, findings=(found,), lemmas=(), used=(), dropped=(), ctis={}, invariant=(), discovered=())
    return within_constraint(system, proof)


def prove_all(
    system: System,
    properties: Sequence[str],
    *,
    engine: Engine = Engine.AUTO,
    seconds: float | None = None,
    **options: Unpack[ProofOptions],
) -> Proof:
    """Like `prove`, including temporal properties: first all state and step properties together, then each temporal one.

    Lemmas and counterexamples to induction in the result refer to the former. Raises as `prove` does.
    """
    begun = time.monotonic()
    temporal = [name for name in properties if system.property(name).kind is Kind.TEMPORAL]
    others = [name for name in properties if name not in temporal]

    def left() -> float | None:
        return None if seconds is None else max(0.001, seconds - (time.monotonic() - begun))

    proofs: list[Proof] = []
    if others:
        proofs.append(prove(system, others, engine=engine, seconds=left(), **options))
    for name in temporal:
        if proofs and proofs[-1].interrupted:
            stopped = Finding(name, Kind.TEMPORAL, Verdict.INCONCLUSIVE, None, "interrupted; run it again to the end")
            proofs.append(replace(proofs[-1], findings=(stopped,), queries=0))
            continue
        proofs.append(prove_temporal(system, name, engine=engine, seconds=left(), **options))
    spent = time.monotonic() - begun
    findings = {f.property: f for proof in proofs for f in proof.findings}
    confirmed = {proof.confirmed for proof in proofs if proof.confirmed is not None}
    return replace(
        proofs[0],
        findings=tuple(findings[name] for name in properties),
        k={name: strength for proof in proofs for name, strength in proof.k.items()},
        engines={name: by for proof in proofs for name, by in proof.engines.items()},
        confirmed=None if not confirmed else confirmed == {True},
        depth=min(proof.depth for proof in proofs),
        queries=sum(proof.queries for proof in proofs),
        seconds=Seconds(spent, 0.0, spent),
        stopped=next((proof.stopped for proof in proofs if proof.stopped), None),
        interrupted=any(proof.interrupted for proof in proofs),
    )


def _of_behaviours(safety: Safety, found: Finding) -> Finding:
    """The finding for the temporal property, from the finding for the invariant."""
    prop: Property = safety.prop
    match found.verdict:
        case Verdict.VIOLATED:
            assert found.trace is not None, "a violation is shown"
            try:
                lasso = safety.lasso(found.trace)
            except AssertionError as wrong:
                raise ReplayFailure(f"{wrong}: reported by the engine, refuted by the interpreter") from wrong
            return violation(safety.original, prop, lasso)
        case Verdict.HOLDS:
            because = f"no fair cycle violates it, {found.because}"
        case Verdict.ERROR:
            because = found.because
        case Verdict.INCONCLUSIVE:
            because = f"no fair cycle that violates it is known: {found.because}"
    return finding(prop, found.verdict, because)
