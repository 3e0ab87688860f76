"""The second opinion of the reading: rules and properties of a system against the functions of its model, run by Python.

All engines start from the same lowering. This comparison runs the functions themselves, with every answer to their choices,
in initial states, states that steps reach, their neighbours, and random ones. The number of runs is bounded, and their time,
because a function of a model may take seconds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, product, takewhile
from time import process_time
from types import FunctionType
from typing import Any, assert_never

from streamproof.base.errors import EvaluationError, Exit, Loc, ModelError, StreamproofError, UsageError
from streamproof.base.records import dataclass
from streamproof.language.declare.model import Model, marked
from streamproof.language.declare.primitives import FAILED, STILL, ActionMark, PropertyMark, StateMark
from streamproof.language.declare.spec import Spec
from streamproof.language.lower.conversion import plain_inside
from streamproof.language.lower.domains import Domains
from streamproof.language.native.native import Native, Run, TooManyRuns
from streamproof.system import formula as f
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula
from streamproof.system.interpreter import Evaluation, Interpreter
from streamproof.system.model import Instance, Kind, Property, State, System
from streamproof.system.sampling import random_state
from streamproof.system.sorts import show

SEED = 41_162
STARTS = 60
"""Maximum number of combinations of initial values that are compared."""
INITIAL, REACHED, RANDOM = 2, 5, 16
"""Maximum numbers of initial states, of states that steps reach, and of random states; for each of these, one variable of an
earlier state gets its value."""
LEAST, ENOUGH = 4, 450
"""Number of random states in any case, and the number of executions after which there are no more."""
RULES = 16
"""Number of rules with arguments that are compared in each state; the next state continues with the following ones."""
RUNS = 64
"""Maximum number of executions of one rule with its arguments in a state, and of its instances."""
ALL_RUNS = 700
"""Number of executions after which no further rule is compared."""

SECONDS = 3.0
"""Processor time after which nothing further is compared: of a model whose functions are slow."""

READINGS = 8
"""Number of readings that are compared with each other, of a model that differs from its reading."""

TERMS = 200_000
"""Number of terms of rules that are computed; those of a large model take longer than its functions."""
GROUPS = 2_000
"""Maximum number of arguments of one action for which a missing instance is looked for."""

Group = tuple[str, tuple[tuple[str, Any], ...]]
"""An action and its arguments."""


_UNSUPPORTED = (ModelError, UsageError, RecursionError)
"""What native execution raises for uses that it does not support; nothing is compared then."""


class ReadingDiffers(StreamproofError):
    """A rule or property means something else to the engines than to Python."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class PlainPython:
    """The extent of a comparison: numbers of states, of rules with arguments, compared and in all, and of properties."""

    states: int
    rules: int
    of_rules: int
    properties: int
    runs: int

    def to_json(self) -> dict[str, int]:
        """The numbers as JSON data."""
        return {
            "states": self.states,
            "rules": self.rules,
            "of_rules": self.of_rules,
            "properties": self.properties,
            "runs": self.runs,
        }


def compare_with_python(
    spec: Spec, model: Model, system: System, seed: int = SEED, seconds: float = SECONDS
) -> PlainPython:
    """Compares a system with the model that it was read from. Raises `ReadingDiffers` at the first difference, and
    `ModelError` if that is a difference between two readings of the model too. `seconds`: of processor time."""
    try:
        return _Comparison(spec, model, system, seed, seconds).run()
    except ReadingDiffers as error:
        first, *others = (spec.compiled(model) for _ in range(READINGS))
        if any(other != first for other in others):
            raise ModelError(
                "the model is not deterministic: two readings gave different systems",
                loc=error.loc,
                remedy="nondeterminism comes from choose(...), not from random numbers or the clock",
            ) from error
        raise


class _Comparison:
    def __init__(self, spec: Spec, model: Model, system: System, seed: int, seconds: float) -> None:
        self._system, self._model = system, model
        self._plain = system if system.constraint is None else system.constraint.free
        self._native = Native(model, spec.properties, spec.carries)
        self._interpreter = Interpreter(system)
        self._chance = random.Random(seed)
        self._groups = self._grouped()
        self._at = 0
        self._compared: set[int] = set()
        self._properties: set[str] = set()
        self._runs = self._terms = 0
        self._end = process_time() + seconds

    def run(self) -> PlainPython:
        """Compares in every state. Raises `ReadingDiffers`."""
        states = 0
        for state in self._states():
            states += 1
            here = self._interpreter.evaluation(state)
            afters = self._rules(state, here)
            self._state_conditions(state, here)
            self._terms += here.size
            for after in afters[:2]:
                self._step_conditions(state, after)
            if self._is_late():
                break
        return PlainPython(states, len(self._compared), len(self._groups), len(self._properties), self._runs)

    def _is_late(self) -> bool:
        return process_time() > self._end

    # --- states

    def _states(self) -> Iterator[State]:
        reached = self._initial()
        yield from reached
        at = reached[0] if reached else None
        for _ in range(REACHED):
            at = None if at is None else self._successor(at)
            if at is None or at in reached:
                break
            reached.append(at)
            yield at
        sorts = [v.sort for v in self._system.variables]
        for number in range(RANDOM):
            if number >= LEAST and self._runs > ENOUGH:
                break
            drawn = random_state(sorts, self._chance)
            if reached:
                one, place = self._chance.choice(reached), self._chance.randrange(len(sorts))
                yield (*one[:place], drawn[place], *one[place + 1 :])
            yield drawn

    def _initial(self) -> list[State]:
        """Initial states. Raises `ReadingDiffers` if a combination of initial values is one to one side only."""
        found: list[State] = []
        for state in islice(product(*(v.initial for v in self._system.variables)), STARTS):
            said = bool(self._interpreter.value(self._system.initially, state))
            with suppress(*_UNSUPPORTED):
                self._expect("the initial condition", None, state, said, _outcome(partial(self._native.begins, state)))
            found += [state] if said else []
            if len(found) == INITIAL or self._is_late():
                break
        return found

    def _successor(self, state: State) -> State | None:
        """A state after one step: the first that differs, of the instances from a random one on."""
        every = self._system.instances
        start = self._chance.randrange(len(every)) if every else 0
        some = islice((*every[start:], *every[:start]), ALL_RUNS)
        here = self._interpreter.evaluation(state)
        found = self._interpreter.outcomes(takewhile(lambda _: here.size < TERMS // 8, some), state, here)
        return next((after for after in found if isinstance(after, tuple) and after != state), None)

    # --- rules

    def _grouped(self) -> list[tuple[Group, list[Instance]]]:
        """The instances by action and arguments, one action after the other; of a single machine also the arguments without
        an instance."""
        found: dict[Any, tuple[Group, list[Instance]]] = {}
        for instance in self._system.instances:
            found.setdefault(_key(instance.action, instance.args), ((instance.action, instance.args), []))[1].append(
                instance
            )
        own = marked(type(self._model)).items() if not self._native.has_parts else ()
        for name, (mark, function) in own:
            if isinstance(mark, ActionMark) and isinstance(function, FunctionType):
                for args in islice(Domains(self._model, name, mark, function).combinations(), GROUPS):
                    plain = tuple((n, plain_inside(v)) for n, v in args)
                    found.setdefault(_key(name, plain), ((name, plain), []))
        rows: dict[str, list[tuple[Group, list[Instance]]]] = {}
        for group, instances in found.values():
            rows.setdefault(group[0], []).append((group, instances))
        for row in rows.values():
            self._chance.shuffle(row)
        return [
            row[at] for at in range(max(map(len, rows.values()), default=0)) for row in rows.values() if at < len(row)
        ]

    def _rules(self, state: State, here: Evaluation) -> list[State]:
        """Compares some rules in a state; the states after them."""
        afters: dict[State, None] = {}
        for _ in range(min(RULES, len(self._groups))):
            if self._runs > ALL_RUNS or self._terms + here.size > TERMS or here.size > TERMS // 8 or self._is_late():
                break
            at = self._at % len(self._groups)
            self._at += 1
            self._compared.add(at)
            afters |= dict.fromkeys(self._rule(*self._groups[at], state, here))
        return list(afters)

    def _rule(self, group: Group, instances: Sequence[Instance], state: State, here: Evaluation) -> list[State]:
        action, args = group
        runs: list[Run] = []
        whole = len(instances) <= RUNS
        try:
            for run in self._native.runs(state, action, args, RUNS):
                runs.append(run)
                if self._is_late():
                    whole = False
                    break
        except TooManyRuns:
            whole = False
        except _UNSUPPORTED:
            return []
        self._runs += len(runs) + 1
        if not whole:
            self._some_picks(instances, runs, state, here)
            return [run.after for run in runs if run.after is not None]
        found = list(zip(instances, self._interpreter.outcomes(instances, state, here), strict=True))
        # A bag has equal elements once as options, as Python does not.
        chosen = {(one.picks, after, self._is_fair(one)) for one, after in found if isinstance(after, tuple)}
        said = Counter((after, fair) for _, after, fair in chosen)
        taken = {(run.picks, run.after, run.fair) for run in runs if run.after is not None}
        ran = Counter((after, fair) for _, after, fair in taken)
        wrong = next((e for _, e in found if isinstance(e, EvaluationError)), None)
        failed = next((run.error for run in runs if run.error is not None), None)
        joint = any(one.of for one in instances)  # whose participants may fail where another one is disabled
        if said == ran and (joint or (wrong is None) == (failed is None)):
            return [after for after, _ in said if after is not None]
        if joint and (wrong or failed):
            return []
        raise self._differs(
            self._group_text(group), self._system.action(action).loc, state, (said, wrong), (ran, failed)
        )

    def _some_picks(self, instances: Sequence[Instance], runs: Sequence[Run], state: State, here: Evaluation) -> None:
        """Compares the runs of a rule that has too many choices to compare all."""
        for run in runs[: RUNS // 8]:
            alike = (one for one in instances if _reaches(run.picks, [v for _, v in one.picks]))
            found = [*zip(some := [*islice(alike, RUNS)], self._interpreter.outcomes(some, state, here), strict=True)]
            if run.error is not None:
                same = any(isinstance(after, EvaluationError) for _, after in found)
            else:
                same = any(after == run.after and self._is_fair(one) == run.fair for one, after in found)
            if not same and len(found) < RUNS and not found[0][0].of:
                loc = self._system.action(instances[0].action).loc
                label = f"{self._group_text((instances[0].action, instances[0].args))} with {', '.join(map(str, run.picks))}"
                raise self._differs(label, loc, state, (Counter(), None), (Counter([(run.after, run.fair)]), run.error))

    def _is_fair(self, instance: Instance) -> tuple[bool, tuple[int, ...]]:
        return instance.fair or bool(instance.of), instance.listed

    # --- conditions

    def _state_conditions(self, state: State, here: Evaluation) -> None:
        for prop in (*self._plain.properties, *self._plain.lemmas):
            if prop.kind is not Kind.STEP and not self._is_late():
                self._condition(prop, state, None, here)
        ends = [name for name, stated in self._native.stated.items() if stated[0][1] is StateMark.TERMINAL]
        if ends and not self._native.has_parts and self._plain.terminal is not None:
            said = bool(here.value(self._plain.terminal))
            with suppress(*_UNSUPPORTED):
                ran = [_outcome(partial(self._native.holds, name, state)) for name in ends]
                if not any(isinstance(one, Exception) for one in ran):
                    self._expect("the condition of terminal states", None, state, said, any(ran))
        if self._system.constraint is not None:
            inside = all(here.value(c.expr) for c in self._system.constraint.conjuncts)
            with suppress(*_UNSUPPORTED):
                self._expect("the constraint", None, state, inside, _outcome(partial(self._native.inside, state)))

    def _step_conditions(self, state: State, after: State) -> None:
        here = self._interpreter.evaluation(state, after)
        for prop in self._plain.properties:
            if prop.kind is Kind.STEP and not self._is_late():
                self._condition(prop, state, after, here)

    def _condition(self, prop: Property, state: State, after: State | None, here: Evaluation) -> None:
        """Compares a property; a temporal one on the behaviour that stays in the state forever."""
        stated = self._native.stated.get(prop.name, ())
        if not stated or not all(isinstance(mark, PropertyMark) for _, mark, _ in stated):
            return  # built in, or of a refinement
        errors: list[Exception] = []
        still, failed = STILL.set(prop.kind is Kind.TEMPORAL), FAILED.set(errors)
        try:
            ran = _outcome(partial(self._native.holds, prop.name, state, after))
        except _UNSUPPORTED:
            return
        finally:
            STILL.reset(still)
            FAILED.reset(failed)
        if errors:
            return  # whether a rule is enabled that fails is no question of the property
        said = _outcome(partial(_truth, prop, here))
        if prop.formula is not None and isinstance(said, EvaluationError):
            return  # Python may leave out an operator that formulas have
        self._properties.add(prop.name)
        self._expect(f"property {prop.name}", prop.loc, state, said, ran)

    # --- differences

    def _expect(self, what: str, loc: Loc | None, state: State, said: Any, ran: Any) -> None:
        self._runs += 1
        both = isinstance(said, EvaluationError) and isinstance(ran, Exception)
        if not both and said is not ran:
            raise self._differs(what, loc, state, said, ran)

    def _differs(self, what: str, loc: Loc | None, state: State, said: Any, ran: Any) -> ReadingDiffers:
        return ReadingDiffers(
            f"{what} is read as {self._worded(said)}, and plain Python gives {self._worded(ran)}, in the state "
            f"{self._state_text(state)}",
            loc=loc,
            remedy="no verdict is given: the function answers differently each time, or this is a defect of streamproof; "
            "please report it with the model",
        )

    def _worded(self, outcome: Any) -> str:
        match outcome:
            case bool():
                return str(outcome).lower()
            case Exception():
                return f"an error ({getattr(outcome, 'message', outcome)})"
            case Counter() as steps, error:
                shown = [
                    f"a step{_fairness_text(*fair)} to {self._state_text(after)}" for after, fair in steps.elements()
                ]
                return " and ".join([*shown[:3], *([self._worded(error)] if error else [])]) or "no step"
        return str(outcome)

    def _state_text(self, state: State) -> str:
        return ", ".join(f"{v.name}={show(v.sort, value)}" for v, value in self._system.named(state))

    def _group_text(self, group: Group) -> str:
        return f"{group[0]}({', '.join(f'{n}={v}' for n, v in group[1])})"


def _fairness_text(fair: bool, listed: tuple[int, ...]) -> str:
    if listed:
        return f" with fairness constraint {' and '.join(str(at + 1) for at in listed)}"
    return "" if fair else " without fairness"


def _key(action: str, args: tuple[tuple[str, Any], ...]) -> Any:
    return action, tuple((n, type(v), v) for n, v in args)


def _outcome(run: Callable[[], Any]) -> Any:
    """The value of a run, or the exception that ends it."""
    try:
        return run()
    except _UNSUPPORTED:
        raise
    except Exception as error:
        return error


def _reaches(picks: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether an instance with these values for all choices has these picks, in their order, among them."""
    left = iter(values)
    return all(any(pick == value for value in left) for pick in picks)


def _truth(prop: Property, here: Evaluation) -> bool:
    """Whether a property is true; a formula: of the behaviour that stays in the state. Raises `EvaluationError`."""
    Interpreter.refuse(prop.checks, here, prop)
    if prop.formula is not None:
        return _still(prop.formula, lambda condition: bool(here.value(condition)))
    return bool(here.value(prop.expr))


def _still(formula: Formula, value: Callable[[Expr], bool]) -> bool:
    """The truth of a formula on a behaviour that stays in one state, by the value of conditions there."""
    match formula:
        case f.Atom(expr=condition):
            return value(condition)
        case f.NotF(arg):
            return not _still(arg, value)
        case f.AndF(args):
            return all(_still(arg, value) for arg in args)
        case f.OrF(args):
            return any(_still(arg, value) for arg in args)
        case f.Always(arg) | f.Eventually(arg):
            return _still(arg, value)
        case f.Until(_, right) | f.Release(_, right):
            return _still(right, value)
        case f.LeadsTo(left, right):
            return not _still(left, value) or _still(right, value)
        case f.Recurs() | f.Happens():
            return False
        case _:
            assert_never(formula)
