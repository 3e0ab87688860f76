"""Reachable states of small instances, as samples that filter candidates before a proof."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product

from streamproof.any.engine.local import Local
from streamproof.base.errors import EvaluationError, StreamproofError
from streamproof.system.interpreter import Interpreter
from streamproof.system.leaves import encode
from streamproof.system.model import State, System
from streamproof.system.sorts import Value
from streamproof.transform.unbounded import Free, Parametric, any_length

SEED = 20_241
MOST_INSTANCES = 8
STEPS = 320
"""Total number of steps in one instance, in walks of `WALK` steps each."""
WALK = 40


Instantiate = Callable[[Mapping[str, int]], System]
"""The finite system for values of the free parameters."""


def small_values(free: Sequence[Free]) -> Iterator[Mapping[str, int]]:
    """Small values of the free parameters within their limits, in ascending order."""
    choices = []
    for f in free:
        least = f.least if f.least is not None else 0 if f.most is None or f.most >= 0 else f.most
        choices.append([n for n in range(least, least + 3) if f.most is None or n <= f.most])
    every = sorted(product(*(enumerate(c) for c in choices)), key=lambda row: (sum(at for at, _ in row), row))
    for row in islice(every, MOST_INSTANCES):
        yield {f.name: n for f, (_, n) in zip(free, row, strict=True)}


def samples(parametric: Parametric, view: Local, instantiate: Instantiate) -> Iterator[Mapping[str, Value]]:
    """The sampled states, in the local view of each index: values by variable of the view."""
    for values, state in sampled_states(parametric, instantiate):
        yield from ({**leaves, **values} for leaves in _seen(parametric, view, state))


def sampled_states(parametric: Parametric, instantiate: Instantiate) -> Iterator[tuple[Mapping[str, int], State]]:
    """States on random walks through small instances, with the values of the free parameters.

    Instances that the model rejects are skipped, and those with an empty array, of which nothing can be seen at an index.
    """
    chance = random.Random(SEED)
    for values in small_values(parametric.free):
        try:
            system = instantiate(values)
        except StreamproofError:
            continue
        arrays = [at for at, v in enumerate(parametric.system.variables) if any_length(v.sort)]
        yield from ((values, state) for state in _walks(system, chance) if all(state[at] for at in arrays))


def _walks(system: System, chance: random.Random) -> Iterator[State]:
    interpreter = Interpreter(system)
    starts = list(islice(interpreter.initial_states(), 16))
    seen: set[State] = set()
    for _ in range(STEPS // WALK if starts else 0):
        state = chance.choice(starts)
        for _ in range(WALK):
            if state not in seen:
                seen.add(state)
                yield state
            after = _step(interpreter, state, chance)
            if after is None:
                break
            state = after


def _step(interpreter: Interpreter, state: State, chance: random.Random) -> State | None:
    instances = list(interpreter.system.instances)
    chance.shuffle(instances)
    for instance in instances:
        try:
            after = interpreter.take(instance, state)
        except EvaluationError:
            continue
        if after is not None:
            return after
    return None


def _seen(parametric: Parametric, view: Local, state: State) -> Iterator[Mapping[str, Value]]:
    """The local view of the state at each index; the state itself without arrays of unbounded length."""
    lengths = [len(value) for v, value in zip(parametric.system.variables, state, strict=True) if any_length(v.sort)]
    for at in range(max(lengths, default=1)):
        leaves: dict[str, Value] = {}
        names = iter(view.terms)
        for v, value in zip(parametric.system.variables, state, strict=True):
            sort = v.sort
            if any_length(sort):
                sort, value = sort.element, value[min(at, len(value) - 1)]
            for part in encode(sort, value):
                leaves[next(names)] = part
        yield leaves
