"""Behaviours for findings: read off the predecessors, and replayed by the interpreter before anyone sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from streamproof.system.errors import EvaluationError, Exit, StreamproofError
from streamproof.system.interpreter import Interpreter, Step
from streamproof.system.model import Instance, Property, State
from streamproof.system.scalarise import Scalarised
from streamproof.system.temporal import fairness_of, true_of
from streamproof.system.verdict import Owed, Trace

if TYPE_CHECKING:
    from streamproof.explicit.reductions.symmetry import Symmetry


class Disagreement(StreamproofError):
    """The interpreter does not confirm what an engine found: a defect of the engine, never of the model."""

    exit_code = Exit.DISAGREE


class Witnesses:
    """Turns numbers of explored states into traces of the original system that the interpreter has confirmed.

    With a symmetry, the explored states are representatives; a trace starts at one and goes on with states of the system
    that have the right representatives.
    """

    def __init__(
        self,
        scalarised: Scalarised,
        state: Callable[[int], State],
        parent: Callable[[int], int],
        symmetry: Symmetry | None = None,
        instance: Callable[[int, int], int | None] = lambda before, after: None,
    ) -> None:
        """`instance` says by which instance a state leads to another one, as far as that is known."""
        self._scalarised = scalarised
        self._interpreter = Interpreter(scalarised.original)
        self._state = state
        self._parent = parent
        self._symmetry = symmetry
        self._instance = instance

    def to(self, number: int) -> Trace:
        """A shortest behaviour from an initial state to this one."""
        numbers = [number]
        while (before := self._parent(numbers[-1])) >= 0:
            numbers.append(before)
        return self._behaviour(numbers[::-1])

    def breaking(self, prop: Property, number: int) -> Trace:
        """A shortest behaviour to a state where an invariant is false."""
        trace = self.to(number)
        self._confirm(not self._interpreter.holds(prop, trace.states[-1]), f"{prop.name} is false", trace)
        return trace

    def reaching(self, prop: Property, number: int) -> Trace:
        """A shortest behaviour to a state where a reachability property is true."""
        trace = self.to(number)
        self._confirm(self._interpreter.holds(prop, trace.states[-1]), f"{prop.name} is true", trace)
        return trace

    def stuck(self, number: int) -> Trace:
        """A shortest behaviour to a state that has no successor and is not a legal end."""
        trace = self.to(number)
        end = trace.states[-1]
        stuck = not self._interpreter.terminal(end) and next(self._interpreter.steps(end), None) is None
        self._confirm(stuck, "nothing is enabled", trace)
        return trace

    def stepping(self, prop: Property, number: int, instance: Instance) -> Trace:
        """A shortest behaviour whose last step, by `instance`, breaks a step property."""
        trace, after = self._step(number, instance, prop)
        broken = not self._interpreter.holds(prop, trace.states[-2], after)
        self._confirm(broken, f"{prop.name} is false of the last step", trace)
        return trace

    def round(self, numbers: Sequence[int]) -> Trace:
        """A behaviour that reaches the first of `numbers`, goes through all of them and back to the first for ever."""
        stem = self.to(numbers[0])
        loop = self._behaviour([*numbers, numbers[0]], initial=False)
        return Trace(stem.states + loop.states[1:-1], stem.steps + loop.steps, loop=len(stem) - 1)

    def lasso(self, stem: Sequence[int], cycle: Sequence[int]) -> Trace:
        """The behaviour that goes through `stem`, from an initial state to the first of `cycle`, and round that for ever.

        With a cycle of one state it stays there.
        """
        way = self._behaviour(stem)
        if len(cycle) == 1:
            return Trace(way.states, way.steps, loop=len(way) - 1)
        loop = self._behaviour([*cycle, cycle[0]], initial=False)
        return Trace(way.states + loop.states[1:-1], way.steps + loop.steps, loop=len(way) - 1)

    def fair(self, prop: Property, trace: Trace) -> tuple[Owed, ...]:
        """How a lasso treats every fair action instance: it must be fair, and make the formula of `prop` false."""
        assert prop.formula is not None, "a temporal property has a formula"
        self._confirm(not true_of(self._interpreter.system, prop.formula, trace), f"{prop.name} is false", trace)
        found = fairness_of(self._interpreter.system, trace)
        for owed in found:
            self._confirm(owed.paid, f"the behaviour is fair to {owed.label}", trace)
        return found

    def mistake_of_model(self, number: int) -> tuple[Trace, EvaluationError]:
        """A shortest behaviour to a state in which some instance makes the model's mistake, and the mistake."""
        trace = self.to(number)
        try:
            for _ in self._interpreter.steps(trace.states[-1]):
                pass
        except EvaluationError as mistake:
            return trace, mistake
        raise self._refuted("the model makes a mistake", trace)

    def mistake_of_property(
        self, prop: Property, number: int, instance: Instance | None = None
    ) -> tuple[Trace, EvaluationError]:
        """A shortest behaviour to a state (or by a step) where evaluating `prop` is a mistake, and the mistake."""
        trace = self.to(number) if instance is None else self._step(number, instance, prop)[0]
        before, after = (trace.states[-1], None) if instance is None else trace.states[-2:]
        try:
            self._interpreter.holds(prop, before, after)
        except EvaluationError as mistake:
            return trace, mistake
        raise self._refuted(f"evaluating {prop.name} is a mistake", trace)

    def _step(self, number: int, instance: Instance, prop: Property) -> tuple[Trace, State]:
        """A behaviour that ends with the step by `instance` at which `prop` is false or a mistake."""
        trace = self.to(number)
        if self._symmetry is not None:
            instance = self._counterpart(trace.states[-1], prop) or instance
        after = self._interpreter.take(instance, trace.states[-1])
        if after is None:
            raise self._refuted(f"{instance.label} is enabled", trace)
        return Trace((*trace.states, after), (*trace.steps, instance)), after

    def _counterpart(self, state: State, prop: Property) -> Instance | None:
        """An instance whose step from `state` breaks `prop`: what the one found is called under the names used here."""
        for step in self._interpreter.steps(state):
            try:
                if not self._interpreter.holds(prop, state, step.state):
                    return step.instance
            except EvaluationError:
                return step.instance
        return None

    def _behaviour(self, numbers: Sequence[int], *, initial: bool = True) -> Trace:
        states = [self._scalarised.decode(self._state(numbers[0]))]
        if initial:
            self._initial(states[0])
        steps: list[Instance] = []
        for before, number in pairwise(numbers):
            wanted = self._state(number)
            likely = self._likely(states[-1], self._instance(before, number))
            tried = (step for steps in (likely, self._interpreter.steps(states[-1])) for step in steps)
            found = next((step for step in tried if self._explored(step.state) == wanted), None)
            if found is None:
                trace = Trace((states[-1], self._scalarised.decode(wanted)), ())
                raise self._refuted("a step leads from the first state to the second", trace)
            steps.append(found.instance)
            states.append(found.state)
        return Trace(tuple(states), tuple(steps))

    def _likely(self, state: State, number: int | None) -> Iterator[Step]:
        """The step from a state by the instance with this number, if there is one."""
        if number is not None:
            instance = self._interpreter.system.instances[number]
            after = self._interpreter.take(instance, state)
            if after is not None:
                yield Step(instance, after)

    def _explored(self, state: State) -> State:
        """The scalar state that was explored for this state of the system."""
        scalar = self._scalarised.encode(state)
        return scalar if self._symmetry is None else self._symmetry.canonical(scalar)

    def _initial(self, first: State) -> None:
        possible = all(value in v.initial for v, value in self._scalarised.original.named(first))
        allowed = possible and bool(self._interpreter.value(self._scalarised.original.initially, first))
        self._confirm(allowed, "this state is initial", Trace((first,), ()))

    def _confirm(self, confirmed: bool, claim: str, trace: Trace) -> None:
        if not confirmed:
            raise self._refuted(claim, trace)

    def _refuted(self, claim: str, trace: Trace) -> Disagreement:
        return Disagreement(
            f"the explicit engine says that {claim}, the interpreter does not confirm it",
            remedy=f"please report this defect with the model and this behaviour: {trace!r}",
        )
