"""The grounding check: a parametric compilation, grounded at given sizes, equals the compilation at that size and
native Python.

A parametric proof uses rules that were lowered with symbolic numbers. Grounded by substitution alone (`transform.ground`),
they must be equivalent to the rules lowered with concrete numbers: a solver searches for a state that distinguishes the
two. Both must agree with the user's own functions executed as plain Python, without any symbolic value, on random
states. The sizes are the small ones, every integer in the model's source with its neighbours, and some random ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, product, zip_longest
from typing import Any

from streamproof.any.engine.equality import difference
from streamproof.base.errors import EvaluationError, Exit, Loc, StreamproofError
from streamproof.base.records import dataclass, replace
from streamproof.base.text import parameters_text
from streamproof.language.declare.model import Model
from streamproof.language.declare.spec import Spec, compile_unbounded
from streamproof.language.lower.constants import integers_in
from streamproof.language.lower.conversion import first_values_at_most
from streamproof.language.native.native import Native
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Instance, Kind, State, System
from streamproof.system.sampling import random_state
from streamproof.system.sorts import contains
from streamproof.transform.ground import Weight, ground
from streamproof.transform.unbounded import Free, Parametric, endless, ranges

SEED = 20_242
SMALL = 4
"""Number of least values of each parameter that are combined with those of the others."""
NEAR = 8
"""Number of least values of each parameter while the others keep their defaults."""
AT_RANDOM = 4
MOST = 24
"""Maximum number of parameter values to compare."""
LARGER = (16, 17, 31, 32, 33, 63, 64, 65, 100)
"""Additional values for small systems: rules that depend on size often change at one of these."""
LIGHT = 1_500
"""Maximum size of a system compared at one of `LARGER`, in terms."""
HEAVIEST = 15_000
"""Maximum size of a compared system, in terms (see `Weight`)."""
ALL_TERMS = 30_000
"""Maximum total size, in terms."""
STATES = 6
"""Number of random states per system on which plain Python is run."""
STARTS = 2_000
"""Maximum number of combinations of initial values searched for initial states of one system."""
FIRST_VALUES = 20_000
"""Minimum number of initial values of one variable from which an instance is not compared."""
STEPS = 60
"""Maximum number of steps from the states of one system."""


class ReadingsDiffer(StreamproofError):
    """A rule or property differs, at some size, from the one compiled for every size."""

    exit_code = Exit.DISAGREE


class NothingCompared(StreamproofError):
    """No value of the free parameters has an instance that the proof could be compared with."""

    exit_code = Exit.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class GroundingReport:
    """The extent of the comparison: the parameter values, and the number of plain Python runs. `left_out`: values with
    too large systems."""

    values: tuple[Mapping[str, int], ...]
    runs: int
    left_out: tuple[Mapping[str, int], ...]
    refused: tuple[Mapping[str, int], ...]
    """Values without a comparable finite system: the model rejects them, an array would be empty, or a variable has
    more than `FIRST_VALUES` initial values."""


NOTHING_COMPARED = GroundingReport((), 0, (), ())
"""The extent before a comparison."""


def candidates(spec: Spec, variant: str | None, given: Mapping[str, Any], free: Sequence[Free]) -> list[dict[str, int]]:
    """Relevant values of the free parameters: small ones, those near integers of the source, random ones."""
    cls = spec.model.variants.get(variant or "", spec.model)
    usual = {**cls.parameters(), **spec.variant_parameters.get(variant or "", {}), **given}
    chance = random.Random(SEED)
    written = dict.fromkeys(n for c in integers_in(cls, spec.properties) for n in (c, c + 1, c - 1))
    start = {f.name: _inside(f, int(usual[f.name] or 0)) for f in free}
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
    """Compares the compilations of a model. Raises `ReadingsDiffer` at the first rule or property that differs, and
    `NothingCompared`."""
    left_out: list[Mapping[str, int]] = []
    compared: list[Mapping[str, int]] = []
    refused: list[Mapping[str, int]] = []
    refusal: StreamproofError | None = None
    runs = spent = 0
    tried = candidates(spec, variant, given, parametric.free)
    further = [{**tried[0], f.name: n} for n in LARGER for f in parametric.free if _inside(f, n) == n]
    further = [values for values in further if values not in tried]
    weight = Weight(parametric)
    for values in (*tried, *further):
        heavy = weight(values)
        extra = values in further
        if extra and (heavy > LIGHT or spent + heavy > ALL_TERMS):
            continue  # nothing in the model suggests this value
        if heavy > HEAVIEST or spent + heavy > ALL_TERMS or (len(compared) >= MOST and not extra):
            left_out.append(values)
            continue
        spent += heavy
        on_progress(f"comparing the rules at {parameters_text(values)}")
        one = _ReadingComparison(spec, variant, given, parametric, values)
        if one.refusal is None:
            one.run()
            runs += one.runs
        refusal = refusal or one.refusal
        (compared if one.refusal is None else refused).append(values)
    if not compared:
        why = "each is too large" if refusal is None else refusal.one_line
        raise NothingCompared(
            f"nothing is proved: no instance could be compared, of {len(tried)} values of the free parameters ({why})",
            loc=(None if refusal is None else refusal.loc) or _heaviest(parametric, tried[0]),
            remedy="declare limits, so that small values have an instance, or use streamproof check at one size",
        )
    return GroundingReport(tuple(compared), runs, tuple(left_out), tuple(refused))


def _heaviest(parametric: Parametric, values: Mapping[str, int]) -> Loc | None:
    """The position of the variable, action or property with the most terms."""
    system = parametric.system
    bare = replace(system, variables=(), actions=(), properties=(), lemmas=())
    parts = [
        *((replace(bare, variables=(v,)), v.loc) for v in system.variables),
        *((replace(bare, actions=(a,)), a.loc) for a in system.actions),
        *((replace(bare, properties=(p,)), p.loc) for p in (*system.properties, *system.lemmas)),
    ]
    return max(parts, key=lambda part: Weight(replace(parametric, system=part[0]))(values))[1]


class _ReadingComparison:
    """The compilations at one choice of values. `refusal`: why there is no finite system at these values."""

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
        self.refusal: StreamproofError | None = None
        try:
            own = spec.variant_parameters.get(variant or "", {})
            self._model: Model = spec.model.build(variant, **{**own, **given, **values})
            with first_values_at_most(FIRST_VALUES):
                self._read, declared = compile_unbounded(
                    self._model, frozenset(), spec.properties, carries=spec.carries
                )
            variables = tuple(replace(v, initial=declared[v.name].first) for v in self._read.variables)
            self._read = replace(self._read, variables=variables)
            self._ground = ground(parametric, values)
        except StreamproofError as error:
            self.refusal = error

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

    def _compare(self, native: Native, interpreter: Interpreter, state: State, chance: random.Random) -> None:
        """Compares some rules, and the properties, in one state."""
        outside = {f.__name__: f for f in self._properties}
        after: State | None = None
        for instance in chance.sample(self._read.instances, min(len(self._read.instances), STEPS // STATES)):
            said = _outcome(partial(interpreter.take, instance, state))
            ran = _outcome(partial(native.take, state, instance, self._read))
            if said != ran and not self._is_of_twin(interpreter, native, instance, state, said, ran):
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

    def _is_of_twin(
        self,
        interpreter: Interpreter,
        native: Native,
        instance: Instance,
        state: State,
        said: Any,
        ran: Any,
    ) -> bool:
        """Whether the result of the rule is that of another instance of its label: the function has no condition of
        partial fairness, and may fail before it reaches the choice of a branch, whatever the instance."""
        if native.picks(state, instance, self._read) is None:
            return said is EvaluationError
        if said not in (None, EvaluationError):
            return False
        every = (i for i in self._read.instances if (i.action, i.args) == (instance.action, instance.args))
        twins = [i for i in every if i is not instance]
        if said is EvaluationError:
            return any(EvaluationError is _outcome(partial(native.take, state, twin, self._read)) for twin in twins)
        alike = (i for i in twins if i.label == instance.label or ran is EvaluationError)
        return any(ran == _outcome(partial(interpreter.take, twin, state)) for twin in alike)

    def _differs(self, name: str, loc: Loc | None, where: str) -> ReadingsDiffer:
        return ReadingsDiffer(
            f"{name} at {parameters_text(self._values)} differs from the one compiled for every size{where}",
            loc=loc,
            remedy="setup() or a helper treats a free parameter unlike a number; decide inside a rule, or give it a value. "
            "Or an element of all(...) or any(...) is an error behind the one that decides: state a condition for each",
        )


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
