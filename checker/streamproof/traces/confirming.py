"""Confirmation of an engine's traces: no trace is reported unless the interpreter replays it and it shows its finding."""

from __future__ import annotations

from streamproof.base.errors import EvaluationError, Exit, StreamproofError
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import CheckResult, Finding, Trace, Verdict
from streamproof.traces.replay import ReplayError, replay, verify


class Unconfirmed(StreamproofError):
    """An engine's trace that the interpreter does not confirm: one of the two is wrong, and no verdict is given."""

    exit_code = Exit.DISAGREE


def confirm_finding(system: System, finding: Finding, engine: str) -> EvaluationError | None:
    """Confirms the trace of a finding, if it has one; returns the evaluation error that it leads to, if that is the finding.

    Raises `Unconfirmed`.
    """
    if finding.trace is None:
        return None
    prop = system.property(finding.property)
    try:
        if finding.verdict is not Verdict.ERROR:
            verify(system, prop, finding.trace)
            return None
        replay(system, finding.trace)
        return _mistake(system, prop, finding.trace)
    except ReplayError as failure:
        raise Unconfirmed(
            f"the {engine} engine's trace for {prop.name} is not confirmed by the interpreter: {failure.message}",
            remedy="this is a defect of streamproof; please report it with the model",
        ) from failure


def confirm_result(system: System, result: CheckResult, engine: str) -> None:
    """Confirms the traces of all findings of a result, and the one to an evaluation error of the model. Raises
    `Unconfirmed`, and `ReplayError` for the latter."""
    if result.mistake is not None:
        replay(system, result.mistake.trace)
    for finding in result.findings:
        if result.mistake is None or finding.verdict is not Verdict.ERROR:  # else it is the error of the model
            confirm_finding(system, finding, engine)


def _mistake(system: System, prop: Property, trace: Trace) -> EvaluationError:
    """The evaluation error at the end of a trace: of a step from its last state, or of the property. Raises `ReplayError`."""
    interpreter = Interpreter(system)
    try:
        for _ in interpreter.steps(trace.states[-1]):
            pass
        if prop.kind is not Kind.STEP:
            interpreter.holds(prop, trace.states[-1])
        elif len(trace.states) > 1:
            interpreter.holds(prop, trace.states[-2], trace.states[-1])
    except EvaluationError as error:
        return error
    raise ReplayError("no evaluation error shows at its end")
