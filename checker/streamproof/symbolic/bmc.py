"""Bounded model checking (BMC): every behaviour up to a number of steps, shortest counterexamples first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamproof.base.errors import UsageError
from streamproof.base.options import DEFAULTS, SearchOptions, timely
from streamproof.base.records import dataclass
from streamproof.symbolic.encoding import Encoding
from streamproof.symbolic.goals import ENDLESS, candid, chosen, finding, goals
from streamproof.symbolic.search import Unrolling
from streamproof.symbolic.solver import INTERRUPTED, Effort, SolverBudget
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import CheckResult, Finding, Seconds, Verdict, number_of
from streamproof.transform.constraint import within_constraint
from streamproof.transform.scalarise import scalarise


@dataclass(frozen=True)
class Bounded(CheckResult):
    """The result of a bounded search."""

    depth: int = -1
    """The number of steps covered completely (-1: not even the initial states)."""
    complete: bool = False
    """Whether longer behaviours reach no new state, so that the verdicts are final."""
    queries: int = 0


def look_ahead(
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Effort], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Bounded:
    """`bmc` as an engine: by default all properties but temporal ones and termination, which have no depth."""
    names = options.properties
    if names is None:
        names = [p.name for p in system.properties if p.kind not in (Kind.TERMINATION, Kind.TEMPORAL)]
    return bmc(system, options.depth, tuple(names), options.query_limit, on_progress, seconds=options.time_limit)


def bmc(
    system: System,
    depth: int,
    properties: Sequence[str] | None = None,
    query_limit: float | None = None,
    on_progress: Callable[[Effort], None] | None = None,
    *,
    seconds: float | None = None,
    completeness: bool = True,
    integers: bool = False,
) -> Bounded:
    """Searches for behaviours of at most `depth` steps that decide the `properties` (names; None: all of them).

    Counterexamples and witnesses are shortest, and replayed by the interpreter. Without one, a property is
    `INCONCLUSIVE`, unless (with `completeness`) the solver shows that every longer behaviour only revisits states.
    `query_limit` limits one query, `seconds` the whole run, both in seconds. `integers` uses the solver's integers instead
    of bit-vectors: the same verdicts, faster on models that mainly add counters. Ctrl-C ends the run with the findings
    so far.

    Raises `UsageError` for an unknown property or a negative depth, `TooLarge` if the state has too many components,
    and `ReplayFailure` if interpreter and solver disagree.
    """
    if depth < 0:
        raise UsageError(f"a depth of {depth} steps", remedy="0 looks at the initial states only; choose 0 or more")
    requested = chosen(system, properties)
    budget = SolverBudget(query_limit, seconds, on_progress)
    with timely("preparing the search"):
        encoding = Encoding(scalarise(system), integers=integers)
        search = Unrolling(encoding, goals(encoding, requested), budget)

    def work() -> None:
        search.to(depth)
        if completeness:
            search.close()

    budget.run("searching", work)
    found = tuple(candid(system, verdict(search, prop, budget.stopped)) for prop in requested)
    bounded = Bounded(
        findings=found,
        stopped=budget.stopped,
        interrupted=budget.stopped == INTERRUPTED,
        seconds=Seconds(budget.elapsed, 0.0, budget.elapsed),
        depth=search.depth,
        complete=search.exhausted,
        queries=budget.queries,
    )
    return within_constraint(system, bounded)


def verdict(search: Unrolling, prop: Property, stopped: str | None) -> Finding:
    """The finding of a search for one property; `stopped` is the reason for an early end, if any."""
    if prop in search.findings:
        return search.findings[prop]
    if search.mistake is not None and prop.kind not in ENDLESS:
        return Finding(prop.name, prop.kind, Verdict.ERROR, *search.mistake)
    if search.exhausted and prop.kind not in ENDLESS and prop not in search.given_up:
        return _exhausted(search, prop)
    return finding(prop, Verdict.INCONCLUSIVE, _advice(search, prop, stopped))


def _advice(search: Unrolling, prop: Property, stopped: str | None) -> str:
    if prop.kind in ENDLESS:
        return ENDLESS[prop.kind]
    if prop in search.given_up:
        return f"the solver gave up after {so_far(search.given_up[prop])}; raise the timeout, or use check"
    covered = so_far(search.depth)
    if stopped is not None:
        more = "run it again to the end" if stopped == INTERRUPTED else "allow more time, or use check"
        return f"{stopped}: {nothing(prop)} in {covered}; {more}"
    if search.blind:
        return f"the solver gave up on evaluation errors after {covered}; raise the timeout, or use check"
    return f"{nothing(prop)} in {covered}; raise the depth, prove it by induction, or use check"


def _exhausted(search: Unrolling, prop: Property) -> Finding:
    final = Verdict.VIOLATED if prop.kind is Kind.REACHABLE else Verdict.HOLDS
    if search.empty:
        return Finding(prop.name, prop.kind, final, None, "vacuous: the system has no initial state", vacuous=True)
    because = f"no behaviour reaches a new state after {number_of(search.depth, 'step')}"
    if prop.kind is Kind.REACHABLE:
        return finding(prop, final, f"true in no reachable state: {because}")
    return finding(prop, final, f"{nothing(prop)}, and {because}")


def nothing(prop: Property) -> str:
    """The explanation of a property without counterexample or witness."""
    return "not reached" if prop.kind is Kind.REACHABLE else "no violation"


def so_far(depth: int) -> str:
    """The description of the behaviours up to `depth` steps."""
    if depth < 0:
        return "no state at all"
    return "the initial states" if depth == 0 else f"the first {number_of(depth, 'step')}"
