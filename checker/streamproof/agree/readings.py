"""The grounding check: what was read for every size is, at given sizes, what is read there, and what plain Python does there.

A parametric proof speaks of rules that were read with symbols for numbers. At values of the free parameters, by substitution
alone (`system.ground`), they must be the rules that are read with these numbers: a solver decides whether any state tells the
two apart. Both must do what the user's own functions do as plain Python, where no symbol is anywhere, on random states. The
values are the small ones, every integer that occurs in the model's source with its neighbours, and some at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, product, zip_longest
from typing import Any

from streamproof.language.constants import integers_in
from streamproof.language.declare import first_values_at_most
from streamproof.language.model import Model
from streamproof.language.native import Native
from streamproof.language.native_machine import NativeMachine
from streamproof.language.spec import Spec, compile_unbounded
from streamproof.symbolic.parametric.equality import difference
from streamproof.system.errors import EvaluationError, Exit, Loc, StreamproofError
from streamproof.system.ground import at_text, ground, weight
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, State, System
from streamproof.system.records import dataclass, replace
from streamproof.system.sampling import random_state
from streamproof.system.sorts import contains
from streamproof.system.unbounded import Free, Parametric, endless, ranges

SEED = 20_242
SMALL = 4
"""Values of each parameter, from the least on, that are combined with those of the others."""
NEAR = 8
"""Values of each parameter, from the least on, while the others keep their defaults."""
AT_RANDOM = 4
MOST = 24
"""Values of the parameters that are compared."""
LARGER = (16, 17, 31, 32, 33, 63, 64, 65, 100)
"""Values that are compared too where a system is light: rules that change with size often do so at one of these."""
LIGHT = 3_000
"""The most terms of a system that is compared at one of `LARGER` alone."""
HEAVIEST = 30_000
"""The most terms of a system that is compared (see `weight`)."""
ALL_TERMS = 60_000
"""The most terms of all of them."""
STATES = 6
"""Random states of each system on which plain Python is run."""
STARTS = 2_000
"""Combinations of first values among which initial states of one system are looked for."""
FIRST_VALUES = 20_000
"""First values of one variable, from which on an instance is not compared."""
STEPS = 60
"""Steps that it takes at most from the states of one system."""


class ReadingsDiffer(StreamproofError):
    """A rule or property is not, at some size, what was read for every size."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class GroundingReport:
    """What was compared: at which values, and on how many runs of plain Python. `left_out`: values that are too large."""

    values: tuple[Mapping[str, int], ...]
    runs: int
    left_out: tuple[Mapping[str, int], ...]
    refused: tuple[Mapping[str, int], ...]
    """Values at which the model has no finite system that is compared: it refuses them, an array would have no elements,
    or a variable has more than `FIRST_VALUES` first values."""


def candidates(spec: Spec, variant: str | None, given: Mapping[str, Any], free: Sequence[Free]) -> list[dict[str, int]]:
    """Values of the free parameters that are worth a look: small ones, those near integers of the source, random ones."""
    cls = spec.model.variants.get(variant or "", spec.model)
    usual = {**cls.parameters(), **spec.variant_parameters.get(variant or "", {}), **given}
    chance = random.Random(SEED)
    written = dict.fromkeys(n for c in integers_in(cls, spec.properties) for n in (c, c + 1, c - 1))
    start = {f.name: _inside(f, int(usual[f.name])) for f in free}
    small = [[_inside(f, _least(f) + n) for n in range(SMALL)] for f in free]
    kinds = [
        [{**start, f.name: _inside(f, _least(f) + n)} for n in range(NEAR) for f in free],
        [
            {**start, f.name: n}
            for n in written
            for f in free
            if _inside(f, n) == n and n - _least(f) not in range(NEAR)
        ],
        [dict(zip(start, row, strict=True)) for row in sorted(product(*small), key=sum)],
        [{f.name: _inside(f, n) for f in free} for n in written],
        [{f.name: _inside(f, _least(f) + chance.randrange(12)) for f in free} for _ in range(AT_RANDOM)],
    ]
    found = [start, *(v for row in zip_longest(*kinds) for v in row if v is not None)]
    return list({tuple(v.values()): v for v in found}.values())


def larger(spec: Spec, variant: str | None, given: Mapping[str, Any], free: Sequence[Free]) -> list[dict[str, int]]:
    """Larger values of the free parameters, each while the others keep their defaults."""
    start = candidates(spec, variant, given, free)[0]
    return [{**start, f.name: n} for n in LARGER for f in free if _inside(f, n) == n]


def _least(f: Free) -> int:
    return f.least if f.least is not None else -1 if f.most is None else min(-1, f.most)


def _inside(f: Free, value: int) -> int:
    """The nearest number within the limits."""
    low = value if f.least is None else max(value, f.least)
    return low if f.most is None else min(low, f.most)


def compare_readings(
    spec: Spec,
    variant: str | None,
    given: Mapping[str, Any],
    parametric: Parametric,
    on_progress: Callable[[str], None] = lambda _: None,
) -> GroundingReport:
    """Compare the readings of a model. Raises `ReadingsDiffer` at the first rule or property that is not the same."""
    left_out: list[Mapping[str, int]] = []
    compared: list[Mapping[str, int]] = []
    refused: list[Mapping[str, int]] = []
    runs = spent = 0
    tried = candidates(spec, variant, given, parametric.free)
    further = [v for v in larger(spec, variant, given, parametric.free) if v not in tried]
    for values in (*tried, *further):
        heavy = weight(parametric, values)
        extra = values in further
        if extra and (heavy > LIGHT or spent + heavy > ALL_TERMS):
            continue  # nothing in the model says that it is worth a look
        if heavy > HEAVIEST or spent + heavy > ALL_TERMS or (len(compared) >= MOST and not extra):
            left_out.append(values)
            continue
        spent += heavy
        on_progress(f"comparing what is read at {at_text(values)}")
        one = _Comparison(spec, variant, given, parametric, values)
        if one.possible:
            one.run()
            runs += one.runs
        (compared if one.possible else refused).append(values)
    return GroundingReport(tuple(compared), runs, tuple(left_out), tuple(refused))


class _Comparison:
    """The readings at one choice of values. `possible`: the model allows them."""

    def __init__(
        self,
        spec: Spec,
        variant: str | None,
        given: Mapping[str, Any],
        parametric: Parametric,
        values: Mapping[str, int],
    ) -> None:
        self._values = values
        self._properties = spec.properties
        self.runs = 0
        self.possible = True
        try:
            self._model: Model = spec.model.build(variant, **{**_own(spec, variant), **given, **values})
            with first_values_at_most(FIRST_VALUES):
                self._read, declared = compile_unbounded(
                    self._model, frozenset(), spec.properties, carries=spec.carries
                )
            variables = tuple(replace(v, initial=declared[v.name].first) for v in self._read.variables)
            self._read = replace(self._read, variables=variables)
            self._ground = ground(parametric, values)
        except StreamproofError:
            self.possible = False

    def run(self) -> None:
        """Raises `ReadingsDiffer`."""
        for name, loc in difference(self._ground, self._read):
            raise self._differs(name, loc, "")
        self._natively()

    def _natively(self) -> None:
        native, interpreter = Native(self._model), Interpreter(self._read)
        chance = random.Random(SEED)
        finite = not any(endless(part) for v in self._read.variables for part in ranges(v.sort))
        states = [*islice(native.initial(STARTS), 2)] if finite else []
        for state in states:
            if not _begins(self._ground, state):
                raise self._differs("the initial condition", None, f" in {_text(self._read, state)}")
        sorts = [v.sort for v in self._read.variables]
        states += [random_state(sorts, chance) for _ in range(STATES - len(states))]
        for state in states:
            self._compare(native, interpreter, state, chance)

    def _compare(self, native: NativeMachine, interpreter: Interpreter, state: State, chance: random.Random) -> None:
        """Some rules, and the properties, in one state."""
        outside = {f.__name__: f for f in self._properties}
        after: State | None = None
        for instance in chance.sample(self._read.instances, min(len(self._read.instances), STEPS // STATES)):
            said = _outcome(partial(interpreter.take, instance, state))
            if said != _outcome(partial(native.take, state, instance, self._read)):
                place = self._read.action(instance.action).loc
                raise self._differs(instance.label, place, f" in {_text(self._read, state)}")
            after = said if isinstance(said, tuple) else after
            self.runs += 1
        for prop in self._read.properties:
            steps = prop.kind is Kind.STEP
            if not (prop.kind is Kind.INVARIANT or (steps and after is not None)):
                continue
            if prop.name not in outside and not hasattr(type(self._model), prop.name):
                continue  # of a part, or of a refinement
            pair = (state, after) if steps else (state,)
            said = _outcome(partial(interpreter.holds, prop, *pair))
            if said != _outcome(partial(native.holds, outside.get(prop.name, prop.name), *pair)):
                raise self._differs(prop.name, prop.loc, f" in {_text(self._read, state)}")
            self.runs += 1

    def _differs(self, name: str, loc: Loc | None, where: str) -> ReadingsDiffer:
        return ReadingsDiffer(
            f"{name} at {at_text(self._values)} is not what was read for every size{where}",
            loc=loc,
            remedy="setup() or a helper treats a free parameter unlike a number; decide inside a rule, or give it a value",
        )


def _own(spec: Spec, variant: str | None) -> Mapping[str, Any]:
    return spec.variant_parameters.get(variant or "", {})


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except EvaluationError:
        return EvaluationError


def _begins(system: System, state: State) -> bool:
    inside = all(contains(v.sort, value) for v, value in system.named(state))
    return inside and bool(Interpreter(system).value(system.initially, state))


def _text(system: System, state: State) -> str:
    return ", ".join(f"{v.name}={value}" for v, value in system.named(state))
