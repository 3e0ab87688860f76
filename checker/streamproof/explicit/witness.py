"""Witnesses and counterexamples: built from predecessors, and confirmed by the interpreter before they are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from streamproof.base.errors import EvaluationError, Exit, StreamproofError, TooLarge
from streamproof.explicit.level_search import path_to
from streamproof.system.interpreter import Interpreter, Step
from streamproof.system.model import Instance, Kind, Property, State
from streamproof.system.verdict import Finding, Trace, Verdict
from streamproof.transform.scalarise import Scalarised

if TYPE_CHECKING:
    from streamproof.explicit.reductions.symmetry import Symmetry
    from streamproof.explicit.reductions.view import StateView


ROUNDS = 1_000
"""Largest number of rounds of a cycle of views until a state repeats."""


class Disagreement(StreamproofError):
    """The interpreter does not confirm the result of an engine: a defect of the engine, never of the model."""

    exit_code = Exit.DISAGREE


class Witnesses:
    """Traces of the original system from numbers of explored states, confirmed by the interpreter.

    With a symmetry, the explored states are canonical representatives: the states of a trace are states of the system with
    these representatives. With a view, they are those states where the stored predecessors lead; around a cycle, states with
    these views.
    """

    def __init__(
        self,
        scalarised: Scalarised,
        state: Callable[[int], State],
        parent: Callable[[int], int],
        symmetry: Symmetry | None = None,
        instance: Callable[[int, int], int | None] = lambda before, after: None,
        view: StateView | None = None,
    ) -> None:
        """`instance` returns the number of the instance from one state to another, or None if unknown."""
        self._scalarised = scalarised
        self._interpreter = Interpreter(scalarised.original)
        self._state = state
        self._parent = parent
        self._symmetry = symmetry
        self._instance = instance
        self._view = view

    def to(self, number: int) -> Trace:
        """A shortest behaviour from an initial state to this one."""
        return self._behaviour(path_to(self._parent, number))

    def finding(self, prop: Property, number: int, instance: Instance | None, *, mistake: bool) -> Finding:
        """The finding for a property that a state decides, or the step of `instance` from it; with `mistake`, its
        evaluation fails there. The trace is a shortest one."""
        trace = self.to(number) if instance is None else self._step(number, instance, prop, mistake=mistake)
        found = self._interpreter.decided(prop, trace)
        if found is None or (found.verdict is Verdict.ERROR) is not mistake:
            claims = {
                Kind.DEADLOCK: "nothing is enabled",
                Kind.REACHABLE: f"{prop.name} is true",
                Kind.STEP: f"{prop.name} is false of the last step",
            }
            claim = claims.get(prop.kind, f"{prop.name} is false")
            raise self._refuted(f"evaluating {prop.name} is a mistake" if mistake else claim, trace)
        return found

    def round(self, numbers: Sequence[int]) -> Trace:
        """A lasso whose cycle goes through `numbers` in order, with a shortest stem."""
        return self._closed(self.to(numbers[0]), numbers)

    def lasso(self, stem: Sequence[int], cycle: Sequence[int]) -> Trace:
        """The lasso of a `stem`, from an initial state to the first of `cycle`, and the `cycle`.

        A cycle of one state is stuttering.
        """
        way = self._behaviour(stem)
        return Trace(way.states, way.steps, loop=len(way) - 1) if len(cycle) == 1 else self._closed(way, cycle)

    def _closed(self, stem: Trace, cycle: Sequence[int]) -> Trace:
        states, steps, rounds = [*stem.states[:-1]], [*stem.steps], {stem.states[-1]: len(stem) - 1}
        begin = stem.states[-1]
        while True:  # by a view, a round may end in another state with the view; all rounds are possible there
            loop = self._behaviour([*cycle, cycle[0]], begin)
            states += loop.states[:-1]
            steps += loop.steps
            begin = loop.states[-1]
            if begin in rounds:
                return Trace(tuple(states), tuple(steps), loop=rounds[begin])
            if len(rounds) >= ROUNDS:
                raise TooLarge(f"a cycle of views does not close after {ROUNDS} rounds", remedy="leave out --view")
            rounds[begin] = len(states)

    def violation(self, prop: Property, trace: Trace) -> Finding:
        """The finding for a lasso, after confirming that it is fair and makes the formula of `prop` false."""
        from streamproof.system.temporal import fairness_of, true_of, violation

        system = self._interpreter.system
        assert prop.formula is not None, "a temporal property has a formula"
        self._confirm(not true_of(system, prop.formula, trace), f"{prop.name} is false", trace)
        for evidence in fairness_of(system, trace):
            self._confirm(evidence.satisfied, f"the behaviour is fair to {evidence.label}", trace)
        return violation(system, prop, trace)

    def mistake_of_model(self, number: int) -> tuple[Trace, EvaluationError]:
        """A shortest behaviour to a state with an evaluation error of the model, and the error."""
        trace = self.to(number)
        try:
            for _ in self._interpreter.steps(trace.states[-1]):
                pass
        except EvaluationError as mistake:
            return trace, mistake
        raise self._refuted("the model makes a mistake", trace)

    def _step(self, number: int, instance: Instance, prop: Property, *, mistake: bool) -> Trace:
        """A behaviour that ends with the step of `instance` at which `prop` is false or, with `mistake`, its evaluation
        fails."""
        trace = self.to(number)
        if self._symmetry is not None:
            instance = self._counterpart(trace.states[-1], prop, mistake=mistake) or instance
        after = self._interpreter.take(instance, trace.states[-1])
        if after is None:
            raise self._refuted(f"{instance.label} is enabled", trace)
        return Trace((*trace.states, after), (*trace.steps, instance))

    def _counterpart(self, state: State, prop: Property, *, mistake: bool) -> Instance | None:
        """The instance of the original system whose step from `state` breaks `prop`, or fails its evaluation; or None."""
        for step in self._interpreter.steps(state):
            found = self._interpreter.decided(prop, Trace((state, step.state), (step.instance,)))
            if found is not None and (found.verdict is Verdict.ERROR) is mistake:
                return step.instance
        return None

    def _behaviour(self, numbers: Sequence[int], begin: State | None = None) -> Trace:
        """The behaviour through explored states: from an initial state, or from a state like the first one."""
        states = [self._scalarised.decode(self._state(numbers[0])) if begin is None else begin]
        if begin is None:
            claim = "this state is initial"
            self._confirm(self._interpreter.is_initial(states[0]), claim, Trace((states[0],), ()))
        steps: list[Instance] = []
        for before, number in pairwise(numbers):
            wanted = self._canonical(self._state(number))
            likely = self._likely(states[-1], self._instance(before, number))
            tried = (step for steps in (likely, self._interpreter.steps(states[-1])) for step in steps)
            matching = (step for step in tried if self._explored(step.state) == wanted)
            found = next(matching, None)
            if self._view is not None and found is not None:  # the explored state itself, if a step leads there
                with suppress(EvaluationError):  # of a later instance
                    alike = chain((found,), matching)
                    found = next((step for step in alike if self._scalarised.encode(step.state) == wanted), found)
            if found is None:
                trace = Trace((states[-1], self._scalarised.decode(wanted)), ())
                raise self._refuted("a step leads from the first state to the second", trace)
            steps.append(found.instance)
            states.append(found.state)
        return Trace(tuple(states), tuple(steps))

    def _likely(self, state: State, number: int | None) -> Iterator[Step]:
        """The step of the instance with this number from a state, if it is enabled."""
        if number is not None:
            instance = self._interpreter.system.instances[number]
            after = self._interpreter.take(instance, state)
            if after is not None:
                yield Step(instance, after)

    def _explored(self, state: State) -> State:
        """The explored scalar state of a state of the system."""
        return self._canonical(self._scalarised.encode(state))

    def _canonical(self, scalar: State) -> State:
        """One state of the orbit (compiled code has other representatives), or of the view."""
        if self._view is not None:
            return self._view.known(scalar)
        return scalar if self._symmetry is None else self._symmetry.canonical(scalar)

    def _confirm(self, confirmed: bool, claim: str, trace: Trace) -> None:
        if not confirmed:
            raise self._refuted(claim, trace)

    def _refuted(self, claim: str, trace: Trace) -> Disagreement:
        return Disagreement(
            f"the explicit engine reports that {claim}, the interpreter does not confirm it",
            remedy=f"please report this defect with the model and this behaviour: {trace!r}",
        )
