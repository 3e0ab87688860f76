"""Findings of a search: a verdict per property with its reason, and a confirmed trace per violation."""

from __future__ import annotations

from collections.abc import Container
from typing import assert_never

from streamproof.explicit.coverage import antecedents
from streamproof.explicit.early import EarlyEnd
from streamproof.explicit.level_search import LevelSearch, SearchEvent
from streamproof.explicit.limits import Stop
from streamproof.explicit.liveness.findings import Temporal, ended
from streamproof.explicit.reductions.plan import ReductionPlan
from streamproof.explicit.witness import Witnesses
from streamproof.interrupts import TimeUp, alarm, limit
from streamproof.system import build as b
from streamproof.system.byte_sizes import bytes_about
from streamproof.system.errors import TooLarge
from streamproof.system.expr import variables
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Mistake, Trace, Verdict
from streamproof.system.wording import lasso_text, number_of


def judge(
    search: LevelSearch, plan: ReductionPlan, early: EarlyEnd
) -> tuple[tuple[Finding, ...], Mistake | None, float]:
    """A finding per property, in order; the model's evaluation error, if any; and the seconds of the second pass, which
    decides temporal properties.

    Also reports the violations that were not reported during the search."""
    early.after_level(search, plan)
    judges = _judge(search, plan)
    mistake = Mistake(*judges.witnesses.mistake_of_model(search.faulty)) if search.faulty >= 0 else None
    findings: list[Finding] = []
    for number, prop in enumerate(judges.originals):
        if prop.name in early.violated:
            findings.append(early.violated[prop.name])
        elif early.enough and prop.kind in (Kind.TERMINATION, Kind.TEMPORAL):
            because = "not decided: the search ended at the requested number of violations"
            findings.append(Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because))
        else:
            findings.append(judges.interruptible(number, prop, mistake))
            early.note(findings[-1])
    return tuple(findings), mistake, judges.temporal.seconds


def violations(search: LevelSearch, plan: ReductionPlan, known: Container[str]) -> list[Finding]:
    """The violations found during a search, without those in `known`, shortest traces first."""
    judges = _judge(search, plan)
    findings = []
    for number, prop in enumerate(judges.originals):
        event = search.events.get(number)
        if prop.name not in known and prop.kind is not Kind.REACHABLE and not (event is not None and event.mistake):
            findings.append(judges.seen(number, prop))
    return sorted(filter(None, findings), key=lambda finding: len(finding.trace or ()))


def _judge(search: LevelSearch, plan: ReductionPlan) -> _Judge:
    original = search.scalarised.original
    witnesses = Witnesses(search.scalarised, search.state, search.parent, plan.symmetry, search.instance)
    originals = tuple(original.property(p.name) for p in search.properties)
    return _Judge(search, plan, originals, witnesses, Interpreter(original), Temporal(search, plan, witnesses))


@dataclass(frozen=True, slots=True)
class _Judge:
    search: LevelSearch
    plan: ReductionPlan
    originals: tuple[Property, ...]
    """The properties of the original system, not simplified."""
    witnesses: Witnesses
    interpreter: Interpreter
    temporal: Temporal

    def interruptible(self, number: int, prop: Property, mistake: Mistake | None) -> Finding:
        """The finding; *inconclusive* after an interrupt, so that the other findings are still reported."""
        try:
            return self.finding(number, prop, mistake)
        except KeyboardInterrupt:
            self.search.budget.interrupt()
            because = "interrupted during the temporal check; run it again to the end"
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)

    def seen(self, number: int, prop: Property) -> Finding | None:
        """The finding for a property that was decided during the search, else None."""
        event = self.search.events.get(number)
        if event is not None:
            return self._of_event(prop, event)
        if prop.kind is Kind.DEADLOCK and self.search.stuck >= 0:
            trace = self.witnesses.stuck(self.search.stuck)
            return _violated(prop, trace, f"nothing is enabled after {number_of(len(trace) - 1, 'step')}")
        return None

    def finding(self, number: int, prop: Property, mistake: Mistake | None) -> Finding:
        """The finding for any property, after the search."""
        found = self.seen(number, prop)
        if found is not None:
            return found
        if prop.kind is Kind.TERMINATION:
            if self.search.stopped is None and self.search.budget.interrupted:
                return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(Stop.INTERRUPTED))
            try:
                with alarm():
                    cycle = self.search.cycle()
            except TimeUp:
                return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, ended(Stop.TIME))
            except TooLarge as limit:
                because = str(limit) if self.search.stopped is None else advice(self.search)
                return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because)
            if cycle is not None:
                trace = self.witnesses.round(cycle)
                return _violated(prop, trace, lasso_text(len(trace) - len(cycle), len(cycle), fair=False))
        if mistake is not None:
            return Finding(prop.name, prop.kind, Verdict.ERROR, mistake.trace, mistake.error.short_text)
        if self.search.stopped is not None:
            return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, advice(self.search))
        if prop.kind is Kind.TEMPORAL:
            return self.temporal.finding(prop, self.search.properties[number])
        return self._covered(prop)

    def _of_event(self, prop: Property, event: SearchEvent) -> Finding:
        instance = None if event.instance is None else self.search.scalarised.original.instances[event.instance]
        if event.mistake:
            trace, error = self.witnesses.mistake_of_property(prop, event.state, instance)
            return Finding(prop.name, prop.kind, Verdict.ERROR, trace, error.short_text)
        if prop.kind is Kind.REACHABLE:
            trace = self.witnesses.reaching(prop, event.state)
            because = f"reached after {number_of(len(trace) - 1, 'step')}"
            return Finding(prop.name, prop.kind, Verdict.HOLDS, trace, because)
        if instance is None:
            trace = self.witnesses.breaking(prop, event.state)
            failing = self.interpreter.failing(prop.conjuncts, trace.states[-1])
            because = f"false after {number_of(len(trace) - 1, 'step')}"
        else:
            trace = self.witnesses.stepping(prop, event.state, instance)
            failing = self.interpreter.failing(prop.conjuncts, trace.states[-2], trace.states[-1])
            because = f"broken by step {len(trace) - 1}, {instance.label}"
        if failing is not None and failing.text and len(prop.conjuncts) > 1:
            because += f": {failing.denied}"
        return _violated(prop, trace, because)

    def _covered(self, prop: Property) -> Finding:
        """The verdict on a property that was not decided during a complete search."""
        states = self.plan.count(self.search.known)
        every = f"all {states}" if self.search.known != 1 else f"the only {states.removeprefix('1 ')}"
        have, are = ("have", "are") if self.search.known != 1 else ("has", "is")
        constant = "" if variables(prop.expr) else "; ranges and parameters alone decide it"
        match prop.kind:
            case Kind.INVARIANT:
                # A reduction may leave out the only states in which the antecedent is true.
                whole = not self.plan.reduces
                assumed = antecedents(self.search.scalarised.system.property(prop.name)) if whole else ()
                if assumed and not any(self.search.ever_true(assumed)):
                    because = f"vacuous: its antecedent is false in {every}"
                    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=True)
                return _holds(prop, f"true in {every}{constant}")
            case Kind.STEP:
                taken = self.search.total - self.search.initial
                return _holds(prop, f"true of {number_of(taken, 'step')} between {states}{constant}")
            case Kind.REACHABLE:
                return Finding(prop.name, prop.kind, Verdict.VIOLATED, None, f"false in {every}")
            case Kind.DEADLOCK:
                if self.search.system.terminal is b.TRUE:
                    because = f"vacuous: {every} {are} terminal, so none is a deadlock"
                    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, vacuous=True)
                return _holds(prop, f"{every} {have} a successor or {are} terminal")
            case Kind.TERMINATION:
                return _holds(prop, f"no cycle among {states}")
            case Kind.TEMPORAL:
                raise AssertionError("temporal properties are decided on the graph")
            case _:
                assert_never(prop.kind)


def advice(search: LevelSearch) -> str:
    """The limit that ended an incomplete search, and a remedy."""
    so_far = f"after {number_of(search.known, 'state')} in {number_of(len(search.levels), 'level')}"
    smaller = "choose smaller parameters, or try to prove it with the symbolic engine"
    budget = search.budget
    match search.stopped:
        case Stop.STATES:
            return f"stopped {so_far}: max_states is {budget.max_states:,}; raise it, {smaller}"
        case Stop.DEPTH:
            return f"stopped {so_far}: max_depth is {budget.options.max_depth}; raise it or leave it out"
        case Stop.TIME:
            return f"stopped {so_far}: time_limit is {budget.options.time_limit or limit():g} s; raise it, {smaller}"
        case Stop.MEMORY:
            more = "raise --memory" if budget.options.spill else "raise --memory, continue on disk with --spill DIR"
            return f"stopped {so_far}: memory limit of {bytes_about(budget.max_bytes or 0)} reached; {more}, {smaller}"
        case Stop.INTERRUPTED:
            return f"interrupted {so_far}; run it again to the end"
        case Stop.DECIDED:
            return f"stopped {so_far}: every property was decided"
        case Stop.VIOLATIONS:
            return f"stopped {so_far}: the requested number of violations was found"
        case Stop.MISTAKE | Stop.HANDOVER | Stop.PAUSE | None:
            return f"ended {so_far}"


def _violated(prop: Property, trace: Trace, because: str) -> Finding:
    return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, because)


def _holds(prop: Property, because: str) -> Finding:
    return Finding(prop.name, prop.kind, Verdict.HOLDS, None, because)
