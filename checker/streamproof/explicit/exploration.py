"""`explore`: search all reachable states of a system and decide all properties in one pass, with the tier for its size:
generated Python for small state spaces, compiled code for large ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from streamproof import version
from streamproof.base.errors import ModelError, OutOfTime, SystemFailure, TooLarge, UsageError
from streamproof.base.files import expect_writable, new_folders
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import (
    AUTO,
    COMPILED,
    DEFAULTS,
    PYTHON,
    SearchOptions,
    bytes_about,
    either,
    peak_bytes,
    resident_bytes,
    timely,
)
from streamproof.base.records import dataclass, replace
from streamproof.explicit.findings import EarlyEnd, antecedents, coverage, judge, with_conditions
from streamproof.explicit.level_search import (
    PARTIAL_ORDER,
    SYMMETRY,
    Budget,
    LevelSearch,
    ReductionPlan,
    SearchTask,
    Stop,
    not_needed,
    processors,
)
from streamproof.explicit.search import Handover, Search
from streamproof.interrupts import abruptly, limited, requested
from streamproof.system import build as b
from streamproof.system.expr import Expr, Next, subterms
from streamproof.system.model import Kind, Property, State, System
from streamproof.system.verdict import (
    CheckResult,
    Counts,
    Coverage,
    Finding,
    Measure,
    Measured,
    OutDegree,
    Progress,
    Seconds,
    Verdict,
    number_of,
)
from streamproof.transform.assume import simplify
from streamproof.transform.constraint import within_constraint
from streamproof.transform.flatten import Rewriter
from streamproof.transform.scalarise import scalarise

if TYPE_CHECKING:
    from streamproof.explicit.cluster import Cluster

OWN_WORKERS = 8
"""Default limit on the number of threads."""
COMPILER_BYTES = 100 << 20
"""Memory of the process with the compiler and useful tables, in bytes."""
RIVAL_BYTES = 4 * COMPILER_BYTES
"""Memory limit in bytes below which a reduced search runs without the competing full search."""
COMPILING = "compiling the search"
"""The stage in which the code of a system is compiled."""
PREPARING = "preparing the search"
"""The stage in which the reductions are prepared."""
BESIDE = "full search in turns with a reduction"
"""The stage of a full search in turns."""
COMPARED = 75
"""Evaluated terms that cost as much as a term that is compared to prepare a reduction."""
SMALL_WORK, GROWING = 3_000_000, 500
"""Further limits (`search.Handover`), as `Tuning.small_states`."""


Outcome: TypeAlias = tuple[LevelSearch, str, ReductionPlan]
"""A finished search, the tier that finished it, and its reductions."""


def run_tiers(task: SearchTask, early: EarlyEnd, plan: ReductionPlan) -> Outcome:
    """Search with the tier of the options.

    `auto` begins with generated Python and restarts with compiled code if the state space is large. If that is not possible
    (llvmlite is missing, or a term is too large for machine words), the Python tier continues. Searches with stubborn sets
    are generated Python.
    """
    task = _planned(task, early, plan)
    if plan.view is not None:
        from streamproof.explicit.reductions.view_search import ViewSearch

        return _finished(ViewSearch(task, plan)), PYTHON, plan
    compiled = plan.stubborn is None and (task.compiles or task.budget.options.tier == COMPILED)
    if plan.reduces and not compiled:
        from streamproof.explicit.reductions.search import ReducedSearch

        return _finished(ReducedSearch(task, plan, terms_of(task.system))), PYTHON, plan
    search, tier = _full(replace(task, symmetry=plan.symmetry))
    return search, tier, plan


def _full(task: SearchTask) -> tuple[LevelSearch, str]:
    options = task.budget.options
    if options.tier == COMPILED or options.storage is not None or task.cluster or task.symmetry:
        try:
            compiled = _compiled(task)
        except (KeyboardInterrupt, OutOfTime) as end:
            return _cut(Search(task), end), COMPILED
        return _finished(compiled), COMPILED
    faster = options.tier == AUTO and (task.budget.max_bytes or COMPILER_BYTES) >= COMPILER_BYTES
    handover = _handover(task) if faster else None
    search = _finished(Search(task, handover))
    if search.stopped is not Stop.HANDOVER:
        return search, PYTHON
    try:
        compiled = _compiled(task)
    except (KeyboardInterrupt, OutOfTime) as end:
        return _cut(search, end), PYTHON
    except (SystemFailure, TooLarge):
        return _finished(Search(task)), PYTHON
    del search
    return _finished(compiled), COMPILED


def _cut(search: LevelSearch, end: BaseException, stage: str = COMPILING) -> LevelSearch:
    """A search that ends because compiled code, or a reduction, did not get ready; the result is what was found before."""
    search.stopped = Stop.TIME if isinstance(end, OutOfTime) else Stop.INTERRUPTED
    search.stage = stage
    return search


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


@dataclass
class Turns:
    """A reduced search and the full search in turns; the first to finish gives the result.

    Generated Python begins; with symmetry alone, compiled code takes over. `prepare` finds the reductions that apply, and
    raises `EffortSpent` if it would have to compare more terms than it is given.
    """

    task: SearchTask
    early: EarlyEnd
    prepare: Callable[[int | None], ReductionPlan]
    spent: int = 0
    """Work that preparing has cost, in evaluated terms."""
    stage: str = BESIDE
    """The stage of the full search."""

    def __post_init__(self) -> None:
        from streamproof.explicit.reductions.rival import Rival

        tell = self.task.on_progress
        beside = None if tell is None else lambda progress: tell(replace(progress, stage=self.stage))
        task = _planned(replace(self.task, on_progress=beside), self.early, ReductionPlan())
        self.terms = terms_of(task.system)
        self.rival = Rival(lambda task: Search(task, _handover(task)), _compiled, task, self.terms)

    def run(self) -> Outcome:
        """Search until one of both has finished or a limit ends both."""
        options = self.task.budget.options
        try:
            plan = self._prepared()
        except (KeyboardInterrupt, OutOfTime) as end:
            return _cut(self.rival.search or Search(self.task), end, PREPARING), self.rival.tier, ReductionPlan()
        if plan is None:
            names = [SYMMETRY] * options.symmetry + [PARTIAL_ORDER] * options.por
            return self._full(not_needed(names, 0))
        if plan.reduces:
            return self._reduced(plan)
        if self.rival.search is not None:
            self.stage = ""
            return self.rival.finish(), self.rival.tier, plan
        search, tier = _full(_planned(self.task, self.early, plan))
        return search, tier, plan

    def _full(self, plan: ReductionPlan) -> Outcome:
        assert self.rival.search is not None, "it was begun"
        return self.rival.search, self.rival.tier, plan

    def _prepared(self) -> ReductionPlan | None:
        """The reductions; None if the full search has finished before."""
        from streamproof.explicit.reductions.equivalence import EffortSpent

        budget, work = self.task.budget, self.task.budget.tuning.rival_turn
        limit: int | None = work // COMPARED
        while True:
            try:
                with _getting_ready(self.task, PREPARING):
                    return self.prepare(limit)
            except EffortSpent:
                self.spent += work
                work *= 4
            if self.rival.wins(self.spent + work):
                return None
            stop = budget.spent()
            if stop in (Stop.TIME, Stop.INTERRUPTED):
                raise OutOfTime("") if stop is Stop.TIME else KeyboardInterrupt
            limit = None if self.rival.search is None else work // COMPARED

    def _reduced(self, plan: ReductionPlan) -> Outcome:
        from streamproof.explicit.reductions.search import ReducedSearch

        task = _planned(self.task, self.early, plan)
        handover = _handover(task) if plan.stubborn is None else None
        search = ReducedSearch(task, plan, self.terms, self.rival, self.spent, handover)
        search.run()
        if search.stopped is Stop.HANDOVER and not search.beaten:
            self.spent = search.work
            try:
                return self._representatives(plan)
            except (KeyboardInterrupt, OutOfTime) as end:
                self.rival.close()
                return _cut(search, end), PYTHON, plan
            except (SystemFailure, TooLarge):
                search = ReducedSearch(task, plan, self.terms, self.rival, self.spent)
                search.run()
        if search.beaten:
            return self._full(plan.given_up(search.known))
        self.rival.close()
        return search, PYTHON, plan

    def _representatives(self, plan: ReductionPlan) -> Outcome:
        """The reduced search by compiled code."""
        from streamproof.explicit.reductions.rival import SYMMETRIC

        turn = 2 * self.spent
        beaten = False

        def after_level(search: LevelSearch) -> Stop | None:
            nonlocal turn, beaten
            work = self.spent + self.rival.work(search)
            if work >= turn:
                turn = 2 * work
                beaten = self.rival.wins(turn // SYMMETRIC)
            return Stop.HANDOVER if beaten else self.early.after_level(search, plan)

        search = _compiled(replace(self.task, symmetry=plan.symmetry, after_level=after_level))
        search.run()
        if beaten:
            known = search.known
            search.close()
            return self._full(plan.given_up(known))
        self.rival.close()
        return search, COMPILED, plan


def _planned(task: SearchTask, early: EarlyEnd, plan: ReductionPlan) -> SearchTask:
    return replace(task, after_level=lambda search: early.after_level(search, plan))


def _handover(task: SearchTask) -> Handover:
    return Handover(task.budget.tuning.small_states, SMALL_WORK, GROWING, terms_of(task.system))


@contextmanager
def _getting_ready(task: SearchTask, stage: str) -> Iterator[None]:
    """Inside, Ctrl-C and the end of the time limit interrupt work that is not the search."""
    limit = task.budget.options.time_limit
    with limited(None if limit is None else limit - task.budget.elapsed), timely(stage), abruptly(at_once=True):
        yield


def _compiled(task: SearchTask) -> LevelSearch:
    with _getting_ready(task, COMPILING):
        return _compile(task)


def _compile(task: SearchTask) -> LevelSearch:
    try:
        from streamproof.explicit.compiled.search import CompiledSearch
    except ImportError as error:
        raise SystemFailure(
            f"compiled code needs llvmlite: {error}", remedy=either("pip install llvmlite", "--tier python")
        ) from None
    options = task.budget.options
    if task.cluster is not None:
        from streamproof.explicit.distributed.search import DistributedSearch

        return DistributedSearch(task, task.cluster, version.VERSION)
    if options.spill is not None:
        from streamproof.explicit.compiled.spill import SpillingSearch

        return SpillingSearch(task, options.spill)
    search = (
        CompiledSearch(task, min(processors(), OWN_WORKERS))
        if options.workers is None
        else CompiledSearch(task, options.workers, 1)
    )
    if options.storage is not None:
        from streamproof.explicit.compiled.checkpoint import Checkpoints

        resumes = options.resume is not None
        search.checkpoints = Checkpoints(options.storage, search, version.VERSION, resume=resumes)
    return search


@dataclass(frozen=True)
class Exploration(CheckResult):
    """The result of a search of the state space. `stopped` is the value of a `level_search.Stop`.

    `counts`, `states()` and `coverage` do not include states that a reduction leaves out; `left_out` says so.
    """

    counts: Counts = Counts(0, 0, 0)
    coverage: Coverage = Coverage()
    peak_bytes: int = 0
    """Peak memory of the process, in bytes."""
    tier: str = ""
    """The tier that finished the search: `python` or `compiled`."""
    _search: LevelSearch | None = field(default=None, repr=False)

    @property
    def complete(self) -> bool:
        """Whether no limit ended the search."""
        return self.stopped is None

    @property
    def system(self) -> System:
        """The system that was searched."""
        return self.search.scalarised.original

    @property
    def search(self) -> LevelSearch:
        """The underlying search: scalar states by number, and the state graph."""
        assert self._search is not None, "set by `explore`"
        return self._search

    def states(self) -> Iterator[State]:
        """The states found, in the order of discovery; `counts.levels` has the number of states of each level."""
        return map(self.search.scalarised.decode, self.search.states())

    def vacuity(self, name: str) -> bool | None:
        """Whether a property of which no violation was found holds vacuously; None: the states found do not tell."""
        finding = self.finding(name)
        if finding.verdict is Verdict.HOLDS:
            return finding.is_vacuous()
        if finding.kind is Kind.TEMPORAL and self.system.constraint is not None:
            return None  # all behaviours may leave the constraint
        assumed = antecedents(self.search.scalarised.system.property(name))
        if any(isinstance(part, Next) for part in subterms(*assumed)):
            return None  # a condition of steps
        return False if not assumed or any(self.search.ever_true(assumed)) else None

    def detailed_coverage(self) -> Coverage:
        """`coverage` with counts for every guard conjunct, from another pass over the states.

        Without these counts after a reduced search, at a limit on time or memory, and after an interrupt.
        """
        if any(reduction.applied for reduction in self.reductions):
            return self.coverage
        return with_conditions(self.coverage, self.search)

    def measured(self, measures: Iterable[Measure]) -> tuple[Measured, ...]:
        """The largest value of each quantity in the states found.

        A lower bound after an incomplete or reduced search, and where a constraint ends behaviours. After an evaluation error
        of the model, the states found before it are measured.
        """
        rewriter = Rewriter()
        cut = any(self.counts.outside)
        exact = self.left_out is None and not cut
        states = number_of(self.counts.distinct, "reachable state")
        found: list[Measured] = []
        for measure in measures:
            mistakes = [rewriter.scalar(check.condition) for check in measure.checks]
            wrong = [c.message for c, met in zip(measure.checks, self.search.ever_true(mistakes), strict=True) if met]
            if wrong:
                found.append(
                    Measured(measure.name, measure.doc, None, exact, f"has no value in some state: {wrong[0]}")
                )
                continue
            value = self.search.largest(rewriter.scalar(measure.expr))
            ended = "a constraint ends behaviours" if cut else "the search left states out"
            because = f"the largest in {states}" + ("" if exact else f"; lower bound: {ended}")
            found.append(Measured(measure.name, measure.doc, value, exact, because))
        return tuple(found)


def explore(
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
    cluster: Cluster | None = None,
) -> Exploration:
    """Search the reachable states of `system` breadth first and decide its properties, within the limits of `options`.

    The search continues after a violation unless `options` end it early. At a limit, or after Ctrl-C, the undecided
    properties are *inconclusive*. Counts, verdicts and traces are the same for every tier, every number of workers, with
    `spill` (but for the lassos found on a graph on disk) and after `checkpoint` and `resume`. A reduced search
    has the same verdicts; `Exploration.reductions` lists the reductions that apply.

    With `spill` and several `workers`, or with `spill` and `checkpoint` or `resume` of the same folder, processes of this
    machine search the wide levels, which are files there; each level is a checkpoint. `por` does not apply.

    `on_progress` is called at most once a second, and after a complete search, before what needs all states is decided.
    `on_violation` is called with each violation at the end of its level, after the interpreter has replayed its trace. With a
    `cluster`, its processes search the wide levels, and decide whether there are cycles and fair cycles; this process finds
    where, on a graph in files of its folder.

    Raises `UsageError` for an unknown property or unusable folders, `ModelError` if the system has no initial state,
    `TooLarge` if a state has too many parts or a term is too large for the requested tier.
    """
    if options.spill is not None:
        expect_writable(options.spill, None)
        if cluster is None and options.in_files:
            from streamproof.explicit.cluster import Cluster, LocalExecutor

            expect_pyarrow("a search in files that can be resumed")
            executor = LocalExecutor("search", options.workers, options.memory)
            cluster = Cluster(executor, str(Path(options.spill).absolute()), resume=options.resume is not None)
            options = replace(options, spill=None, workers=None, checkpoint=None, resume=None)
    held = resident_bytes()
    if options.memory is not None and options.memory <= held:
        raise UsageError(
            f"memory limit of {bytes_about(options.memory)} is too low: this process already uses {bytes_about(held)}",
            remedy="raise --memory, or leave it out for a share of the machine's memory",
        )
    budget = Budget(options)
    chosen = _chosen(system, options)
    early = EarlyEnd(options.stop_when_decided, options.max_violations, on_violation)
    begun = time.perf_counter()
    with new_folders([] if options.spill is None else [options.spill]):
        with timely("preparing the search"):
            scalarised = scalarise(system)
            simple = simplify(scalarised.system)
            properties = [simple.property(p.name) for p in chosen]
            task = SearchTask(scalarised, simple, properties, budget, on_progress=on_progress, cluster=cluster)
            turns, reduced = None, ReductionPlan()
            if options.reduced:
                prepare = _reductions(task)
                if (
                    options.view is None
                    and options.tier == AUTO
                    and not task.compiles
                    and (budget.max_bytes or RIVAL_BYTES) >= RIVAL_BYTES
                ):
                    turns = Turns(task, early, prepare)
                else:
                    reduced = prepare(None)
        prepared = time.perf_counter() - begun
        with budget.listening():
            search, tier, followed = run_tiers(task, early, reduced) if turns is None else turns.run()
        if on_progress is not None and search.stopped is None:
            on_progress(search.progress(budget.elapsed))
        expect_initial_state(search, system)
        findings, mistake, liveness = judge(search, followed, early)
        left_out = followed.left_out
        if search.stopped is not None:
            left_out = f"the search ended before it had all states ({search.stopped.value})"
        compiling = prepared + search.compile_seconds
        whole = time.perf_counter() - begun
        explored = Exploration(
            findings=findings,
            counts=_counts(search, system),
            coverage=coverage(search, complete=left_out is None),
            mistake=mistake,
            stopped=None if search.stopped is None else search.stopped.value,
            left_out=left_out,
            interrupted=search.stopped is Stop.INTERRUPTED or requested(),
            seconds=Seconds(whole, compiling, whole - compiling - liveness, liveness),
            reductions=followed.report(),
            shortest=followed.view is None or followed.view.proved,
            peak_bytes=peak_bytes(),
            tier=tier,
            _search=search,
        )
        if system.constraint is None:
            return explored
        return within_constraint(system, explored)


def expect_initial_state(search: LevelSearch, system: System) -> None:
    """Raises `ModelError` if a complete search has found no state."""
    if not search.known and search.stopped is None:
        raise ModelError(
            f"{system.name} has no initial state",
            remedy="no choice of initial values satisfies its initial condition",
        )


def _reductions(task: SearchTask) -> Callable[[int | None], ReductionPlan]:
    """Finds the requested reductions that apply, by comparing at most a number of terms."""
    from streamproof.explicit.reductions.plan import plan

    options = task.budget.options
    return partial(
        plan, task.scalarised, task.system, task.properties,
        options.symmetry, options.por, options.view, options.tuning.symmetry_effort,
    )  # fmt: skip


def _chosen(system: System, options: SearchOptions) -> list[Property]:
    """The properties to decide, in declaration order. Raises `UsageError` for an unknown property."""
    names = options.properties
    wanted = None if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted((wanted or set()) - {p.name for p in system.properties})
    if unknown:
        known = ", ".join(p.name for p in system.properties) or "none"
        raise UsageError(f"{system.name} has no property {unknown[0]!r}", remedy=f"its properties are: {known}")
    return [
        p
        for p in system.properties
        if (wanted is None or p.name in wanted) and (options.deadlock or p.kind is not Kind.DEADLOCK)
    ]


def _counts(search: LevelSearch, system: System) -> Counts:
    degree = OutDegree(search.least, sum(search.generated) / search.expanded, search.most) if search.expanded else None
    outside: tuple[int, ...] = ()
    if system.constraint is not None:
        outside = search.count(b.not_(b.and_(Rewriter().scalar(c.expr) for c in system.constraint.conjuncts)))
    return Counts(search.known, search.total, len(search.levels), tuple(search.levels), search.queue, degree, outside)
