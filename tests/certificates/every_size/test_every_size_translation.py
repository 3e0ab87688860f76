"""The verifier's translation against plain values: what values of one size refute, no script calls impossible.

A sample is a state of some size, with values for the parameters of a rule. Where it satisfies all that an obligation assumes
and breaks its claim, the script must stay satisfiable when these values, and the sums they give, are asserted. A translation
that is too strong, in whatever part, fails here; one that is too weak fails to certify what the engine proves. Seeded faults
show that both are seen.
"""

# ruff: noqa: D102, RUF012  (the models are small, and say what they are in a line)

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import z3

from shares import share
from streamproof import (
    ANY,
    Array,
    Bool,
    Enum,
    Int,
    Model,
    Option,
    Range,
    Record,
    Spec,
    State,
    action,
    invariant,
    require,
    step,
)
from streamproof.any.certify import obligations, smt_sums, smt_terms
from streamproof.any.certify.any_values import NoValue, Values, breaks
from streamproof.any.certify.obligations import SAFE, CertifiedClaim, ProofObligation, claim_of
from streamproof.any.certify.smt_conditions import Conditions
from streamproof.any.certify.smt_script import FALSE, TRUE, Script, SmtTerm, number
from streamproof.any.certify.smt_sums import Sums
from streamproof.any.certify.smt_terms import SmtView, layout, literal
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind
from streamproof.system.sorts import (
    INFINITY,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    TermRange,
    values,
)
from streamproof.transform.unbounded import Forall, Parametric, forall

NEVER = CertifiedClaim("never", b.FALSE)
"""A claim that every step breaks: what is assumed, and the axioms, must be possible together."""


class Mixed(Model):
    """Nested quantifiers, quotients, options, records, and sums with several indices."""

    n: int = 2
    k: int = 1
    limits = {"n": (1, None), "k": (0, None)}
    check_deadlock = False

    def state(self):
        each = range(self.n)
        return State(
            x=Array(each, Range(0, 2)),
            y=Array(each, Range(0, self.n - 1)),
            box=Record(count=Range(0, self.k), mode=Enum("IDLE", "BUSY")),
            last=Option(Range(0, 2)),
            d=Int(init=ANY),
            pair=Array(2, Range(0, 3)),
            f=Array(each, Bool()),
        )

    @action(i="n", j="n")
    def swap(self, s, i, j):
        require(s.x[i] > 0 or s.last is None)
        one = s.x[i]
        s.x[i] = s.x[j]
        s.x[j] = one
        s.last = one
        s.pair[1 if s.x[i] > 1 else 0] = one

    @action(i="n")
    def follow(self, s, i):
        require(all(any(s.y[a] == c for a in range(self.n)) for c in range(self.n)))
        s.x[s.y[i]] = s.d // s.x[i]
        s.d = s.d % (s.x[i] - 2)

    @action(i="n")
    def divide(self, s, i):
        require(s.x[i] != 2)
        s.d = s.d // (s.x[i] - 2) + s.d % (s.x[i] - 2)

    @action(i="n")
    def look(self, s, i):
        require(s.x[i + 1] == 0 and s.box.mode == "IDLE")
        s.box.count += 1
        s.box.mode = "BUSY"
        s.last = None
        s.f[i] = all(s.x[c] == 0 or s.f[c] for c in range(self.n))

    @invariant
    def each_has_one(self, s):
        return all(any(s.y[a] == c for a in range(self.n)) for c in range(self.n))

    @invariant
    def indices(self, s):
        return all(c < self.n for c in range(self.n))

    @invariant
    def conserved(self, s):
        return sum(s.x[c] for c in range(self.n)) <= self.k + 1

    @invariant
    def weighted(self, s):
        return sum(c * s.x[c] if s.f[c] else 0 for c in range(self.n)) <= 3

    @invariant
    def either(self, s):
        return all(s.x[c] == 0 for c in range(self.n)) or all(s.f[c] for c in range(self.n))

    @invariant
    def where(self, s):
        return s.box.count == 0 or (s.last == s.x[s.y[0]]) == any(s.f[c] for c in range(self.n))

    @invariant
    def marked(self, s):
        return all(
            (2 if any(s.y[a] == c and not s.f[a] for a in range(self.n)) else 0) <= s.x[c] for c in range(self.n)
        )

    @invariant
    def pointed(self, s):
        return sum(s.x[s.y[c]] for c in range(self.n)) >= s.d // 3

    @invariant
    def held(self, s):
        return s.last is None or s.last <= s.pair[0] + s.d % 4

    @step
    def never_more(self, s, t):
        return all(t.x[c] <= s.x[c] for c in range(self.n))

    @step
    def grows(self, s, t):
        return sum(t.x) <= sum(s.x) and all(s.f[c] or not t.f[c] for c in range(self.n))


FIRST = {
    "n": 2, "k": 1, "x": {0: 0, 1: 0}, "y": {0: 0, 1: 0}, "box": (0, "IDLE"), "last": None, "d": 3, "pair": (0, 0),
    "f": {0: False, 1: False},
}  # fmt: skip
"""An initial state of `Mixed`."""


def answer(text: str) -> str:
    """Z3's answer to a script."""
    solver = z3.Solver(ctx=z3.Context())
    solver.set("timeout", 10_000)
    solver.from_string(text)
    return str(solver.check())


# --- samples


def some_value(given: Values, sort: Any, chance: random.Random) -> Any:
    """A value of a sort; numbers are small, and those that have no bounds may be negative."""
    match sort:
        case ArraySort(index=TermRange() as index, element=element):
            return {k: some_value(given, element, chance) for k in given.range(index)}
        case ArraySort(index, element):
            return tuple(some_value(given, element, chance) for _ in values(index))
        case RecordSort(fields):
            return tuple(some_value(given, field, chance) for _, field in fields)
        case OptionSort(element):
            return chance.choice([None, some_value(given, element, chance)])
        case EnumSort(members):
            return chance.choice(members)
        case BoolSort():
            return chance.random() < 0.5
        case TermRange():
            found = given.range(sort)
            return chance.choice(found) if found else 0
        case RangeSort(lo, hi):
            low = max(lo, min(hi, -4)) if lo == -INFINITY else lo
            return chance.randint(int(low), int(min(hi, low + 9)))
    raise AssertionError(sort)


def sample(parametric: Parametric, arguments: Sequence[e.Var], chance: random.Random) -> dict[str, Any]:
    """Values of the free parameters, of the variables, and of the parameters of a rule."""
    names: dict[str, Any] = {}
    for free in parametric.free:
        least = 0 if free.least is None else free.least
        names[free.name] = chance.randint(least, least + 2 if free.most is None else min(free.most, least + 2))
    for variable in parametric.system.variables:
        names[variable.name] = some_value(Values(names), variable.sort, chance)
    for argument in arguments:
        there = Values(names).range(argument.sort)
        names[argument.name] = chance.choice(there) if there else 0
    return names


def asserted(script: Script, sort: Any, columns: Iterator[SmtTerm], value: Any) -> Iterator[SmtTerm]:
    """That the next columns have a plain value."""
    match sort:
        case ArraySort(index=TermRange(), element=element):
            lanes = [(next(columns), column.sort) for column in layout(element)]
            for index, part in value.items():
                elements = [script.op("select", scalar, lane, number(index)) for lane, scalar in lanes]
                yield from asserted(script, element, iter(elements), part)
        case ArraySort(_, element):
            for part in value:
                yield from asserted(script, element, columns, part)
        case RecordSort(fields):
            for (_, field), part in zip(fields, value, strict=True):
                yield from asserted(script, field, columns, part)
        case OptionSort(element):
            yield script.same(next(columns), TRUE if value is not None else FALSE)
            held = [next(columns) for _ in layout(element)]
            if value is not None:
                yield from asserted(script, element, iter(held), value)
        case _:
            yield script.same(next(columns), *literal(sort, value))


def with_values(obligation: ProofObligation, names: dict[str, Any]) -> str:
    """The script with plain values of the state, the parameters, and the sums over them."""
    parametric, script = obligation.parametric, obligation.script
    sorts = {v.name: v.sort for v in parametric.system.variables} | {f.name: f.sort for f in parametric.free}
    sorts |= {v.name: v.sort for v in obligation.arguments}
    terms = [term for _, term in obligation.parts]
    for name, sort in sorts.items():
        terms += asserted(script, sort, iter(obligation.before.names[name]), names[name])
    after = None
    if obligation.instance is not None:
        after = {**names, **{name: Values(names)(term) for name, term in obligation.instance.updates}}
    for sum_, constant in obligation.before.totals.items():
        terms.append(script.same(constant, number(Values(names, after)(sum_))))
    if after is not None:
        for name, _ in obligation.instance.updates:
            terms += asserted(script, sorts[name], iter(obligation.after.names[name]), after[name])
        for sum_, constant in obligation.after.totals.items():
            terms.append(script.same(constant, number(Values(after)(sum_))))
    return script.text(terms)


def claims_of(parametric: Parametric) -> list[CertifiedClaim]:
    """Everything that the model says that may be claimed, true or not, and that its values are right."""
    said = (*parametric.system.properties, *parametric.system.lemmas)
    kinds = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)
    return [SAFE, *(claim_of(parametric, prop) for prop in said if prop.kind in kinds)]


def contradictions(
    parametric: Parametric,
    tries: int = 20,
    most: int = 2,
    seed: int = 1,
    build: Callable[..., ProofObligation] = ProofObligation,
    initial: Sequence[dict[str, Any]] = (),
) -> Iterator[tuple[str, int | None, dict[str, Any]]]:
    """Samples that break a claim where its script says that nothing can; `build` makes the script."""
    chance = random.Random(seed)
    claims = claims_of(parametric)
    states = [claim for claim in claims if not claim.step]
    denied = [CertifiedClaim(f"not {c.name}", b.not_(c.condition), c.step) for c in claims if c is not SAFE]
    cases: list[tuple[CertifiedClaim, int | None, list[CertifiedClaim]]] = []
    for rule in range(len(parametric.system.instances)):
        cases += [(NEVER, rule, list(dict.fromkeys([SAFE, claim]))) for claim in states]
        cases += [(SAFE, rule, [claim]) for claim in states]
        cases += [(goal, rule, []) for goal in (*claims, *denied)]
    cases += [(goal, None, []) for goal in (*states, *denied) if initial and not goal.step]
    for goal, rule, assumed in cases:
        right = ProofObligation(parametric, goal, rule, assumed)
        broken = []
        for _ in range(tries):
            names = sample(parametric, right.arguments, chance) if rule is not None else chance.choice(initial)
            try:
                broken += [names] if breaks(parametric, right, names) else []
            except NoValue:
                continue
        faulty = build(parametric, goal, rule, assumed) if broken else None
        for names in broken[:most] if faulty is not None else ():
            try:
                text = with_values(faulty, names)
            except NoValue:
                continue
            if answer(text) == "unsat":
                yield goal.name, rule, names


def initial_samples(spec: Any, parametric: Parametric, sizes: Sequence[dict[str, int]]) -> list[dict[str, Any]]:
    """The initial states at some sizes, as the interpreter has them."""
    found = []
    for size in sizes:
        system = spec.system(**size)
        for at, state in enumerate(Interpreter(system).initial_states()):
            if at == 4:
                break
            names: dict[str, Any] = dict(size)
            for variable, value in zip(parametric.system.variables, state, strict=True):
                any_length = isinstance(variable.sort, ArraySort) and isinstance(variable.sort.index, TermRange)
                names[variable.name] = dict(enumerate(value)) if any_length else value
            found.append(names)
    return found


MODELS = [
    "SomeIndex", "TwoAlternatives", "Overflow", "WrongIndex", "Transfers", "SameNames", "CountsWithConditions", "WholeArrays",
    "Scales", "TokenRing", "Guarded", "Branches", "Composite", "Helpers", "Buffers",
]  # fmt: skip


@pytest.mark.parametrize("name", share(MODELS, 5))
def test_no_script_denies_what_plain_values_do(small: Any, name: str) -> None:
    """Samples of the small models."""
    assert not list(contradictions(small(name)))


@pytest.mark.parametrize("variant", ["copies", "overwrites"])
def test_no_script_denies_what_a_broken_rule_does(small: Any, variant: str) -> None:
    """Sums of the variants that conserve nothing."""
    assert not list(contradictions(small("Transfers", variant)))


@pytest.mark.long
@pytest.mark.parametrize("tries", [6, 60])
def test_no_script_denies_what_a_mixed_model_does(tries: int) -> None:
    """Nested quantifiers, quotients with negative numbers, options, records."""
    parametric = Spec(Mixed).parametric(("n", "k"))
    assert not list(contradictions(parametric, tries, initial=[FIRST]))


@pytest.mark.parametrize("seed", share(range(20, 24), 4))
def test_no_script_denies_what_random_models_do(generated: Any, seed: int) -> None:
    """Samples of random models, their initial states too."""
    spec, parametric = generated(seed)
    initial = initial_samples(
        spec, parametric, [{"n": n, "cap": c, "more": m} for n, c, m in ((1, 0, 0), (2, 1, 0), (3, 1, 2))]
    )
    assert initial
    assert not list(contradictions(parametric, seed=seed, initial=initial))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24, 64))
def test_no_script_denies_what_many_random_models_do(generated: Any, seed: int) -> None:
    """The same for more models, with more samples."""
    spec, parametric = generated(seed)
    initial = initial_samples(
        spec, parametric, [{"n": n, "cap": c, "more": m} for n, c, m in ((1, 1, 0), (2, 1, 1), (3, 0, 2))]
    )
    assert not list(contradictions(parametric, tries=100, seed=seed, initial=initial))


@pytest.mark.parametrize("seed", share(range(30, 33), 3))
def test_plain_values_are_those_of_the_interpreter(generated: Any, seed: int) -> None:
    """Guards and updates of the parametric system on plain values do what the interpreter does at that size."""
    spec, parametric = generated(seed)
    chance = random.Random(seed)
    sizes = {"n": 3, "cap": 1, "more": 2}
    system = spec.system(**sizes)
    interpreter = Interpreter(system)
    compared = 0
    for _ in range(40):
        names = {**sizes, **{v.name: some_value(Values(sizes), v.sort, chance) for v in parametric.system.variables}}
        state = tuple(_packed(names[v.name]) for v in parametric.system.variables)
        for instance in parametric.system.instances:
            for found in system.action(instance.action).instances:
                given = dict(names)
                for (_, value), (_, index) in zip(instance.args, found.args, strict=True):
                    given[value.name] = index
                here = Values(given)
                try:
                    if any(here(c.condition) for c in instance.guard_checks):
                        continue
                    enabled = all(here(c.expr) for c in instance.guard)
                    if enabled and any(here(c.condition) for c in instance.effect_checks):
                        continue
                    after = {**given, **{name: here(term) for name, term in instance.updates}}
                    taken = interpreter.take(found, state)
                except (NoValue, Exception):
                    continue
                assert (taken is not None) == enabled
                if taken is not None:
                    assert taken == tuple(_packed(after[v.name]) for v in parametric.system.variables)
                compared += 1
    assert compared > 30


def _packed(value: Any) -> Any:
    return tuple(value.values()) if isinstance(value, dict) else value


# --- seeded faults

Patch = pytest.MonkeyPatch


def _altered(change: Callable[[Parametric, int | None], Parametric]) -> Callable[..., ProofObligation]:
    return lambda parametric, goal, rule, assumed: ProofObligation(change(parametric, rule), goal, rule, assumed)


def _rules(change: Callable[[Any], Any]) -> Callable[[Parametric, int | None], Parametric]:
    def altered(parametric: Parametric, rule: int | None) -> Parametric:
        actions = tuple(replace(a, instances=tuple(map(change, a.instances))) for a in parametric.system.actions)
        return replace(parametric, system=replace(parametric.system, actions=actions))

    return altered


def _means(patch: Patch, kind: type[Any], wrong: Callable[..., Any]) -> None:
    patch.setitem(smt_terms.MEANING, kind, wrong)


def _formula(patch: Patch, wrong: Callable[..., Any]) -> None:
    right = Conditions.formula
    patch.setattr(Conditions, "formula", lambda self, *given: wrong(self, right, *given))


def _aliased_conjuncts(patch: Patch) -> None:
    def join(self: Any, view: SmtView, parts: Any, every: bool, path: Any) -> SmtTerm:
        found = [self.formula(view, part, as_it_is, (*path, "or")) for part, as_it_is in parts]
        return self.script.all_of(found) if every else self.script.any_of(found)

    patch.setattr(Conditions, "_join", join)


def _aliased_instances(patch: Patch) -> None:
    def wrong(self: Any, right: Any, view: SmtView, term: Any, positive: bool, path: Any) -> SmtTerm:
        return right(self, view, term, positive, tuple(p for p in path if not isinstance(p, tuple) or p[0] != "at"))

    _formula(patch, wrong)


def _everywhere(patch: Patch) -> None:
    def wrong(self: Any, right: Any, view: SmtView, term: Any, positive: bool, path: Any) -> SmtTerm:
        if not (positive and isinstance(term, Forall)):
            return right(self, view, term, positive, path)
        assert isinstance(term.bound, e.Var)
        some = [
            self.formula(view.bound(term.bound.name, index), term.body, True, (*path, ("at", at)))
            for at, index in enumerate(self.instantiated)
        ]
        return self.script.all_of(some)

    _formula(patch, wrong)


def _one_name_for_conditions(patch: Patch) -> None:
    def condition(self: SmtView, condition: Forall) -> SmtTerm:
        key = (condition,)
        if key not in self.conditions:
            self.conditions[key] = (self, condition, self.script.fresh("q", "Bool"))
        return self.conditions[key][2]

    patch.setattr(SmtView, "condition", condition)


def _change_with(patch: Patch, wrong: Callable[[list[SmtTerm]], list[SmtTerm]]) -> None:
    right = Sums._changed
    patch.setattr(
        Sums, "_changed", lambda self, before, after, total, found: right(self, before, after, total, wrong(found))
    )


def _unseen(
    patch: Patch, wrong: Callable[[list[SmtTerm]], list[SmtTerm]] = lambda found: found, guess: e.Expr | None = None
) -> None:
    """What is guessed about sums is believed: nothing is seen of other indices."""
    patch.setattr(Sums, "_unless", lambda self, counted, kept, equation: equation)
    _change_with(patch, wrong)
    if guess is not None:
        patch.setattr(smt_sums, "_guess", lambda total, initial: guess)


def _counted_twice(patch: Patch) -> None:
    right = Sums.change

    def change(self: Sums, *given: Any) -> Iterator[SmtTerm]:
        same = self.script.same
        loose = lambda x, y: FALSE if x.text[0] in "x" and y.text[0] in "x" else same(x, y)  # noqa: E731
        self.script.same = loose  # type: ignore[method-assign]
        try:
            yield from right(self, *given)
        finally:
            self.script.same = same  # type: ignore[method-assign]

    patch.setattr(Sums, "change", change)


def _written_witness(patch: Patch) -> None:
    right = Sums._counted

    def counted(self: Sums, view: SmtView, total: Any, index: SmtTerm, others: Sequence[SmtTerm]) -> SmtTerm:
        found = right(self, view, total, index, others)
        if not index.text.startswith("w"):
            return found
        return self.script.all_of([found, *(self.script.same(index, other) for other in others)])

    patch.setattr(Sums, "_counted", counted)


def _parts_of_one_index(patch: Patch) -> None:
    right = Sums.parts

    def parts(self: Sums, view: SmtView) -> Iterator[SmtTerm]:
        yield from right(self, view)
        for sum_, value in list(view.totals.items()):
            if smt_sums._own(sum_):
                for index in self.conditions.instantiated:
                    part = self.part(view, sum_, index)
                    yield self.script.op("<=", "Bool", self.script.op("+", "Int", part, part), value)

    patch.setattr(Sums, "parts", parts)


TOO_STRONG: dict[str, Callable[[Patch], Any]] = {
    "checks of guards are forgotten": lambda p: _altered(_rules(lambda i: replace(i, guard_checks=()))),
    "checks of effects are forgotten": lambda p: _altered(_rules(lambda i: replace(i, effect_checks=()))),
    "an update is forgotten": lambda p: _altered(_rules(lambda i: replace(i, updates=i.updates[1:]))),
    "the last update is forgotten": lambda p: _altered(_rules(lambda i: replace(i, updates=i.updates[:-1]))),
    "a free parameter has another limit": lambda p: _altered(
        lambda q, _: replace(q, free=tuple(replace(f, least=1 + (f.least or 0)) for f in q.free))
    ),
    "sorts after the step are forgotten": lambda p: p.setattr(obligations, "formed", lambda parametric: b.TRUE),
    "conditions are assumed outside their range": _everywhere,
    "witnesses of two conjuncts are one": _aliased_conjuncts,
    "witnesses of two instances are one": _aliased_instances,
    "conditions at two indices have one name": _one_name_for_conditions,
    "a written index is forgotten, and its witness": lambda p: _unseen(p, lambda found: found[1:]),
    "all written indices but one are forgotten, and their witness": lambda p: _unseen(p, lambda found: found[:1]),
    "the witness of a change is a written index": _written_witness,
    "equal written indices are counted twice": _counted_twice,
    "sums change at written indices only, whatever they read": _unseen,
    "sums are at least twice each part": _parts_of_one_index,
    "empty sums are 1": lambda p: p.setattr(
        Sums, "empty", lambda self, view: iter([self.script.same(v, number(1)) for v in view.totals.values()])
    ),
    "first sums are seven times the count": lambda p: _unseen(p, guess=b.num(7)),
    "the next state is read as this one": lambda p: _means(p, e.Next, lambda v, t: v.names[t.name]),
    "less is less or equal": lambda p: _means(p, e.LessEq, lambda v, t, x, y: (v.script.op("<", "Bool", *x, *y),)),
    "less or equal is less": lambda p: _means(p, e.Less, lambda v, t, x, y: (v.script.op("<=", "Bool", *x, *y),)),
    "quotients round to zero": lambda p: p.setattr(
        SmtView, "_divided", lambda self, x, y, rest: self.script.op("mod" if rest else "div", "Int", x, y)
    ),
    "options are equal whatever they hold": lambda p: _means(
        p, e.Eq, lambda v, t, x, y: (v.script.same(x[0], y[0]),)
        if isinstance(t.left.sort, OptionSort) else (v.equal(t.left.sort, x, y),)
    ),
    "an absent option is present": lambda p: _means(p, e.IsNone, lambda v, t, x: (FALSE,)),
    "writing to an array writes nothing": lambda p: p.setattr(
        SmtView, "with_element", lambda self, sort, whole, index, value: whole
    ),
    "fields of records are mixed up": lambda p: _means(p, e.Field, lambda v, t, x: x[-1:]),
}  # fmt: skip

WEAK: dict[str, Callable[[Patch], Any]] = {
    "a written index is forgotten": lambda p: _change_with(p, lambda found: found[1:]),
    "all written indices but one are forgotten": lambda p: _change_with(p, lambda found: found[:1]),
    "all written indices are forgotten": lambda p: _change_with(p, lambda found: []),
    "an index that is not written is taken for one": lambda p: _change_with(p, lambda found: [number(0), *found]),
    "first summands are taken for seven": lambda p: p.setattr(smt_sums, "_guess", lambda total, initial: b.num(7)),
}
"""Wrong guesses about sums, which have witnesses."""


MIXED, UNCHECKED = "Mixed", "Mixed without checks of effects"
CORPUS: dict[str, Sequence[tuple[str, str]]] = {
    "checks of effects are forgotten": [(MIXED, "each_has_one")],
    "checks of guards are forgotten": [("WrongIndex", "")],
    "sorts after the step are forgotten": [(UNCHECKED, "held")],
    "conditions are assumed outside their range": [(MIXED, "indices")],
    "witnesses of two conjuncts are one": [("TwoAlternatives", "")],
    "witnesses of two instances are one": [(MIXED, "each_has_one")],
    "conditions at two indices have one name": [(MIXED, "marked")],
    "a written index is forgotten, and its witness": [("copies", "")],
    "all written indices but one are forgotten, and their witness": [("Transfers", "")],
    "the witness of a change is a written index": [(MIXED, "pointed")],
    "equal written indices are counted twice": [("overwrites", "conserved")],
    "sums change at written indices only, whatever they read": [(MIXED, "pointed")],
    "sums are at least twice each part": [("Transfers", "conserved")],
    "the next state is read as this one": [(MIXED, "never_more")],
    "options are equal whatever they hold": [(MIXED, "where")],
    "an absent option is present": [(MIXED, "held")],
}
"""Where a fault is looked for: a model, and the one property that is of interest there; else `Mixed`, with all."""


@pytest.mark.parametrize("fault", share(TOO_STRONG, 6, first=2))
def test_a_translation_that_is_too_strong_is_noticed(monkeypatch: pytest.MonkeyPatch, small: Any, fault: str) -> None:
    """Some sample breaks a claim of which the faulty script says that nothing breaks it."""
    found = []
    for model, only in CORPUS.get(fault, [(MIXED, "")]):
        if model in (MIXED, UNCHECKED):
            parametric = Spec(Mixed).parametric(("n", "k"))
        else:
            parametric = small("Transfers", model) if model in ("copies", "overwrites") else small(model)
        if model == UNCHECKED:
            parametric = _rules(lambda i: replace(i, effect_checks=()))(parametric, None)
        chosen = tuple(p for p in parametric.system.properties if only in ("", p.name))
        parametric = replace(parametric, system=replace(parametric.system, properties=chosen))
        initial = [FIRST] if model == MIXED else []
        with monkeypatch.context() as patch:
            build = TOO_STRONG[fault](patch) or ProofObligation
            found.append(
                next(contradictions(parametric, *((100, 20) if only else (20, 2)), build=build, initial=initial), None)
            )
    assert any(found)


@pytest.mark.parametrize("fault", share(WEAK, 6))
def test_a_wrong_guess_about_sums_is_harmless(monkeypatch: pytest.MonkeyPatch, small: Any, fault: str) -> None:
    """Scripts stay possible whatever is guessed of written indices and first summands, because the witnesses show more."""
    mixed = Spec(Mixed).parametric(("n", "k"))
    chosen = tuple(p for p in mixed.system.properties if p.name in ("conserved", "weighted", "pointed", "grows"))
    mixed = replace(mixed, system=replace(mixed.system, properties=chosen))
    WEAK[fault](monkeypatch)
    for parametric, initial in (
        (small("Transfers", "copies"), []),
        (small("Transfers", "overwrites"), []),
        (mixed, [FIRST]),
    ):
        assert not list(contradictions(parametric, initial=initial))


def test_quantifiers_in_very_deep_terms_have_values() -> None:
    """A term deeper than Python's stack is evaluated like any other."""
    x, n = b.var("x", RangeSort(0, 5_000)), b.var("n", RangeSort(0, INFINITY))
    at = b.var("at", TermRange(0, INFINITY, b.num(0), n, "Range(0, n)"))
    deep = b.ite(forall(at, b.less_eq(at, x)), b.num(5), b.num(6))
    for k in range(3_000):
        deep = b.ite(b.eq(x, b.num(k)), b.num(7), deep)
    assert [Values({"x": 4_000, "n": n})(deep) for n in (3, 4_001)] == [5, 6]


def test_a_missing_element_in_a_branch_not_taken_costs_a_very_deep_term_no_value() -> None:
    """Only what is needed must have a value, at any depth; what needs a missing element has none."""
    x, n = b.var("x", RangeSort(0, 5_000)), b.var("n", RangeSort(0, INFINITY))
    index = TermRange(0, INFINITY, b.num(0), b.sub(n, b.num(1)), "Range(0, n - 1)")
    element = b.select(b.var("arr", ArraySort(index, RangeSort(0, 9))), x)
    deep, needed = b.ite(b.less(x, n), element, b.num(5)), element
    for k in range(3_000):
        deep = b.ite(b.eq(x, b.num(k + 10)), b.num(7), deep)
        needed = b.add(needed, b.num(k))
    state = {"n": 2, "arr": {0: 1, 1: 2}}
    assert [Values({"x": at, **state})(deep) for at in (1, 3)] == [2, 5]
    assert Values({"x": 1, **state})(needed) == 2 + sum(range(3_000))
    with pytest.raises(NoValue):
        Values({"x": 3, **state})(needed)
