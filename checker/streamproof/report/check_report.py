"""The report of one check: the data printed on the console and written by ``--json``.

The JSON has the schema ``streamproof.check/1``; keys of this schema are never removed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.records import dataclass
from streamproof.system.model import Kind, parameter_json
from streamproof.system.verdict import (
    CheckResult,
    Condition,
    Counts,
    Coverage,
    FairnessEvidence,
    Finding,
    Measured,
    Verdict,
    overall,
)
from streamproof.version import VERSION

SCHEMA = "streamproof.check/1"
EXPLORED = "explored"
"""The word in place of a verdict where no property was to be checked."""

MISTAKE = "evaluation_error"
"""The file name of the trace to an evaluation error of the model, in place of a property's name."""


@dataclass(frozen=True, slots=True)
class Result:
    """One property's finding, its expected verdict, and the file of its trace."""

    finding: Finding
    expected: str | None = None
    trace_file: str | None = None

    @property
    def surprising(self) -> bool:
        """Whether the verdict contradicts the expected one; an inconclusive verdict never does."""
        decided = self.finding.verdict in (Verdict.HOLDS, Verdict.VIOLATED)
        return self.expected is not None and decided and self.expected != self.finding.verdict.value


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of one check, with its model and parameters.

    `error`: the error that ended the check early. `reproduce`: the command that repeats the check. `peak_bytes`: peak
    resident memory of the process.
    """

    model: str
    engine: str
    properties: tuple[Result, ...]
    result: CheckResult = CheckResult()
    variant: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    peak_bytes: int | None = None
    reproduce: str = ""
    error: StreamproofError | None = None
    measures: tuple[Measured, ...] = ()
    """Quantities with their largest values, for engines that visit states."""
    constraint: str | None = None
    """The text of the model's state constraint."""

    @property
    def counts(self) -> Counts | None:
        """The state counts by TLC's rules: without the states outside the constraint."""
        return None if self.result.counts is None else self.result.counts.inside

    @property
    def left_out(self) -> str | None:
        """Why counts and coverage may lack reachable states, or are not there; None if every reachable state was visited."""
        unseen = self.result.counts is None and self.result.coverage is None
        return "the engine visits no states" if unseen else self.result.left_out

    @property
    def found_outside(self) -> int:
        """The number of states outside the constraint that were found."""
        return 0 if self.result.counts is None else sum(self.result.counts.outside)

    @property
    def outside(self) -> int | None:
        """The number of states outside the constraint; None if states were left out."""
        return self.found_outside if self.left_out is None else None

    @property
    def stopped(self) -> str | None:
        """The reason for an incomplete search of an engine that counts states; None after a complete one."""
        return None if self.result.counts is None else self.result.stopped

    @property
    def verdict(self) -> Verdict:
        """The overall verdict: error before violated before inconclusive before holds."""
        verdicts = {result.finding.verdict for result in self.properties}
        if not verdicts and self.stopped is not None:  # a search without properties that did not visit every state
            verdicts = {Verdict.INCONCLUSIVE}
        return Verdict.ERROR if self.error is not None else overall(verdicts)

    @property
    def explored(self) -> bool:
        """Whether this is a complete search without properties, which has no verdict."""
        return not self.properties and self.verdict is Verdict.HOLDS

    @property
    def exit_code(self) -> Exit:
        """The exit code; of several violations safety comes first, then deadlock, then termination."""
        if self.result.interrupted:
            return Exit.INTERRUPTED
        match self.verdict:
            case Verdict.HOLDS:
                return Exit.HOLDS
            case Verdict.INCONCLUSIVE:
                return Exit.INCONCLUSIVE
            case Verdict.ERROR:
                return Exit.EVALUATION if self.error is None else self.error.exit_code
            case Verdict.VIOLATED:
                violated = {r.finding.kind for r in self.properties if r.finding.verdict is Verdict.VIOLATED}
                if violated & {Kind.INVARIANT, Kind.STEP, Kind.REACHABLE}:
                    return Exit.SAFETY
                return Exit.DEADLOCK if Kind.DEADLOCK in violated else Exit.LIVENESS

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, schema ``streamproof.check/1``."""
        result, counts, seconds = self.result, self.counts, self.result.seconds
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "model": self.model,
            "variant": self.variant,
            "parameters": {name: parameter_json(value) for name, value in self.parameters.items()},
            "engine": self.engine,
            "verdict": EXPLORED if self.explored else self.verdict.value,
            "exit_code": int(self.exit_code),
            "states": None
            if counts is None
            else {
                "distinct": counts.distinct,
                "generated": counts.generated,
                "depth": counts.depth,
                "queue": counts.queue,
            },
            "constraint": None if self.constraint is None else {"text": self.constraint, "outside": self.outside},
            "stopped": self.stopped,
            "left_out": self.left_out,
            "levels": [] if counts is None else list(counts.levels),
            "out_degree": None
            if counts is None or counts.out_degree is None
            else {**counts.out_degree._asdict(), "mean": round(counts.out_degree.mean, 6)},
            "rates": None if counts is None else _rates(counts, seconds.explore),
            "seconds": {
                "total": round(seconds.total, 6),
                "compile": round(seconds.compile, 6),
                "explore": round(seconds.explore, 6),
                "liveness": round(seconds.liveness, 6),
            },
            "memory": {"peak_bytes": self.peak_bytes},
            "properties": [_property(result) for result in self.properties],
            "measures": [
                {"name": m.name, "largest": m.value, "exact": m.exact, "because": m.because} for m in self.measures
            ],
            "coverage": None if result.coverage is None else _coverage(result.coverage),
            "reductions": [asdict(reduction) for reduction in result.reductions],
            "reproduce": self.reproduce,
            "error": None if self.error is None else _error(self.error),
        }


def _property(result: Result) -> dict[str, Any]:
    finding = result.finding
    trace = None
    if finding.trace is not None:
        # The length of a trace is its number of steps.
        trace = {
            "length": len(finding.trace.steps),
            "loop": finding.trace.loop,
            "stutters": finding.trace.stutters,
            "file": result.trace_file,
        }
    return {
        "name": finding.property,
        "kind": finding.kind.value,
        "verdict": finding.verdict.value,
        "expected": result.expected,
        "because": finding.because,
        "vacuous": finding.is_vacuous(),
        "within": finding.within,
        "trace": trace,
        "fair": [_evidence(one) for one in finding.fair],
        "sizes": finding.sizes if finding.sizes is None or isinstance(finding.sizes, str) else list(finding.sizes),
    }


def _evidence(one: FairnessEvidence) -> dict[str, Any]:
    return {
        "instance": one.label,
        "fairness": one.fairness.value,
        "taken_by_step": one.taken,
        "enabled_in_state": one.enabled,
        "not_enabled_in_state": one.disabled,
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "actions": [
            {
                "name": name,
                "generated": count,
                "distinct": coverage.distinct.get(name, 0),
                "branches": [
                    {"name": branch, "generated": steps, "distinct": new}
                    for (action, branch), (steps, new) in coverage.branches.items()
                    if action == name
                ],
            }
            for name, count in coverage.generated.items()
        ],
        "never_enabled": list(coverage.never),
        "never_taken": [{"action": action, "branch": branch} for action, branch in coverage.never_branches],
        "never_true": [{"action": name, "text": text} for name, texts in coverage.never_true.items() for text in texts],
        "expanded": coverage.expanded,
        "conjuncts": None if coverage.conditions is None else [_condition(c) for c in coverage.conditions],
    }


def _condition(condition: Condition) -> dict[str, Any]:
    loc = condition.loc
    return {
        "action": condition.action,
        "text": condition.text,
        "line": None if loc is None else loc.line,
        "states": condition.states,
    }


def _rates(counts: Counts, seconds: float) -> dict[str, int] | None:
    """States per second of search time; None if the time is too short to measure."""
    if seconds <= 0:
        return None
    return {"generated": round(counts.generated / seconds), "distinct": round(counts.distinct / seconds)}


def _error(error: StreamproofError) -> dict[str, Any]:
    loc = error.loc
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "file": None if loc is None else loc.file,
        "line": None if loc is None else loc.line,
        "remedy": error.remedy,
    }
