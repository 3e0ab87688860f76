"""Replay of solver models by the interpreter: every behaviour is confirmed step by step before it is reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streamproof.base.errors import EvaluationError, Exit, StreamproofError
from streamproof.symbolic.encoding import Encoding
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, Property, State
from streamproof.system.sorts import contains, show
from streamproof.system.verdict import Finding, Trace


class ReplayFailure(StreamproofError):
    """The solver and the interpreter disagree: a defect of this engine, never of the model."""

    exit_code = Exit.DISAGREE

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the symbolic engine and the interpreter disagree: {what}",
            remedy="this is a defect of the checker; please report it with the model, and use check meanwhile",
        )


class Replay:
    """Turns solver models into behaviours of the original system, and evaluates properties with the interpreter."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._original = encoding.scalarised.original
        self._interpreter = Interpreter(self._original)

    def from_start(self, model: Any, steps: int) -> Trace:
        """The behaviour of `steps` steps in the model, from an initial state. Raises `ReplayFailure`."""
        trace = self.fragment(model, steps)
        self._expect_initial(trace.states[0])
        return trace

    def fragment(self, model: Any, steps: int) -> Trace:
        """`steps` steps in the model, from any state, reachable or not. Raises `ReplayFailure`."""
        scalar = [self._encoding.state(model, at) for at in range(steps + 1)]
        states = tuple(self._encoding.scalarised.decode(s) for s in scalar)
        instances = tuple(self._original.instances[self._encoding.taken(model, at)] for at in range(steps))
        for state, encoded in zip(states, scalar, strict=True):
            if self._encoding.scalarised.encode(state) != encoded:
                raise ReplayFailure(f"{encoded} does not encode a state")
        for before, instance, after in zip(states, instances, states[1:], strict=False):
            try:
                taken = self._interpreter.take(instance, before)
            except EvaluationError as error:
                raise ReplayFailure(f"taking {instance.label} in {before} is a mistake: {error}") from error
            if taken != after:
                raise ReplayFailure(f"{instance.label} leads from {before} to {taken}, not to {after}")
        return Trace(states, instances)

    def follow(self, start: State, instances: Sequence[int]) -> Trace:
        """The behaviour of these instances from a scalar state, which must be initial, up to a model error.

        Raises `ReplayFailure` if an instance is not enabled.
        """
        state = self._encoding.scalarised.decode(start)
        self._expect_initial(state)
        trace = Trace((state,), ())
        for number in instances:
            instance = self._original.instances[number]
            try:
                after = self._interpreter.take(instance, trace.states[-1])
            except EvaluationError:
                return trace
            if after is None:
                raise ReplayFailure(f"{instance.label} cannot be taken in {trace.states[-1]}")
            if self._stray(instance, after) is not None:
                return trace
            trace = Trace((*trace.states, after), (*trace.steps, instance))
        return trace

    def decided(self, properties: Iterable[Property], trace: Trace) -> dict[Property, Finding]:
        """The findings for the properties that the end of `trace` decides. Raises `ReplayFailure` if it decides none."""
        judged = {prop: self._interpreter.decided(prop, trace) for prop in properties}
        found = {prop: finding for prop, finding in judged.items() if finding is not None}
        if not found:
            raise ReplayFailure(f"{trace.states[-1]} decides none of {', '.join(prop.name for prop in judged)}")
        return found

    def mistake(self, state: State) -> str:
        """The first evaluation error among the steps out of `state`. Raises `ReplayFailure` if there is none."""
        for instance in self._original.instances:
            try:
                after = self._interpreter.take(instance, state)
            except EvaluationError as error:
                return error.short_text
            if after is not None:
                stray = self._stray(instance, after)
                if stray is not None:
                    return stray
        raise ReplayFailure(f"no step out of {state} is a mistake")

    def _expect_initial(self, state: State) -> None:
        if not self._interpreter.is_initial(state):
            raise ReplayFailure(f"{state} is not an initial state")

    def _stray(self, instance: Instance, after: State) -> str | None:
        for v, value in self._original.named(after):
            if not contains(v.sort, value):
                return f"{v.name} leaves {v.sort} in {instance.label} ({v.name} = {show(v.sort, value)})"
        return None
