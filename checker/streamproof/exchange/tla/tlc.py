"""TLC as a second engine: an exported system is counted and checked by TLA+'s model checker, which shares no code with ours.

TLC ends at the first violation, so it is run again without the violated claims. Its behaviours are imported and
replayed step by step by the interpreter; a behaviour that the interpreter rejects is an error.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from streamproof.base.errors import SystemFailure
from streamproof.base.records import dataclass
from streamproof.exchange.tla.module import Means, Tla, TlcClaim, TlcRun, export
from streamproof.exchange.tla.tlc_run import TlcOptions, TlcReport, Violation, installed, jar, run
from streamproof.exchange.tla.tlc_values import read_state
from streamproof.exchange.tool_run import Refuted, ToolCounts, ToolVerdict
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, State, System
from streamproof.system.verdict import Trace, Verdict

__all__ = ["TlcOptions", "TlcReport", "count", "decide", "installed", "jar"]

DEFAULT = TlcOptions()


def count(system: System, options: TlcOptions = DEFAULT) -> ToolCounts[TlcReport]:
    """Counts the reachable states and the steps with TLC.

    Raises `SystemFailure` if TLC is missing or fails, and as `tla.export` does.
    """
    model = export(system)
    report = run(model, model.runs[1], options)
    if report.error is not None:
        raise _failed(report)
    found = report.violation
    return ToolCounts(
        report.distinct,
        report.generated,
        report.depth,
        None if found is None else len(found.states),
        None if found is None else "the model makes a mistake",
        report,
    )


def decide(
    system: System, properties: Collection[str] | None = None, options: TlcOptions = DEFAULT
) -> tuple[ToolVerdict, ...]:
    """Checks `properties` (None: all in the module) with TLC, in the order of declaration.

    A model error is the result for every property not decided on its level or before; termination of a model with an
    error is inconclusive. Raises as `count` does, and `Refuted` for a behaviour that the interpreter rejects.
    """
    return _TlcJudge(system, export(system), options).decide(properties)


@dataclass(frozen=True, slots=True)
class _Found:
    """A violated claim, and the behaviour that shows it."""

    claim: TlcClaim
    trace: Trace

    @property
    def length(self) -> int:
        return len(self.trace.states)


MISSED = (
    "TLC decides this formula only on fair behaviours that stay within the constraint, and found no violation there"
)


@dataclass
class _TlcJudge:
    system: System
    model: Tla
    options: TlcOptions

    def decide(self, properties: Collection[str] | None) -> tuple[ToolVerdict, ...]:
        wanted = [
            p
            for p in self.system.properties
            if p.name not in self.model.left_out and (properties is None or p.name in properties)
        ]
        claims: dict[str, list[tuple[TlcRun, TlcClaim]]] = {p.name: [] for p in wanted}
        for one in (self.model.runs[0], *self.model.runs[2:]):
            for claim in one.claims:
                if claim.property in claims:
                    claims[claim.property].append((one, claim))
        found = self._safety([c for several in claims.values() for _, c in several if not self._endless(c)])
        mistake = min((f.length for f in found if f.claim.property is None), default=None)
        return tuple(
            self._decided(p.name, p.kind, [f for f in found if f.claim.property == p.name], mistake, claims[p.name])
            for p in wanted
        )

    def _endless(self, claim: TlcClaim) -> bool:
        """Whether it concerns infinite behaviours; then TLC may not name the violated property."""
        return claim.temporal and self.system.property(claim.property or "").kind in (Kind.TEMPORAL, Kind.TERMINATION)

    def _safety(self, claims: Sequence[TlcClaim]) -> list[_Found]:
        """The violated claims, in the order of discovery; TLC is run again without each one found."""
        general = [c for c in self.model.runs[0].claims if c.property is None]
        # TLC checks in order: conditions for safe evaluation come first, model errors last.
        left = [*claims, *general]
        found: list[_Found] = []
        mistake = math.inf
        while True:
            safety = TlcRun("safety", self.model.module, "UnfairSpec", tuple(left), "safety")
            report = run(self.model, safety, self.options)
            if report.error is not None:
                if any(f.claim.means is Means.MISTAKE for f in found):
                    return found  # after a model error, terms may have no value
                raise _failed(report)
            if report.violation is None or len(report.violation.states) > mistake:
                return found
            claim = self._claim(report.violation, left)
            found.append(_Found(claim, self._with_stutter(claim, trace_of(self.system, self.model, report.violation))))
            # A model error may occur in the state that decides the property, too, and a step may be found after a state
            # with a stuttering step, which is one step longer.
            alone = claim.means is Means.MISTAKE or claim.idle
            gone = [claim] if alone else [c for c in left if c.property == claim.property]
            left = [c for c in left if c not in gone]
            if claim.property is None:
                left = [c for c in left if c.property is not None]
                mistake = len(report.violation.states)
            if not left:
                return found

    def _with_stutter(self, claim: TlcClaim, trace: Trace) -> Trace:
        """The behaviour with the stuttering step, if the claim is about one."""
        if not claim.idle:
            return trace
        last = trace.states[-1]
        step = Interpreter(self.system).leading(self.system.instances, last, last)
        if step is None:
            raise Refuted(f"no action leads from the last state of TLC's behaviour to itself, as {claim.name} says")
        if self.system.property(claim.property or "").kind is Kind.TERMINATION:
            return Trace(trace.states, (*trace.steps, step), len(trace.states) - 1)
        return Trace((*trace.states, last), (*trace.steps, step))

    def _claim(self, violation: Violation, left: Sequence[TlcClaim]) -> TlcClaim:
        name = violation.name or ""
        if name.startswith("line "):
            name = self._at_line(int(name.split(",")[0].removeprefix("line ")))
        for claim in left:
            if claim.name == name:
                return claim
        raise SystemFailure(f"TLC found {name or 'something'} violated, which was not checked")

    def _at_line(self, number: int) -> str:
        """The name of the operator whose definition contains the line."""
        for line in reversed(self.model.modules[self.model.module].splitlines()[:number]):
            if line.endswith(" ==") and not line.startswith(" "):
                return line.removesuffix(" ==").split("(")[0]
        return ""

    def _decided(
        self,
        name: str,
        kind: Kind,
        found: Sequence[_Found],
        mistake: int | None,
        claims: Sequence[tuple[TlcRun, TlcClaim]],
    ) -> ToolVerdict:
        shown = min((f for f in found if f.claim.means is not Means.MISTAKE), key=lambda f: f.length, default=None)
        wrong = min((f for f in found if f.claim.means is Means.MISTAKE), key=lambda f: f.length, default=None)
        lengths = [n for n in (mistake, wrong.length if wrong else None) if n is not None]
        if kind is Kind.TERMINATION and mistake is not None:
            return ToolVerdict(name, kind, Verdict.INCONCLUSIVE)
        if shown is not None and all(kind is not Kind.TEMPORAL and shown.length <= n for n in lengths):
            verdict = Verdict.HOLDS if shown.claim.means is Means.REACHED else Verdict.VIOLATED
            endless = kind in (Kind.TEMPORAL, Kind.TERMINATION)
            return ToolVerdict(name, kind, verdict, None if endless else shown.length, shown.trace)
        if lengths:
            return ToolVerdict(name, kind, Verdict.ERROR, min(lengths))
        missed = any(claim.endless_only for _, claim in claims)
        for one, claim in claims:
            if self._endless(claim):
                report = run(self.model, replace(one, claims=(claim,)), self.options)
                if report.error is not None:
                    raise _failed(report)
                if report.violation is not None:
                    return ToolVerdict(
                        name, kind, Verdict.VIOLATED, None, trace_of(self.system, self.model, report.violation)
                    )
        if missed:
            return ToolVerdict(name, kind, Verdict.INCONCLUSIVE, because=MISSED)
        return ToolVerdict(name, kind, Verdict.VIOLATED if kind is Kind.REACHABLE else Verdict.HOLDS)


def _failed(report: TlcReport) -> SystemFailure:
    return SystemFailure(f"TLC failed: {report.error}", remedy=f"the command was: {report.command}")


def trace_of(system: System, model: Tla, violation: Violation) -> Trace:
    """TLC's behaviour as a trace: converted states, and for each step an instance that the interpreter takes.

    States repeated without a step are left out. Raises `Refuted` if no instance matches a step, or the first state is
    not initial, and `Unreadable` for an unknown value.
    """
    states = [read_state(system, model.variables, printed.text) for printed in violation.states]
    actions = [model.actions.get(printed.operator or "") for printed in violation.states]
    return replayed(system, states, actions, violation.back_to, stutters=violation.stutters)


def replayed(
    system: System, states: Sequence[State], actions: Sequence[str | None], back_to: int | None, *, stutters: bool
) -> Trace:
    """The trace of these states and of the actions that led to them, which may be unknown; as `trace_of`.

    `back_to` is the number, from 1, of the first state of the cycle. With `stutters`, the behaviour ends in infinite
    stuttering.
    """
    interpreter = Interpreter(system)
    if not states or states[0] not in set(interpreter.initial_states()):
        raise Refuted("TLC's behaviour does not begin in an initial state")
    kept, steps, place = [states[0]], [], [0]
    for at in range(1, len(states)):
        named = (i for i in system.instances if i.action == actions[at])
        step = interpreter.leading((*named, *system.instances), states[at - 1], states[at])
        if step is not None:
            kept.append(states[at])
            steps.append(step)
        elif states[at] != states[at - 1]:
            raise Refuted(f"no action leads from state {at} of TLC's behaviour to state {at + 1}")
        place.append(len(kept) - 1)
    if back_to is None and not stutters:
        return Trace(tuple(kept), tuple(steps))
    if back_to is not None and not 1 <= back_to <= len(place):
        raise Refuted("TLC's behaviour goes back to a state that it does not have")
    loop = len(kept) - 1 if back_to is None else place[back_to - 1]
    if loop < len(kept) - 1 and kept[-1] == kept[loop]:
        return Trace(tuple(kept[:-1]), tuple(steps), loop)
    closing = None if stutters else interpreter.leading(system.instances, kept[-1], kept[loop])
    if closing is not None:
        return Trace(tuple(kept), (*steps, closing), loop)
    if loop < len(kept) - 1:
        raise Refuted("no action closes the loop of TLC's behaviour")
    return Trace(tuple(kept), tuple(steps), loop)
