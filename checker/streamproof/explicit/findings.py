"""Findings of a search: a verdict per property with its reason, and a confirmed trace per violation; coverage; the early end.

Coverage counts actions never taken, guard conjuncts never true, antecedents of invariants. A search ends early when enough
properties are decided; each violation is reported when it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from streamproof.base.errors import Loc, TooLarge
from streamproof.base.options import bytes_about, either
from streamproof.base.records import dataclass, replace
from streamproof.explicit.level_search import LevelSearch, ReductionPlan, SearchEvent, Stop, ended, undecided
from streamproof.explicit.witness import Witnesses
from streamproof.explicit.writer import batches, counter
from streamproof.interrupts import TimeUp, alarm, limit
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr, variables
from streamproof.system.model import NOT_REACHED, REACHED, Conjunct, Instance, Kind, Property, System
from streamproof.system.verdict import Condition, Coverage, Finding, Mistake, Verdict, lasso_text, number_of

if TYPE_CHECKING:
    from streamproof.explicit.liveness.fair_cycles import Temporal

_NO_SECOND_PASS = (Stop.TIME, Stop.MEMORY, Stop.INTERRUPTED)
"""Reasons to stop after which no further pass over the states is made."""


def steps_taken(system: System, generated: Sequence[int], distinct: Sequence[int]) -> Coverage:
    """The numbers of steps and of new states per action and per labelled branch, from those of the instances."""
    steps = dict.fromkeys([*(i.action for i in system.instances), *(a.name for a in system.actions)], 0)
    new = dict(steps)
    branches = {(action.name, branch): (0, 0) for action in system.actions for branch in action.branches}
    for instance, more, fresh in zip(system.instances, generated, distinct, strict=True):
        steps[instance.action] += more
        new[instance.action] += fresh
        for branch in dict.fromkeys(instance.branches):
            before = branches.get((instance.action, branch), (0, 0))
            branches[instance.action, branch] = (before[0] + more, before[1] + fresh)
    return Coverage(steps, new, branches=branches)


def coverage(search: LevelSearch, *, complete: bool) -> Coverage:
    """Steps per action and, if the search is `complete`, the guard conjuncts that are true in no state."""
    was_true: set[tuple[str, str]] = set()
    candidates: dict[tuple[str, str], list[Expr]] = {}
    for instance, steps in zip(search.system.instances, search.generated, strict=True):
        for conjunct in _written(instance):
            if steps:
                was_true.add((instance.action, conjunct.text))
            candidates.setdefault((instance.action, conjunct.text), []).append(conjunct.expr)
    open_ = [key for key in candidates if key not in was_true] if complete else []
    true = search.ever_true([b.or_(candidates[key]) for key in open_])
    never: dict[str, tuple[str, ...]] = {}
    for (name, text), seen in zip(open_, true, strict=True):
        if not seen:
            never[name] = (*never.get(name, ()), text)
    taken = steps_taken(search.system, search.generated, search.distinct)
    return replace(taken, never_true=never, expanded=search.expanded, complete=complete)


def _written(instance: Instance) -> Iterator[Conjunct]:
    """The guard, without the conditions that split an action by its branches."""
    return (c for c in instance.guard if c.text not in (REACHED, NOT_REACHED))


def with_conditions(known: Coverage, search: LevelSearch) -> Coverage:
    """The coverage with the number of expanded states, per guard conjunct, in which some instance of its action satisfies it.

    Makes another pass over the states. The coverage is unchanged if a limit on time or memory, or an interrupt, ended the
    search or ends this pass.
    """
    if search.stopped in _NO_SECOND_PASS:
        return known
    instances: dict[tuple[str, str, Loc | None], list[Expr]] = {}
    for instance in search.system.instances:
        for conjunct in _written(instance):
            instances.setdefault((instance.action, conjunct.text, conjunct.loc), []).append(conjunct.expr)
    count = counter(search.system, [b.or_(terms) for terms in instances.values()])
    totals = [0] * len(instances)
    try:
        for batch in batches(islice(search.states(), search.expanded)):
            if search.budget.spent():
                return known
            totals = [total + more for total, more in zip(totals, count(batch), strict=True)]
    except KeyboardInterrupt:
        return known
    found = (Condition(*key, states=total) for key, total in zip(instances, totals, strict=True))
    return replace(known, conditions=tuple(found))


def antecedents(prop: Property) -> tuple[Expr, ...]:
    """The antecedents of an invariant or formula that is an implication or a conjunction of implications; else none."""
    if prop.formula is not None:
        from streamproof.explicit.liveness.tableau import triggers

        return triggers(prop.formula)
    parts = prop.expr.args if isinstance(prop.expr, e.And) else (prop.expr,)
    found = tuple(_antecedent(part) for part in parts)
    return tuple(a for a in found if a is not None) if None not in found else ()


def _antecedent(term: Expr) -> Expr | None:
    """The `a` of `not a or c`, where `c` has a part that is not negated; None for other terms."""
    if isinstance(term, e.Or) and isinstance(term.args[0], e.Not) and any(not isinstance(c, e.Not) for c in term.args):
        return term.args[0].arg
    return None


@dataclass(slots=True)
class EarlyEnd:
    """Conditions for an early end, and the violations found so far.

    Shared by all tiers of a search: violations found by one tier are kept when another tier restarts the search.
    """

    when_decided: bool = False
    """Whether to stop when every property is decided."""
    most: int | None = None
    """Number of violations after which the search stops; None: no limit."""
    report: Callable[[Finding], None] | None = None
    """Called once with each violation, after the interpreter has replayed it."""
    violated: dict[str, Finding] = field(default_factory=dict)
    _seen: tuple[LevelSearch | None, int, bool] = (None, 0, False)

    @property
    def enough(self) -> bool:
        """Whether the limit on violations is reached."""
        return self.most is not None and len(self.violated) >= self.most

    def note(self, finding: Finding) -> None:
        """Report a violation once."""
        if finding.verdict is Verdict.VIOLATED and finding.property not in self.violated:
            self.violated[finding.property] = finding
            if self.report is not None:
                self.report(finding)

    def after_level(self, search: LevelSearch, plan: ReductionPlan) -> Stop | None:
        """At the end of a level: report new violations; returns the reason to stop, or None."""
        seen = search, len(search.events), search.stuck >= 0
        if search is not self._seen[0] or seen[1:] != self._seen[1:]:
            self._seen = seen
            for finding in violations(search, plan, self.violated):
                self.note(finding)
        if self.enough:
            return Stop.VIOLATIONS
        return Stop.DECIDED if self.when_decided and all_decided(search) else None


def all_decided(search: LevelSearch) -> bool:
    """Whether a search has decided all of its properties; false if it has none."""
    return bool(search.properties) and all(
        number in search.events or (prop.kind is Kind.DEADLOCK and search.stuck >= 0)
        for number, prop in enumerate(search.properties)
    )


def judge(
    search: LevelSearch, plan: ReductionPlan, early: EarlyEnd
) -> tuple[tuple[Finding, ...], Mistake | None, float]:
    """A finding per property, in order; the model's evaluation error, if any; and the seconds of the second pass, which
    decides temporal properties.

    Also reports the violations that were not reported during the search."""
    early.after_level(search, plan)
    judges = SearchJudge(search, plan)
    mistake = judges.mistake()
    findings: list[Finding] = []
    for number, prop in enumerate(judges.originals):
        if prop.name in early.violated:
            findings.append(early.violated[prop.name])
        elif early.enough and prop.kind in (Kind.TERMINATION, Kind.TEMPORAL):
            findings.append(undecided(prop, "not decided: the search ended at the requested number of violations"))
        else:
            findings.append(judges.interruptible(number, prop, mistake))
            early.note(findings[-1])
    return tuple(findings), mistake, 0.0 if judges.temporal is None else judges.temporal.seconds


def violations(search: LevelSearch, plan: ReductionPlan, known: Container[str]) -> list[Finding]:
    """The violations found during a search, without those in `known`, shortest traces first."""
    judges = SearchJudge(search, plan)
    findings = []
    for number, prop in enumerate(judges.originals):
        event = search.events.get(number)
        if prop.name not in known and prop.kind is not Kind.REACHABLE and not (event is not None and event.mistake):
            findings.append(judges.seen(number, prop))
    return sorted(filter(None, findings), key=lambda finding: len(finding.trace or ()))


class SearchJudge:
    """The verdicts of one search. `originals`: the properties of the original system, not simplified."""

    def __init__(self, search: LevelSearch, plan: ReductionPlan) -> None:
        self.search, self.plan = search, plan
        self.originals = tuple(search.scalarised.original.property(p.name) for p in search.properties)
        self.temporal: Temporal | None = None
        if any(p.kind is Kind.TEMPORAL for p in self.originals):
            from streamproof.explicit.liveness.fair_cycles import Temporal

            self.temporal = Temporal(search, plan, lambda: self.witnesses)

    @cached_property
    def witnesses(self) -> Witnesses:
        """For the traces of violations and of reached states."""
        search = self.search
        symmetry, view = self.plan.symmetry, self.plan.view
        return Witnesses(search.scalarised, search.state, search.parent, symmetry, search.instance, view)

    def mistake(self) -> Mistake | None:
        """The model's evaluation error, if the search found one."""
        faulty = self.search.faulty
        return Mistake(*self.witnesses.mistake_of_model(faulty)) if faulty >= 0 else None

    def interruptible(self, number: int, prop: Property, mistake: Mistake | None) -> Finding:
        """The finding; *inconclusive* after an interrupt, so that the other findings are still reported."""
        try:
            return self.finding(number, prop, mistake)
        except KeyboardInterrupt:
            self.search.budget.interrupt()
            return undecided(prop, "interrupted during the temporal check; run it again to the end")

    def seen(self, number: int, prop: Property) -> Finding | None:
        """The finding for a property that was decided during the search, else None."""
        event = self.search.events.get(number)
        if event is None and prop.kind is Kind.DEADLOCK and self.search.stuck >= 0:
            event = SearchEvent(self.search.stuck, None, mistake=False)
        if event is None:
            return None
        instance = None if event.instance is None else self.search.scalarised.original.instances[event.instance]
        return self.witnesses.finding(prop, event.state, instance, mistake=event.mistake)

    def finding(self, number: int, prop: Property, mistake: Mistake | None) -> Finding:
        """The finding for any property, after the search."""
        found = self.seen(number, prop)
        if found is not None:
            return found
        doubt = self.plan.doubt(prop)
        if prop.kind is Kind.TERMINATION and doubt is None:
            if self.search.stopped is None and self.search.budget.interrupted:
                return undecided(prop, ended(Stop.INTERRUPTED))
            found_cycle = None
            try:
                with alarm():
                    found_cycle = self.search.cycle()
            except TimeUp:
                return undecided(prop, ended(Stop.TIME))
            except TooLarge as limit:
                if self.search.stopped is None:
                    return undecided(prop, str(limit))
            if found_cycle is not None:
                cycle, proved = found_cycle
                try:
                    trace = self.witnesses.round(cycle)
                except TooLarge as limit:
                    return undecided(prop, str(limit))
                assert trace.loop is not None, "a lasso"
                because = lasso_text(trace.loop, len(trace.steps) - trace.loop, fair=False)
                shortest = proved and self.search.stopped is None and not self.plan.reduces
                return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, because, shortest=shortest)
        if mistake is not None:
            return Finding(prop.name, prop.kind, Verdict.ERROR, mistake.trace, mistake.error.short_text)
        if self.search.stopped is not None:
            return undecided(prop, advice(self.search))
        if doubt is not None:
            missed = "not reached" if prop.kind is Kind.REACHABLE else "no violation"
            searched = prop.kind not in (Kind.TEMPORAL, Kind.TERMINATION)  # these only without doubt
            return undecided(
                prop, f"{missed} in {self.plan.count(self.search.known)}, but {doubt}" if searched else doubt
            )
        if prop.kind is Kind.TEMPORAL:
            assert self.temporal is not None, "made for temporal properties"
            return self.temporal.finding(prop, self.search.properties[number])
        return self._covered(prop)

    def _covered(self, prop: Property) -> Finding:
        """The verdict on a property that was not decided during a complete search."""
        states = self.plan.count(self.search.known)
        every = f"all {states}" if self.search.known != 1 else f"the only {states.removeprefix('1 ')}"
        have, are = ("have", "are") if self.search.known != 1 else ("has", "is")
        constant = "" if variables(prop.expr) else "; ranges and parameters alone decide it"
        match prop.kind:
            case Kind.INVARIANT:
                assumed = antecedents(self.search.scalarised.system.property(prop.name))
                if not assumed or any(self.search.ever_true(assumed)):
                    return _holds(prop, f"true in {every}{constant}", vacuous=False)
                if self.plan.left_out is not None:
                    because = f"true in {every}; its antecedent is false there, and {self.plan.left_out}"
                    return _holds(prop, because, vacuous=None)
                return _holds(prop, f"vacuous: its antecedent is false in {every}", vacuous=True)
            case Kind.STEP:
                taken = self.search.total - self.search.initial
                return _holds(prop, f"true of {number_of(taken, 'step')} between {states}{constant}")
            case Kind.REACHABLE:
                return Finding(prop.name, prop.kind, Verdict.VIOLATED, None, f"false in {every}")
            case Kind.DEADLOCK:
                if self.search.system.terminal is b.TRUE:
                    return _holds(prop, f"vacuous: {every} {are} terminal, so none is a deadlock", vacuous=True)
                return _holds(prop, f"{every} {have} a successor or {are} terminal")
            case Kind.TERMINATION:
                return _holds(prop, f"no cycle among {states}")
            case Kind.TEMPORAL:
                raise AssertionError("temporal properties are decided on the graph")
            case _:
                assert_never(prop.kind)


def advice(search: LevelSearch) -> str:
    """The limit that ended an incomplete search, and a remedy."""
    within = search.system.constraint
    unread = (
        f"; the constraint {within.text} does not read {', '.join(within.unread)}" if within and within.unread else ""
    )
    return _advice(search) + unread


def _advice(search: LevelSearch) -> str:
    so_far = f"after {number_of(search.known, 'state')} in {number_of(len(search.levels), 'level')}"
    so_far += f", while {search.stage}" if search.stage else ""
    smaller = "choose smaller parameters", "try to prove it with the symbolic engine"
    budget = search.budget
    match search.stopped:
        case Stop.STATES:
            return f"stopped {so_far}: max_states is {budget.max_states:,}; {either('raise it', *smaller)}"
        case Stop.DEPTH:
            return f"stopped {so_far}: max_depth is {budget.options.max_depth}; raise it or leave it out"
        case Stop.TIME:
            seconds = budget.options.time_limit or limit()
            return f"stopped {so_far}: time_limit is {seconds:g} s; {either('raise it', *smaller)}"
        case Stop.MEMORY:
            more = () if budget.options.spill else ("continue on disk with --spill DIR",)
            remedy = either("raise --memory", *more, *smaller)
            return f"stopped {so_far}: memory limit of {bytes_about(budget.max_bytes or 0)} reached; {remedy}"
        case Stop.INTERRUPTED:
            return f"interrupted {so_far}; run it again to the end"
        case Stop.DECIDED:
            return f"stopped {so_far}: every property was decided"
        case Stop.VIOLATIONS:
            return f"stopped {so_far}: the requested number of violations was found"
        case Stop.MISTAKE | Stop.HANDOVER | Stop.PAUSE | None:
            return f"ended {so_far}"


def _holds(prop: Property, because: str, *, vacuous: bool | None = False) -> Finding:
    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=vacuous)
