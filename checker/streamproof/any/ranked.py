"""`prove --rank`: temporal properties by ranking functions, over integers without bounds and for every size, with the
cross-checks of such a proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from streamproof import interrupts
from streamproof.any.array_ranks import has_indices, prove_over_indices
from streamproof.any.engine import AnySize
from streamproof.any.every_size import COMPARING, check_proof, stages
from streamproof.any.instances import SearchedInstances, search_instances
from streamproof.any.ranking import Ranked, prove_by_ranking
from streamproof.any.readings import compare_readings
from streamproof.base.errors import UsageError
from streamproof.base.options import timely
from streamproof.base.records import dataclass, replace
from streamproof.engines.proving import RANK_QUERY_SECONDS, RANK_SECONDS, examined
from streamproof.selection import Selection
from streamproof.system.model import Kind, System
from streamproof.system.verdict import CheckResult, Measure, Seconds, Verdict
from streamproof.transform.constraint import within_constraint
from streamproof.transform.unbounded import Parametric, Unbounded


@dataclass(frozen=True)
class RankedProof(CheckResult):
    """The result of proofs by ranking functions: for each property, its rank and what the proof uses."""

    ranks: tuple[Ranked, ...] = ()
    system: System = System("", (), ())
    """The system of the proofs, whose parameters may be symbolic."""
    parametric: Parametric | None = None
    """The model with symbolic parameters or unbounded integers, if it has any."""


def prove_ranked(
    selection: Selection,
    free: Sequence[str],
    names: Sequence[str],
    rank: str = "",
    *,
    read: Callable[[], System] | None = None,
    query_limit: float | None = None,
    time_limit: float | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> RankedProof:
    """Proves temporal properties by `rank`, or by a discovered ranking function if it is empty.

    With free parameters, the parametric reading is compared with concrete ones, and the explicit engine searches instances
    for violations of proved properties. `read` reads the system (default: the selection's). `query_limit` limits one query,
    `time_limit` each property, in seconds. Raises `UsageError` for a property of another kind, `ReadingsDiffer` and
    `ProofRefuted`.
    """
    for listed in selection.listed():
        if listed.name in names and listed.kind is not Kind.TEMPORAL:
            raise UsageError(
                f"{listed.name} is of kind {listed.kind.value}, which has no rank",
                remedy="choose temporal properties with --property, or leave out --rank",
            )
    begun = time.perf_counter()
    model: System | Parametric
    try:
        model = (
            selection.target.endless(selection.variant, selection.given, free)
            if free
            else (selection.system if read is None else read)()
        )
    except Unbounded:
        model = selection.target.endless(selection.variant, selection.given, free)
    if isinstance(model, Parametric):
        with timely(COMPARING, silent=True):
            compare_readings(selection.target.spec, selection.variant, selection.given, model)
    ready = time.perf_counter() - begun
    named = _quantity(selection, rank, free)
    given = (rank or None) if named is None else named
    query = RANK_QUERY_SECONDS if query_limit is None else query_limit
    limit = RANK_SECONDS if time_limit is None else time_limit
    answers = []
    with interrupts.unlimited():  # each property has its own limit
        for name in names:
            on_progress(f"looking for a rank of {name}")
            if isinstance(model, Parametric) and has_indices(model, name):
                answers.append(_over_indices(selection, model, name, given, query, limit))
            else:
                answers.append(prove_by_ranking(model, name, rank=given, query_limit=query, seconds=limit))
        seconds = Seconds(time.perf_counter() - begun, ready, sum(a.seconds for a in answers))
        result = RankedProof(
            tuple(a.finding for a in answers),
            seconds=seconds,
            ranks=tuple(answers),
            system=model.system if isinstance(model, Parametric) else model,
            parametric=model if isinstance(model, Parametric) else None,
        )
        if isinstance(model, Parametric):
            proved = [f.property for f in result.findings if f.verdict is Verdict.HOLDS]
            small = search_instances(selection, model, proved, proved, on_progress) if proved else SearchedInstances()
            found = (small.examined(f) if f.property in proved else f for f in result.findings)
            result = replace(result, findings=tuple(found))
        else:
            result = examined(model, result)
    return within_constraint(result.system, result)


def _quantity(selection: Selection, rank: str, free: Sequence[str]) -> Measure | None:
    """The quantity of the model that a rank names, if it names one."""
    if not rank.isidentifier():
        return None
    measure = selection.target.quantity(rank, selection.variant, selection.given, free)
    if measure is not None and measure.checks:
        raise UsageError(f"{rank} may have no value in some state", remedy="a rank needs one in every state")
    return measure


def _over_indices(
    selection: Selection,
    parametric: Parametric,
    name: str,
    rank: str | Measure | None,
    query_limit: float,
    seconds: float,
) -> Ranked:
    """The proof of a property of a model with arrays, or rules with a parameter, whose range is free."""

    def instance(values: Mapping[str, int]) -> System:
        return selection.target.system(selection.variant, {**selection.given, **values})

    def check(model: Parametric, proof: AnySize) -> None:
        check_proof(selection, model, proof)

    return prove_over_indices(
        parametric,
        name,
        rank=rank,
        instantiate=instance,
        stages=stages(selection, parametric),
        query_limit=query_limit,
        seconds=seconds,
        check=check,
    )
