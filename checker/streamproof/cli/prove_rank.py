"""``streamproof prove --rank``: temporal properties by ranking functions, over integers without bounds and for every size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.options import timely
from streamproof.base.records import replace
from streamproof.cli.answer import Request
from streamproof.cli.ticking import Ticking
from streamproof.engines.proving import examined
from streamproof.system.model import Kind, System
from streamproof.system.verdict import CheckResult, Seconds, Verdict
from streamproof.transform.unbounded import Parametric, Unbounded

QUERY_SECONDS = 2.0
"""Default time limit of one query, in seconds."""
SECONDS = 60.0
"""Default time limit of the search for a rank of one property, in seconds."""


def answer_ranked(
    request: Request,
    free: Sequence[str],
    chosen: Sequence[str],
    rank: str,
    query_timeout: float | None,
    timeout: float | None,
) -> int:
    """Prove the chosen properties by `rank`, or by a discovered ranking function if it is empty.

    With free parameters, the parametric reading is compared with concrete ones, and the explicit engine searches instances
    for violations of proved properties. Raises `UsageError` for a property of another kind, `ReadingsDiffer` and
    `ProofRefuted`.
    """
    from streamproof.any.ranking import prove_by_ranking
    from streamproof.any.readings import compare_readings
    from streamproof.cli.prove_any import COMPARING, Small, search_instances

    selection = request.selection
    for listed in selection.listed():
        if listed.name in chosen and listed.kind is not Kind.TEMPORAL:
            raise UsageError(
                f"{listed.name} is of kind {listed.kind.value}, which has no rank",
                remedy="choose temporal properties with --property, or leave out --rank",
            )
    begun = time.perf_counter()
    model: System | Parametric
    try:
        model = selection.target.endless(selection.variant, selection.given, free) if free else request.system()
    except Unbounded:
        model = selection.target.endless(selection.variant, selection.given, free)
    if isinstance(model, Parametric):
        with timely(COMPARING, silent=True):
            compare_readings(selection.target.spec, selection.variant, selection.given, model)
    ready = time.perf_counter() - begun
    query = QUERY_SECONDS if query_timeout is None else query_timeout
    answers = []
    with Ticking(live=not request.quiet) as progress, interrupts.unlimited():  # each property has its own limit
        for name in chosen:
            progress(f"looking for a rank of {name}")
            limit = SECONDS if timeout is None else timeout
            answers.append(prove_by_ranking(model, name, rank=rank or None, timeout=int(1000 * query), seconds=limit))
        proved = [a.finding.property for a in answers if a.finding.verdict is Verdict.HOLDS]
        seconds = Seconds(0.0, ready, sum(a.seconds for a in answers))
        result = CheckResult(tuple(a.finding for a in answers), seconds=seconds)
        if isinstance(model, Parametric):
            small = search_instances(selection, model, proved, proved, progress) if proved else Small([], None)
            found = (small.examined(f) if f.property in proved else f for f in result.findings)
            result = replace(result, findings=tuple(found))
        else:
            result = examined(model, result)
    system = model.system if isinstance(model, Parametric) else model
    more: dict[str, Any] = {
        "ranks": [
            {
                "property": a.finding.property,
                "rank": a.rank,
                "helpful": list(a.helpful),
                "invariants": list(a.invariants),
            }
            for a in answers
            if a.rank
        ],
        "queries": sum(a.queries for a in answers),
    }
    return request.answer(system, result, more)
