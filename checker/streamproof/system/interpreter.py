"""The interpreter: the semantics of a `System`. Slow and simple on purpose; every other engine is compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import assert_never

from streamproof.base.errors import EvaluationError
from streamproof.base.records import dataclass, replace
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct, Derived, Instance, Kind, Property, State, System, Variable
from streamproof.system.sorts import ArraySort, OptionSort, QueueSort, RecordSort, Sort, Value, default, position, show
from streamproof.system.verdict import Finding, Trace, Verdict, number_of


@dataclass(frozen=True, slots=True)
class Step:
    """One transition: the instance taken and the state it leads to."""

    instance: Instance
    state: State


class Interpreter:
    """Evaluates expressions and takes steps of one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._index = system.index

    def initial_states(self) -> Iterator[State]:
        """Every initial state, once, in a fixed order."""
        seen: set[State] = set()
        for state in product(*(v.initial for v in self.system.variables)):
            if state not in seen and self.value(self.system.initially, state):
                seen.add(state)
                yield state

    def value(self, term: Expr, state: State, after: State | None = None) -> Value:
        """The value of `term` in `state` (and, for step properties, in the state `after` the step)."""
        return Evaluation(self._index, state, after).value(term)

    def values(self, terms: Iterable[Expr], state: State) -> tuple[Value, ...]:
        """The values of several terms in one state; shared subterms are evaluated once."""
        evaluation = Evaluation(self._index, state, None)
        return tuple(evaluation.value(term) for term in terms)

    def failing(self, conjuncts: tuple[Conjunct, ...], state: State, after: State | None = None) -> Conjunct | None:
        """The first conjunct that is false, or None."""
        evaluation = Evaluation(self._index, state, after)
        return next((c for c in conjuncts if not evaluation.value(c.expr)), None)

    def enabled(self, instance: Instance, state: State) -> bool:
        """Whether `instance` is enabled in `state`. Raises `EvaluationError` if its guard is an error."""
        evaluation = Evaluation(self._index, state, None)
        self.refuse(instance.guard_checks, evaluation, instance)
        return all(evaluation.value(c.expr) for c in instance.guard)

    def take(self, instance: Instance, state: State) -> State | None:
        """The state after `instance`, or None if it is disabled. Raises `EvaluationError` for a model error."""
        return self._taken(instance, state, Evaluation(self._index, state, None))

    def evaluation(self, state: State, after: State | None = None) -> Evaluation:
        """An evaluation in `state` (and `after`), which computes each term once."""
        return Evaluation(self._index, state, after)

    def outcomes(
        self, instances: Iterable[Instance], state: State, evaluation: Evaluation
    ) -> Iterator[State | EvaluationError | None]:
        """For each instance, what `take` returns or raises, in an evaluation of `state`."""
        for instance in instances:
            try:
                yield self._taken(instance, state, evaluation)
            except EvaluationError as error:
                yield error

    def _taken(self, instance: Instance, state: State, evaluation: Evaluation) -> State | None:
        self.refuse(instance.guard_checks, evaluation, instance)
        if not all(evaluation.value(c.expr) for c in instance.guard):
            return None
        self.refuse(instance.effect_checks, evaluation, instance)
        after = list(state)
        for name, term in instance.updates:
            after[self._index[name]] = evaluation.value(term)
        return tuple(after)

    def leading(self, instances: Iterable[Instance], before: State, after: State) -> Instance | None:
        """The first of `instances` that leads from one state to the other; a model error in one does not exclude others."""
        for instance in instances:
            with suppress(EvaluationError):
                if self.take(instance, before) == after:
                    return instance
        return None

    def steps(self, state: State) -> Iterator[Step]:
        """Every step out of `state`, in the order of the instances, including duplicates."""
        for instance in self.system.instances:
            after = self.take(instance, state)
            if after is not None:
                yield Step(instance, after)

    def holds(self, prop: Property, state: State, after: State | None = None) -> bool:
        """Whether the property's expression is true here. Raises `EvaluationError` if it is an error."""
        evaluation = Evaluation(self._index, state, after)
        self.refuse(prop.checks, evaluation, prop)
        return bool(evaluation.value(prop.expr))

    def terminal(self, state: State) -> bool:
        """Whether `state` is terminal."""
        return self.system.terminal is not None and bool(self.value(self.system.terminal, state))

    def is_initial(self, state: State) -> bool:
        """Whether a behaviour may begin with `state`."""
        possible = all(value in v.initial for v, value in self.system.named(state))
        return possible and bool(self.value(self.system.initially, state))

    def decided(self, prop: Property, trace: Trace) -> Finding | None:
        """What the last state of `trace`, or its last step, decides: a witness, a violation, a model error, or None.

        Engines report no violation or witness without it.
        """
        steps = number_of(len(trace.steps), "step")
        before = trace.states[-2] if prop.kind is Kind.STEP else trace.states[-1]
        after = trace.states[-1] if prop.kind is Kind.STEP else None
        try:
            if prop.kind is Kind.DEADLOCK:
                event = not self.terminal(before) and not any(self.enabled(i, before) for i in self.system.instances)
            else:
                event = self.holds(prop, before, after) is (prop.kind is Kind.REACHABLE)
        except EvaluationError as error:
            return Finding(prop.name, prop.kind, Verdict.ERROR, trace, error.short_text)
        if not event:
            return None
        if prop.kind is Kind.REACHABLE:
            return Finding(prop.name, prop.kind, Verdict.HOLDS, trace, f"reached after {steps}")
        if prop.kind is Kind.DEADLOCK:
            return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, f"nothing is enabled after {steps}")
        step = len(trace.steps)
        because = f"false after {steps}" if after is None else f"broken by step {step}, {trace.steps[-1].label}"
        failing = self.failing(prop.conjuncts, before, after)
        if failing is not None and failing.text and len(prop.conjuncts) > 1:
            because += f": {failing.denied}"
        return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, because)

    @staticmethod
    def refuse(checks: tuple[Check, ...], evaluation: Evaluation, of: Instance | Property) -> None:
        """Raises `EvaluationError` for the first check of an instance or a property that is true."""
        for check in checks:
            if evaluation.value(check.condition):
                shown = "; ".join(f"{text} = {show(t.sort, evaluation.value(t))}" for text, t in check.operands)
                where = of.label if isinstance(of, Instance) else f"property {of.name}"
                raise EvaluationError(
                    f"{check.message} in {where}" + (f" ({shown})" if shown else ""),
                    loc=check.loc,
                    remedy="guard it with require(...), or widen the sort if the value is meant to be possible",
                )


class Evaluation:
    """One evaluation: terms are shared, so each is computed once per state."""

    def __init__(self, index: Mapping[str, int], state: State, after: State | None) -> None:
        self._index = index
        self._state = state
        self._after = after
        self._known: dict[Expr, Value] = {}

    @property
    def size(self) -> int:
        """The number of terms that were computed."""
        return len(self._known)

    def value(self, term: Expr) -> Value:
        """The value of a term."""
        try:
            return self._value(term)
        except RecursionError:  # a very deep term: evaluated bottom-up, so that no recursion is deep
            for part in e.subterms(term):
                self._value(part)
            return self._value(term)

    def _value(self, term: Expr) -> Value:
        if isinstance(term, e.Const):
            return term.value
        if term in self._known:
            return self._known[term]
        result = self._compute(term)
        self._known[term] = result
        return result

    def _compute(self, term: Expr) -> Value:
        v = self._value
        match term:
            case e.Const(value=value):
                return value
            case e.Var(name=name):
                return self._state[self._index[name]]
            case e.Next(name=name):
                assert self._after is not None, "a next-state value outside a step property"
                return self._after[self._index[name]]
            case e.Not(arg=a):
                return not v(a)
            case e.And(args=args):
                return all(v(a) for a in args)
            case e.Or(args=args):
                return any(v(a) for a in args)
            case e.Ite(cond=c, then=a, other=b):
                return v(a) if v(c) else v(b)
            case e.Eq(left=a, right=b):
                return v(a) == v(b)
            case e.Less(left=a, right=b):
                return v(a) < v(b)
            case e.LessEq(left=a, right=b):
                return v(a) <= v(b)
            case e.Add(left=a, right=b):
                return v(a) + v(b)
            case e.Sub(left=a, right=b):
                return v(a) - v(b)
            case e.Mul(left=a, right=b):
                return v(a) * v(b)
            case e.FloorDiv(left=a, right=b):
                return v(a) // v(b) if v(b) else 0
            case e.Mod(left=a, right=b):
                return v(a) % v(b) if v(b) else 0
            case e.MakeArray(elements=parts) | e.MakeRecord(values=parts):
                return tuple(v(p) for p in parts)
            case e.Select(array=array, index=index):
                sort = array.sort
                assert isinstance(sort, ArraySort)
                at = position(sort.index, v(index))
                return default(sort.element) if at is None else v(array)[at]
            case e.Store(array=array, index=index, value=value):
                sort = array.sort
                assert isinstance(sort, ArraySort)
                at, whole = position(sort.index, v(index)), v(array)
                return whole if at is None else (*whole[:at], v(value), *whole[at + 1 :])
            case e.Field(record=record, name=name):
                sort = record.sort
                assert isinstance(sort, RecordSort)
                return v(record)[sort.index(name)]
            case e.WithField(record=record, name=name, value=value):
                sort = record.sort
                assert isinstance(sort, RecordSort)
                at, whole = sort.index(name), v(record)
                return (*whole[:at], v(value), *whole[at + 1 :])
            case e.MakeCase(case=case, payload=payload):
                return (case, v(payload))
            case e.IsCase(arg=a, case=case):
                return v(a)[0] == case
            case e.Payload(sort=sort, arg=a, case=case):
                own, fields = v(a)
                return fields if own == case else default(sort)
            case e.Some(arg=a):
                return v(a)
            case e.IsNone(arg=a):
                return v(a) is None
            case e.Unwrap(arg=a):
                sort = a.sort
                assert isinstance(sort, OptionSort)
                return default(sort.element) if v(a) is None else v(a)
            case e.Length(queue=q):
                return len(v(q))
            case e.Peek(queue=q, index=index):
                sort = q.sort
                assert isinstance(sort, QueueSort)
                at, whole = v(index), v(q)
                return whole[at] if 0 <= at < len(whole) else default(sort.element)
            case e.Push(queue=q, value=value):
                sort = q.sort
                assert isinstance(sort, QueueSort)
                whole = v(q)
                return (*whole, v(value)) if len(whole) < sort.capacity else whole
            case e.Pop(queue=q):
                return v(q)[1:]
            case e.Member(set_=s, value=value):
                return v(value) in v(s)
            case e.Insert(set_=s, value=value):
                return v(s) | {v(value)}
            case e.Remove(set_=s, value=value):
                return v(s) - {v(value)}
            case e.Union(left=a, right=b):
                return v(a) | v(b)
            case e.Intersection(left=a, right=b):
                return v(a) & v(b)
            case e.Difference(left=a, right=b):
                return v(a) - v(b)
            case e.Subset(left=a, right=b):
                return v(a) <= v(b)
            case e.Size(set_=s):
                return len(v(s))
            case _:
                assert_never(term)


def with_derived(system: System, trace: Trace) -> tuple[System, Trace]:
    """The system and the trace with a variable for each derived value, None where the value does not exist; for display."""
    if not system.derived:
        return system, trace
    interpreter = Interpreter(system)
    more = tuple(Variable(one.name, _sort(one), (), one.loc) for one in system.derived)
    states = tuple((*state, *(_value(interpreter, one, state) for one in system.derived)) for state in trace.states)
    shown = replace(system, variables=(*system.variables, *more), derived=())
    return shown, replace(trace, states=states)


def _sort(one: Derived) -> Sort:
    return OptionSort(one.expr.sort) if one.checks and not isinstance(one.expr.sort, OptionSort) else one.expr.sort


def _value(interpreter: Interpreter, one: Derived, state: State) -> Value:
    missing = any(interpreter.value(check.condition, state) for check in one.checks)
    return None if missing else interpreter.value(one.expr, state)
