"""`prove --any`: a proof for every value of parameters with the cross-checks that make its verdict trustworthy.

1. The symbolic reading of the model is compared with concrete ones, and with plain Python (`readings`).
2. The claims of a finished proof are checked at small values, without quantifiers (`ground_induction`).
3. The explicit engine searches small instances for violations of proved properties (`instances`).

Each raises an error with exit code 162 where it differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from streamproof import interrupts
from streamproof.any.engine import AnySize, prove_any
from streamproof.any.engine.affine import affine_candidates
from streamproof.any.engine.bounds import bound_candidates
from streamproof.any.engine.claims import products
from streamproof.any.engine.laws import drift_candidates, law_candidates
from streamproof.any.engine.proof import NOTHING_PROVED, Stage
from streamproof.any.engine.steps import SAFE, StepQuestions
from streamproof.any.ground_induction import check_induction
from streamproof.any.instances import SearchedInstances, search_instances
from streamproof.any.readings import NOTHING_COMPARED, GroundingReport, candidates, compare_readings
from streamproof.base.errors import UsageError
from streamproof.base.options import timely
from streamproof.base.records import dataclass, replace
from streamproof.base.text import parameters_text
from streamproof.engines.proving import ANY_QUERY_SECONDS
from streamproof.explicit.findings import antecedents
from streamproof.language.declare.model import limits_text
from streamproof.selection import Selection
from streamproof.symbolic.goals import candid
from streamproof.symbolic.solver import Effort, SolverAnswer, SolverBudget
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import CheckResult, Finding, Seconds, Verdict
from streamproof.transform.constraint import within_constraint
from streamproof.transform.unbounded import Parametric, conjuncts

COMPARING = "comparing the symbolic reading with concrete ones"
FOR_EVERY_SIZE = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)
"""Kinds of property that are proved for every size without a ranking function."""
SIZES_SHOWN = 3
"""Largest number of instances listed for a property that holds there and is not proved."""

Progress = Callable[[Effort | str], None]


@dataclass(frozen=True)
class AnyProof(CheckResult):
    """The result of a proof for every value of parameters, with the extent of its cross-checks."""

    parametric: Parametric | None = None
    """The model with symbolic parameters."""
    proof: AnySize = NOTHING_PROVED
    compared: GroundingReport = NOTHING_COMPARED
    """The comparison of the symbolic reading with concrete ones and with plain Python."""
    induction_checked: tuple[Mapping[str, int], ...] = ()
    """The values at which the induction was checked without quantifiers."""
    instances: SearchedInstances = SearchedInstances()

    @property
    def system(self) -> System:
        """The system of its traces: the instance that violates a property, if there is one."""
        if self.instances.violating is not None:
            return self.instances.violating
        assert self.parametric is not None, "a proof is of a model"
        return self.parametric.system


def prove_for_every_size(
    selection: Selection,
    free: Sequence[str],
    names: Sequence[str],
    *,
    query_limit: float | None = None,
    time_limit: float | None = None,
    on_progress: Progress = lambda _: None,
) -> AnyProof:
    """Proves properties for every value of the parameters `free`, and searches small instances for the others.

    `query_limit` limits one query (default: `ANY_QUERY_SECONDS`), `time_limit` the proof, in seconds. Raises `UsageError`
    for a property of another kind, `ReadingsDiffer`, `NotInductive` and `ProofRefuted` where a cross-check differs,
    `NothingCompared`, and `ModelError`.
    """
    for listed in selection.listed():
        if listed.name in names and listed.kind not in FOR_EVERY_SIZE:
            what = "proved for every size" if free else "proved by induction"
            raise UsageError(
                f"{listed.name} is of kind {listed.kind.value}, which is not {what}",
                remedy=elsewhere(selection, listed.kind, free),
            )
    begun = time.perf_counter()
    parametric = selection.target.parametric(selection.variant, selection.given, free)
    properties = [parametric.system.property(name) for name in names]
    ready = time.perf_counter() - begun
    with timely(COMPARING, silent=True):
        same = compare_readings(selection.target.spec, selection.variant, selection.given, parametric, on_progress)
    proof = prove_any(
        parametric,
        properties,
        stages(selection, parametric),
        query_limit=ANY_QUERY_SECONDS if query_limit is None else query_limit,
        seconds=time_limit,
        on_progress=on_progress,
    )
    again = check_proof(selection, parametric, proof, on_progress)
    begins = (
        StepQuestions(parametric, [], SolverBudget(ANY_QUERY_SECONDS)).begins() if proof.proved else SolverAnswer.YES
    )
    interrupted = proof.stopped == "interrupted"
    small = (
        SearchedInstances()
        if interrupted
        else search_instances(selection, parametric, proof.proved, names, on_progress)
    )
    result = AnyProof(
        tuple(_begun(_finding(parametric, proof, small, p), begins) for p in properties),
        interrupted=interrupted,
        seconds=Seconds(time.perf_counter() - begun, ready, proof.seconds),
        notes=(*_notes(proof), *_compared(same, again, small)),
        parametric=parametric,
        proof=proof,
        compared=same,
        induction_checked=again,
        instances=small,
    )
    return within_constraint(result.system, result)


def elsewhere(selection: Selection, kind: Kind, free: Sequence[str]) -> str:
    """What decides a property of a kind that an induction over unbounded integers, or for every value of `free`, does not
    support."""
    rank = "prove it by a ranking function: --property NAME --rank EXPRESSION" if kind is Kind.TEMPORAL else ""
    bounded = selection.target.bounds_missing(selection.variant, selection.given)
    if bounded is not None:
        return rank or f"{bounded}, and use streamproof check"
    return f"use streamproof check at one size{f', or {rank}' if rank else ''}" if free else "use streamproof check"


def stages(selection: Selection, parametric: Parametric) -> list[Stage]:
    """The sources of discovered claims, in the order of use."""

    def instance(values: Mapping[str, int]) -> System:
        return selection.target.system(selection.variant, {**selection.given, **values})

    return [
        lambda: law_candidates(parametric),
        lambda: drift_candidates(parametric),
        lambda: bound_candidates(parametric, instance),
        lambda: affine_candidates(parametric, instance),
    ]


def check_proof(
    selection: Selection, parametric: Parametric, proof: AnySize, progress: Callable[[str], None] = lambda _: None
) -> tuple[Mapping[str, int], ...]:
    """Check the claims of a proof at small values of the free parameters; returns the values. Raises `NotInductive`."""
    if not proof.proved:
        return ()
    values = candidates(selection.target.spec, selection.variant, selection.given, parametric.free)
    return check_induction(parametric, proof.claims, values, progress)


def _finding(parametric: Parametric, proof: AnySize, small: SearchedInstances, prop: Property) -> Finding:
    if prop.name in proof.proved:
        used = [f"lemma {n}" for n in proof.lemmas]
        if proof.found:
            used.append(f"{len(proof.found)} discovered lemma{'' if len(proof.found) == 1 else 's'}")
        with_ = f", with {' and '.join(used)}" if used else ""
        because = f"by induction, for every {_every(parametric)}{with_}"
        proved = Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, sizes="any")
        if prop.kind is Kind.INVARIANT and not all(antecedents(replace(prop, expr=c)) for c in conjuncts(prop.expr)):
            return replace(proved, vacuous=False)  # some conjunct is no implication
        return small.examined(candid(parametric.system, proved))
    violated = small.first(prop.name, Verdict.VIOLATED)
    if violated is not None:
        values, finding = violated
        because = f"at {parameters_text(values)}: {finding.because}"
        holds = small.holds_at(prop.name)
        return Finding(prop.name, prop.kind, Verdict.VIOLATED, finding.trace, because, sizes=holds)
    holds = small.holds_at(prop.name)
    more = f" and at {len(holds) - SIZES_SHOWN} more" if len(holds) > SIZES_SHOWN else ""
    seen = f"; it holds at {' and at '.join(map(parameters_text, holds[:SIZES_SHOWN]))}{more}" if holds else ""
    because = f"{_why_open(parametric, proof, prop.name)}{seen}"
    return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because, sizes=holds)


def _begun(finding: Finding, begins: SolverAnswer) -> Finding:
    """The finding, which is vacuous without an initial state."""
    if finding.verdict is not Verdict.HOLDS or begins is not SolverAnswer.NO:
        return finding
    return replace(finding, vacuous=True, because=f"{finding.because}; the system has no initial state at any value")


def _every(parametric: Parametric) -> str:
    if not parametric.free:
        return "reachable state"
    parts = [f"{f.name} ({limits_text(f.least, f.most)})" for f in parametric.free]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _why_open(parametric: Parametric, proof: AnySize, name: str) -> str:
    every = " for every size" if parametric.free else ""
    if proof.stopped is not None:
        return f"{proof.stopped} before it was proved{every}: allow more time"
    if name in proof.unknown or (SAFE in proof.unknown and name not in proof.ctis):
        hard = _hard(parametric, name)
        return f"the solver gave up on proving it{every}{hard}: raise --query-timeout, or add a lemma"
    blocking = name if name in proof.ctis else SAFE
    what = "" if blocking == name else f", as long as an evaluation error is possible ({proof.ctis[SAFE].because})"
    if blocking not in proof.ctis:
        what = ""
    elif proof.ctis[blocking].step is None:
        values = dict(proof.ctis[blocking].parameters)
        wild = [f.name for f in parametric.free if f.least is None and int(values[f.name]) < 1]
        limits = f"; {', '.join(wild)} may be any number, negative ones too: declare limits" if wild else ""
        at = f", as at {parameters_text(values)}" if values else ""
        return f"not shown of every initial state{what}{at}{limits}"
    single = ", or prove it at one size" if parametric.free else ""
    return f"not proved{every}{what}: add a lemma that excludes the state of the counterexample to induction{single}"


def _hard(parametric: Parametric, name: str) -> str:
    """A remark about the first term outside of decidable arithmetic, if any."""
    for term in products(parametric, parametric.system.property(name)):
        place = "" if term.loc is None else f" ({term.loc.short})"
        return f", as it may on products and quotients of unknowns{place}"
    return ""


def _notes(proof: AnySize) -> tuple[str, ...]:
    tried = f"{proof.candidates} discovered candidates, {len(proof.found)} needed, " if proof.candidates else ""
    return (f"{tried}{proof.queries} queries",)


def _compared(same: GroundingReport, again: Sequence[Mapping[str, int]], small: SearchedInstances) -> Iterator[str]:
    """The cross-checks of a proof: concrete readings, plain Python, induction at given sizes, explicit search."""
    yield f"compared with concrete readings at {len(same.values)} values, and {same.runs:,} runs of plain Python"
    if again:
        yield f"induction checked without quantifiers at {len(again)} value{'' if len(again) == 1 else 's'}"
    if small.searched:
        states, whole = sum(s.states for s in small.searched), sum(s.complete for s in small.searched)
        cut = ", cut by the time limit" if interrupts.left() <= 0 else ""
        yield f"explicit search of {len(small.searched)} instances, {whole} of them complete: {states:,} states{cut}"
