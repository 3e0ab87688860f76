"""Which search does the work: generated Python for small state spaces, compiled code for the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from streamproof.explicit.found import Found
from streamproof.explicit.limits import Budget, Stop
from streamproof.explicit.reductions.plan import Plan
from streamproof.explicit.search import Handover, Search
from streamproof.system.errors import SystemFailure, TooLarge
from streamproof.system.model import Property, System
from streamproof.system.records import dataclass
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
HANDOVER = Handover(states=5_000, seconds=0.15, growing=500)
"""Below this, generated Python is done before the compiler has been loaded, which takes a tenth of a second."""


@dataclass(frozen=True)
class Storage:
    """A folder for checkpoints, whether to begin from the one it holds, and how many seconds apart they are written."""

    folder: Path
    resume: bool
    seconds: float


@dataclass(frozen=True)
class Task:
    """What is to be searched, with which limits."""

    scalarised: Scalarised
    system: System
    properties: Sequence[Property]
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    stop_when_decided: bool
    plan: Plan
    threads: int | None = None
    """Of the compiled tier, from its first level on; None: as many as the machine has, when they are worth it."""
    checkpoint: Storage | None = None
    spill: Path | None = None
    """Where the search goes on when memory is used up."""


def run_tiers(task: Task, tier: str) -> tuple[Found, str]:
    """Search with the tier asked for; gives the finished search and the tier that did it.

    `auto` begins with generated Python and begins again with compiled code when the state space turns out large; where that
    is not possible (llvmlite is absent, a term is too large for machine words) the Python tier goes on. Reduced searches
    are generated Python from first to last.
    """
    if task.plan.reduces:
        return _reduced(task), PYTHON
    if tier == COMPILED or task.checkpoint is not None:
        return _finished(_compiled(task)), COMPILED
    faster = tier == AUTO and (task.budget.max_bytes or COMPILER_BYTES) >= COMPILER_BYTES
    search = _python(task, HANDOVER if faster else None)
    if search.stopped is not Stop.HANDOVER:
        return search, PYTHON
    del search
    try:
        compiled = _compiled(task)
    except (SystemFailure, TooLarge):
        return _python(task, None), PYTHON
    return _finished(compiled), COMPILED


def _finished(search: Found) -> Found:
    search.run()
    return search


def _reduced(task: Task) -> Found:
    from streamproof.explicit.reductions.search import ReducedSearch

    search = ReducedSearch(
        task.scalarised,
        task.system,
        task.properties,
        task.budget,
        task.on_progress,
        task.stop_when_decided,
        plan=task.plan,
    )
    search.run()
    return search


def _python(task: Task, handover: Handover | None) -> Search:
    search = Search(
        task.scalarised,
        task.system,
        task.properties,
        task.budget,
        task.on_progress,
        task.stop_when_decided,
        handover,
    )
    search.run()
    return search


def _own_workers() -> int:
    """How many threads there are when nobody says."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, OWN_WORKERS)


def _compiled(task: Task) -> Found:
    try:
        from streamproof.explicit.compiled.search import CompiledSearch
    except ImportError as error:
        raise SystemFailure(
            f"compiled code needs llvmlite: {error}", remedy="pip install llvmlite, or --tier python"
        ) from None
    given = (task.scalarised, task.system, task.properties, task.budget, task.on_progress, task.stop_when_decided)
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
