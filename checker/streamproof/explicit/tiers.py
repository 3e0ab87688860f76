"""Choice of the tier: generated Python for small state spaces, compiled code for large ones."""

from __future__ import annotations

from streamproof.explicit.early import EarlyEnd
from streamproof.explicit.level_search import LevelSearch, SearchTask
from streamproof.explicit.limits import Stop, processors
from streamproof.explicit.reductions.plan import ReductionPlan
from streamproof.explicit.search import Handover, Search
from streamproof.system.errors import SystemFailure, TooLarge
from streamproof.system.expr import Expr, subterms
from streamproof.system.model import System
from streamproof.system.options import AUTO, COMPILED, PYTHON
from streamproof.system.records import replace
from streamproof.version import VERSION

OWN_WORKERS = 8
"""Default limit on the number of threads."""
COMPILER_BYTES = 100 << 20
"""Memory of the process with the compiler and useful tables, in bytes."""
RIVAL_BYTES = 4 * COMPILER_BYTES
"""Memory limit in bytes below which a reduced search runs without the competing full search."""
SMALL_STATES, SMALL_WORK, GROWING = 5_000, 3_000_000, 500
"""Limits (`search.Handover`) below which generated Python finishes before the compiler is loaded (0.1 s)."""


def run_tiers(task: SearchTask, early: EarlyEnd, plan: ReductionPlan) -> tuple[LevelSearch, str, ReductionPlan]:
    """Search with the tier of the options; returns the finished search, the tier that finished it, and its reductions.

    `auto` begins with generated Python and restarts with compiled code if the state space is large. If that is not possible
    (llvmlite is missing, or a term is too large for machine words), the Python tier continues. Reduced searches are generated
    Python; with `auto`, a full search by compiled code competes, and its result is used if it needs less work.
    """
    if plan.reduces:
        return _reduced(task, early, plan)
    search, tier = _full(task)
    return search, tier, plan


def _full(task: SearchTask) -> tuple[LevelSearch, str]:
    options = task.budget.options
    if options.tier == COMPILED or options.storage is not None:
        return _finished(_compiled(task)), COMPILED
    faster = options.tier == AUTO and (task.budget.max_bytes or COMPILER_BYTES) >= COMPILER_BYTES
    handover = Handover(SMALL_STATES, SMALL_WORK, GROWING, terms_of(task.system)) if faster else None
    search = _finished(Search(task, handover))
    if search.stopped is not Stop.HANDOVER:
        return search, PYTHON
    del search
    try:
        compiled = _compiled(task)
    except (SystemFailure, TooLarge):
        return _finished(Search(task)), PYTHON
    return _finished(compiled), COMPILED


def terms_of(system: System) -> int:
    """Number of terms of all rules: an upper bound on the terms evaluated per state."""
    terms: list[Expr] = []
    for i in system.instances:
        terms += [c.expr for c in i.guard] + [term for _, term in i.updates]
        terms += [check.condition for check in (*i.guard_checks, *i.effect_checks)]
    return sum(1 for _ in subterms(*terms))


def _finished(search: LevelSearch) -> LevelSearch:
    search.run()
    return search


def _reduced(task: SearchTask, early: EarlyEnd, plan: ReductionPlan) -> tuple[LevelSearch, str, ReductionPlan]:
    from streamproof.explicit.reductions.rival import Rival
    from streamproof.explicit.reductions.search import ReducedSearch

    terms = terms_of(task.system)
    roomy = (task.budget.max_bytes or RIVAL_BYTES) >= RIVAL_BYTES
    rival = None
    if task.budget.options.tier == AUTO and roomy:
        full = replace(task, on_progress=None, after_level=lambda search: early.after_level(search, ReductionPlan()))
        rival = Rival(_compiled, full, terms)
    search = ReducedSearch(task, plan, terms, rival)
    search.run()
    if rival is not None and search.stopped is Stop.HANDOVER and rival.search is not None:
        return rival.search, COMPILED, plan.given_up(search.known)
    if rival is not None:
        rival.close()
    return search, PYTHON, plan


def _own_workers() -> int:
    """Default number of threads."""
    return min(processors(), OWN_WORKERS)


def _compiled(task: SearchTask) -> LevelSearch:
    try:
        from streamproof.explicit.compiled.search import CompiledSearch
    except ImportError as error:
        raise SystemFailure(
            f"compiled code needs llvmlite: {error}", remedy="pip install llvmlite, or --tier python"
        ) from None
    options = task.budget.options
    if options.spill is not None:
        from streamproof.explicit.compiled.spill import SpillingSearch

        return SpillingSearch(task, options.spill)
    search = (
        CompiledSearch(task, _own_workers()) if options.workers is None else CompiledSearch(task, options.workers, 1)
    )
    if options.storage is not None:
        from streamproof.explicit.compiled.checkpoint import Checkpoints

        resumes = options.resume is not None
        search.checkpoints = Checkpoints(options.storage, search, VERSION, resume=resumes)
    return search
