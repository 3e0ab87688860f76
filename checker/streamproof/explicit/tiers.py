"""Which search does the work: generated Python for small state spaces, compiled code for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from streamproof.explicit.early import EarlyEnd
from streamproof.explicit.found import Found
from streamproof.explicit.limits import Budget, Stop, processors
from streamproof.explicit.reductions.plan import ReductionPlan
from streamproof.explicit.search import Handover, Search
from streamproof.system.errors import SystemFailure, TooLarge
from streamproof.system.expr import Expr, subterms
from streamproof.system.model import Property, System
from streamproof.system.records import dataclass, replace
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Progress
from streamproof.version import VERSION

AUTO, PYTHON, COMPILED = "auto", "python", "compiled"
TIERS = (AUTO, PYTHON, COMPILED)
"""The tiers by name, the default first."""
MOST_WORKERS = 64
"""Threads of one search."""
OWN_WORKERS = 8
"""More are not made unless they are asked for."""
COMPILER_BYTES = 100 << 20
"""What the process holds when it has loaded the compiler, and tables of some use."""
RIVAL_BYTES = 4 * COMPILER_BYTES
"""With less, a reduced search does without the full one beside it, whose code would stay."""
SMALL_STATES, SMALL_WORK, GROWING = 5_000, 3_000_000, 500
"""Below this, generated Python is done before the compiler has been loaded, which takes a tenth of a second."""


@dataclass(frozen=True)
class Storage:
    """A folder for checkpoints, whether to begin from the one it holds, and how many seconds apart they are written."""

    folder: Path
    resume: bool
    seconds: float


@dataclass(frozen=True)
class SearchTask:
    """What is to be searched, with which limits."""

    scalarised: Scalarised
    system: System
    properties: Sequence[Property]
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    early: EarlyEnd
    plan: ReductionPlan
    threads: int | None = None
    """Of the compiled tier, from its first level on; None: as many as the machine has, when they are worth it."""
    checkpoint: Storage | None = None
    spill: Path | None = None
    """Where the search goes on when memory is used up."""

    def after_level(self, search: Found) -> Stop | None:
        """What the searches call at the end of a level."""
        return self.early.after_level(search, self.plan)


def run_tiers(task: SearchTask, tier: str) -> tuple[Found, str, ReductionPlan]:
    """Search with the tier asked for; gives the finished search, the tier that did it, and the reductions it made.

    `auto` begins with generated Python and begins again with compiled code when the state space turns out large; where that
    is not possible (llvmlite is absent, a term is too large for machine words) the Python tier goes on. Reduced searches
    are generated Python; with `auto`, a full search by compiled code has the answer when it is done with less work.
    """
    if task.plan.reduces:
        return _reduced(task, tier)
    found, used = _full(task, tier)
    return found, used, task.plan


def _full(task: SearchTask, tier: str) -> tuple[Found, str]:
    if tier == COMPILED or task.checkpoint is not None:
        return _finished(_compiled(task)), COMPILED
    faster = tier == AUTO and (task.budget.max_bytes or COMPILER_BYTES) >= COMPILER_BYTES
    search = _python(task, _handover(task.system) if faster else None)
    if search.stopped is not Stop.HANDOVER:
        return search, PYTHON
    del search
    try:
        compiled = _compiled(task)
    except (SystemFailure, TooLarge):
        return _python(task, None), PYTHON
    return _finished(compiled), COMPILED


def _handover(system: System) -> Handover:
    """When generated Python leaves a search of `system` to compiled code."""
    return Handover(SMALL_STATES, SMALL_WORK, GROWING, terms_of(system))


def terms_of(system: System) -> int:
    """How many terms its rules are made of: those that are evaluated for a state, at most."""
    terms: list[Expr] = []
    for i in system.instances:
        terms += [c.expr for c in i.guard] + [term for _, term in i.updates]
        terms += [check.condition for check in (*i.guard_checks, *i.effect_checks)]
    return sum(1 for _ in subterms(*terms))


def _finished(search: Found) -> Found:
    search.run()
    return search


def _reduced(task: SearchTask, tier: str) -> tuple[Found, str, ReductionPlan]:
    from streamproof.explicit.reductions.rival import Rival
    from streamproof.explicit.reductions.search import ReducedSearch

    terms = terms_of(task.system)
    full = replace(task, plan=ReductionPlan(), on_progress=None)

    def begin(early: Callable[[Found], Stop | None]) -> Found:
        return _compiled(full, early)

    roomy = (task.budget.max_bytes or RIVAL_BYTES) >= RIVAL_BYTES
    rival = Rival(begin, full.after_level, task.budget, terms) if tier == AUTO and roomy else None
    search = ReducedSearch(
        task.scalarised,
        task.system,
        task.properties,
        task.budget,
        task.on_progress,
        task.after_level,
        plan=task.plan,
        rival=rival,
        terms=terms,
    )
    search.run()
    if rival is not None and search.stopped is Stop.HANDOVER and rival.search is not None:
        return rival.search, COMPILED, task.plan.given_up(search.known)
    if rival is not None:
        rival.close()
    return search, PYTHON, task.plan


def _python(task: SearchTask, handover: Handover | None) -> Search:
    search = Search(
        task.scalarised,
        task.system,
        task.properties,
        task.budget,
        task.on_progress,
        task.after_level,
        handover,
    )
    search.run()
    return search


def _own_workers() -> int:
    """How many threads there are when nobody says."""
    return min(processors(), OWN_WORKERS)


def _compiled(task: SearchTask, early: Callable[[Found], Stop | None] | None = None) -> Found:
    try:
        from streamproof.explicit.compiled.search import CompiledSearch
    except ImportError as error:
        raise SystemFailure(
            f"compiled code needs llvmlite: {error}", remedy="pip install llvmlite, or --tier python"
        ) from None
    given = (task.scalarised, task.system, task.properties, task.budget, task.on_progress, early or task.after_level)
    if task.spill is not None:
        from streamproof.explicit.compiled.spill import SpillingSearch

        return SpillingSearch(*given, folder=task.spill)
    search = CompiledSearch(*given, _own_workers()) if task.threads is None else CompiledSearch(*given, task.threads, 1)
    if task.checkpoint is not None:
        from streamproof.explicit.compiled.checkpoint import Checkpoints

        at = task.checkpoint
        search.checkpoints = Checkpoints(at.folder, search, VERSION, resume=at.resume)
        search.checkpoint_seconds = at.seconds
    return search
