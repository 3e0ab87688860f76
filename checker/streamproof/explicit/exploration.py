"""`explore`: every reachable state of a system, every property in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from pathlib import Path

from streamproof.explicit.coverage import coverage, with_conditions
from streamproof.explicit.early import EarlyEnd
from streamproof.explicit.findings import Mistake, judge, violations
from streamproof.explicit.found import Found
from streamproof.explicit.limits import DEFAULT_MAX_STATES, Budget, resident_bytes
from streamproof.explicit.reductions.plan import ReductionPlan, plan
from streamproof.explicit.tiers import AUTO, MOST_WORKERS, PYTHON, TIERS, SearchTask, Storage, run_tiers
from streamproof.interrupts import patiently
from streamproof.system.assume import simplify
from streamproof.system.byte_sizes import bytes_about
from streamproof.system.errors import ModelError, UsageError
from streamproof.system.files import expect_writable, new_folders
from streamproof.system.memory import peak_bytes
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.records import dataclass, replace
from streamproof.system.scalarise import scalarise
from streamproof.system.timely import timely
from streamproof.system.verdict import Counts, Coverage, Finding, OutDegree, Progress, Reduction


@dataclass(frozen=True)
class Exploration:
    """What a search of the state space found."""

    system: System
    counts: Counts
    findings: tuple[Finding, ...]
    """One per property asked for, in declaration order; every trace has been replayed by the interpreter."""
    coverage: Coverage
    complete: bool
    """Whether every reachable state was expanded."""
    stopped: str | None
    """Why not: ``max_states``, ``max_depth``, ``time_limit``, ``memory``, ``interrupted``, ``evaluation error``,
    ``every property decided`` or ``max_violations``."""
    mistake: Mistake | None
    """The evaluation error of the model that ended the search, with the way to it."""
    compile_seconds: float
    explore_seconds: float
    liveness_seconds: float
    """How long the second pass took: storing the graph and deciding the temporal properties on it."""
    peak_bytes: int
    """The most memory the process has held."""
    tier: str
    """Which of `TIERS` finished the search, `python` or `compiled`."""
    reductions: tuple[Reduction, ...]
    """Those asked for, made or not. What a reduction leaves out is neither in `counts` and `states()` nor in `coverage`."""
    _search: Found = field(repr=False)

    def states(self) -> Iterator[State]:
        """The states found, in the order of discovery: level by level, as many as `counts.levels` says."""
        return map(self._search.scalarised.decode, self._search.states())

    @property
    def found(self) -> Found:
        """The search itself: its scalar states by number, and the graph of the steps between them."""
        return self._search

    def detailed_coverage(self) -> Coverage:
        """`coverage` with every guard conjunct counted, in another pass over the states.

        They are left uncounted when time, memory or patience runs out, and after a reduced search.
        """
        if any(reduction.applied for reduction in self.reductions):
            return self.coverage
        return with_conditions(self.coverage, self._search)

    def finding(self, name: str) -> Finding:
        """The finding for the property called `name`; raises `KeyError`."""
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(name)


def explore(
    system: System,
    *,
    properties: Collection[str] | None = None,
    max_states: int | None = None,
    max_depth: int | None = None,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    deadlock: bool = True,
    stop_when_decided: bool = False,
    max_violations: int | None = None,
    on_violation: Callable[[Finding], None] | None = None,
    tier: str = AUTO,
    symmetry: bool = False,
    por: bool = False,
    workers: int | None = None,
    checkpoint: Path | None = None,
    resume: Path | None = None,
    checkpoint_seconds: float = 60.0,
    memory: int | None = None,
    spill: Path | None = None,
) -> Exploration:
    """Search the reachable states of `system` breadth first and decide `properties` (all of them by default).

    A violated property stops being checked, the search goes on for the others; with `stop_when_decided` it ends at the
    end of the level where the last of them is violated, or reached; with `max_violations`, at the end of the level where
    so many are violated. `on_violation` is called with each violated finding at the end of the level that shows it, after
    the interpreter has replayed its trace. `deadlock=False` leaves out properties of that kind.

    Limits: `max_states` distinct states (by default what 32 bits can number), `max_depth` levels, the initial one being 1,
    `time_limit` seconds, `memory` bytes of this process (by default a share of the machine's). A limit, or Ctrl-C, turns
    whatever is not decided yet into *inconclusive*. With `spill`, a folder, the search goes on there when memory is used up,
    with the same results; only properties of endless behaviours then stay undecided.
    `on_progress` is called at most once a second.

    `tier`: generated Python, compiled code, or (`auto`) the first for small state spaces, the second for the others; counts,
    verdicts and traces are the same. `workers`: threads of the compiled tier, by default one for each processor that the
    process may use, up to eight; all results are the same for any number. `checkpoint`: a folder to write the
    search to at the ends of levels, so many seconds apart; `resume`: one to go on from, with the same results as without
    the break. `symmetry` and `por` (partial-order
    reduction) ask for a reduced search, with the same verdicts; `Exploration.reductions` says whether each applies. Reduced
    searches are generated Python.

    Raises `UsageError` for an unknown property or a limit that is not positive, `ModelError` when no state is initial,
    `TooLarge` when a state has too many parts, or a term is too large for the tier asked for.
    """
    if tier not in TIERS:
        raise UsageError(f"there is no tier {tier!r}", remedy=f"the tiers are: {', '.join(TIERS)}")
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise UsageError(f"workers must be from 1 to {MOST_WORKERS}, got {workers}", remedy="one for each core is best")
    if workers is not None and workers > 1 and (tier == PYTHON or symmetry or por):
        raise UsageError(
            "only the compiled tier has workers", remedy="leave out --workers, or what keeps to generated Python"
        )
    storage = _storage(checkpoint, resume, checkpoint_seconds, tier, reduced=symmetry or por)
    if spill is not None:
        _expect_spilling(spill, tier, workers or 1, storage, reduced=symmetry or por)
    budget = Budget(
        max_states=DEFAULT_MAX_STATES if max_states is None else max_states,
        max_depth=max_depth,
        time_limit=time_limit,
        max_bytes=memory,
        spills=spill is not None,
    )
    held = resident_bytes()
    if memory is not None and memory <= held:
        raise UsageError(
            f"memory of {bytes_about(memory)} is not enough: this process holds {bytes_about(held)} already",
            remedy="allow more with --memory, or leave it out for a share of the machine's",
        )
    chosen = _chosen(system, properties, deadlock)
    if max_violations is not None and max_violations < 1:
        raise UsageError(f"max_violations must be positive, got {max_violations}", remedy="leave it out for no limit")
    early = EarlyEnd(violations, stop_when_decided, max_violations, on_violation)
    with patiently(), new_folders([] if spill is None else [spill]):
        return _explore(system, chosen, budget, on_progress, early, tier, symmetry, por, workers, storage, spill)


def _explore(
    system: System,
    chosen: list[Property],
    budget: Budget,
    on_progress: Callable[[Progress], None] | None,
    early: EarlyEnd,
    tier: str,
    symmetry: bool,
    por: bool,
    workers: int | None,
    storage: Storage | None,
    spill: Path | None,
) -> Exploration:
    begun = time.perf_counter()
    with timely("preparing the search"):
        scalarised = scalarise(system)
        simple = simplify(scalarised.system)
        properties = [simple.property(p.name) for p in chosen]
        reduced = plan(scalarised, simple, properties, symmetry=symmetry, por=por)
    task = SearchTask(scalarised, simple, properties, budget, on_progress, early, reduced, workers, storage, spill)
    prepared = time.perf_counter() - begun
    with budget.listening():
        search, used, reduced = run_tiers(task, tier)
    if not search.known and search.stopped is None:
        raise ModelError(
            f"{system.name} has no initial state", remedy="no choice of initial values satisfies its initial condition"
        )
    judgement = judge(search, reduced, early)
    compiling = prepared + search.compile_seconds
    return Exploration(
        system=system,
        counts=Counts(
            search.known,
            search.total,
            len(search.levels),
            tuple(search.levels),
            search.known - search.expanded,
            _out_degree(search),
        ),
        findings=judgement.findings,
        coverage=_coverage(search, reduced),
        complete=search.stopped is None,
        stopped=None if search.stopped is None else search.stopped.value,
        mistake=judgement.mistake,
        compile_seconds=compiling,
        explore_seconds=time.perf_counter() - begun - compiling - judgement.liveness_seconds,
        liveness_seconds=judgement.liveness_seconds,
        peak_bytes=peak_bytes(),
        tier=used,
        reductions=reduced.report(),
        _search=search,
    )


def _storage(
    checkpoint: Path | None, resume: Path | None, seconds: float, tier: str, *, reduced: bool
) -> Storage | None:
    if checkpoint is not None and resume is not None:
        raise UsageError("checkpoint and resume exclude each other", remedy="resume goes on writing to its own folder")
    folder = resume if checkpoint is None else checkpoint
    if folder is None:
        return None
    if tier == PYTHON or reduced:
        raise UsageError(
            "only the compiled tier writes checkpoints",
            remedy="leave out the other tier, --symmetry and --por, or checkpoints",
        )
    return Storage(Path(folder), resume is not None, seconds)


def _expect_spilling(folder: Path, tier: str, workers: int, storage: Storage | None, *, reduced: bool) -> None:
    """Raises `UsageError` for what does not go together with spilling, and `SystemFailure` for a folder that will not do."""
    if tier == PYTHON or reduced:
        raise UsageError(
            "only the compiled tier spills to disk", remedy="leave out the other tier, --symmetry and --por, or --spill"
        )
    if workers > 1:
        raise UsageError("a search that spills to disk has one worker", remedy="leave out --workers, or --spill")
    if storage is not None:
        raise UsageError("what was spilled to disk is in no checkpoint", remedy="leave out checkpoints, or --spill")
    expect_writable(folder, None)


def _chosen(system: System, names: Collection[str] | None, deadlock: bool) -> list[Property]:
    wanted = None if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted((wanted or set()) - {p.name for p in system.properties})
    if unknown:
        known = ", ".join(p.name for p in system.properties) or "none"
        raise UsageError(f"{system.name} has no property {unknown[0]!r}", remedy=f"its properties are: {known}")
    return [
        p
        for p in system.properties
        if (wanted is None or p.name in wanted) and (deadlock or p.kind is not Kind.DEADLOCK)
    ]


def _coverage(search: Found, reduced: ReductionPlan) -> Coverage:
    """What a search covered. A reduced one leaves out states, and with stubborn sets actions, that say nothing is missing."""
    if reduced.stubborn is not None:
        return Coverage()
    found = coverage(search)
    return replace(found, never_true={}) if reduced.reduces else found


def _out_degree(search: Found) -> OutDegree | None:
    if not search.expanded:
        return None
    return OutDegree(search.least, sum(search.generated) / search.expanded, search.most)
