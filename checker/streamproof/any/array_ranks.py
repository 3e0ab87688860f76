"""Proofs of ``leads_to`` by ranking functions over arrays of any length.

The rule is that of `ranking`, with claims that the induction of `engine.proof` proves. A rank is a sum of terms of the state,
and of sums over an index. While a behaviour waits, these claims make it decrease again and again; `wait` are the states in
which it waits, R is the rank, and some fairness constraints are *helpful*:

1. every step out of `wait` leads to `q`, or does not increase R, and the behaviour waits on;
2. in `wait`, R is not negative;
3. every step of a helpful instance out of `wait` leads to `q` or decreases R: proved of the system with these rules alone;
4. in `wait`, some instance of a helpful constraint is enabled, for some index;
5. every step out of `wait` leads to `q`, or decreases R, or leaves enabled helpful instances enabled, for every index.

"Enabled" and "step of a helpful instance" mean steps that change the state: these are what fairness is about. If `q` were
never reached, R would be constant from some step on, by 1 and 2; then an instance is enabled, by 4, and stays so, by 5; it is
taken, by weak fairness, and R decreases, by 3: a contradiction.

Without a given rank, weights are sought that satisfy 1 to 5 in the states and steps of small instances; a solver finds the
smallest ones. What they suggest is proved for every size, or not used.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from streamproof import interrupts
from streamproof.any.engine.claims import at_most, ends
from streamproof.any.engine.proof import AnySize, Stage, prove_any
from streamproof.any.engine.samples import Instantiate, small_values
from streamproof.any.ranking import Ranked, waiting_for
from streamproof.base.errors import EvaluationError, StreamproofError, UsageError
from streamproof.base.records import dataclass, replace
from streamproof.symbolic.theory import SolverContext
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import claims
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import (
    Conjunct,
    FairnessConstraint,
    Kind,
    Property,
    System,
    fairness_constraints,
)
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    is_scalar,
    values,
)
from streamproof.system.verdict import Finding, Verdict
from streamproof.transform.assume import Substitution
from streamproof.transform.ground import Ground
from streamproof.transform.unbounded import (
    Forall,
    Parametric,
    Total,
    any_length,
    exists,
    forall,
    term_range,
    total,
    written,
)

MOST_STATES = 1_500
"""Largest number of states of an instance that are looked at for a rank; an instance with more is looked at in part."""
TIMEOUT = 20.0
"""Seconds for the weights of one rank."""
ATTEMPTS = 4
"""Number of ranks that are tried."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The states in which a behaviour waits: `region` and not `goal`."""

    region: Expr
    goal: Expr

    @property
    def condition(self) -> Expr:
        """The condition on the state."""
        return b.and_((self.region, b.not_(self.goal)))


@dataclass(frozen=True, slots=True)
class ArrayRank:
    """A proof of one ``leads_to``. `failed` are the claims that were not proved; empty if it is one."""

    rank: Expr
    helpful: tuple[FairnessConstraint, ...]
    used: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class ArrayRanking:
    """Searches for proofs about one parametric system."""

    def __init__(
        self,
        parametric: Parametric,
        instantiate: Instantiate,
        stages: Sequence[Stage],
        *,
        query_limit: float | None = None,
        seconds: Callable[[], float] = lambda: 60.0,
        check: Callable[[Parametric, AnySize], object] = lambda model, proof: None,
    ) -> None:
        """`check` gets each proof of claims, with its model: it raises an error if a second opinion differs."""
        self.parametric = parametric
        self.system = parametric.system
        self._instantiate, self._stages = instantiate, stages
        self._query_limit, self._seconds, self._check = query_limit, seconds, check
        known = {*self.system.index, *(f.name for f in parametric.free)}
        self.fairness = tuple(o for o in fairness_constraints(self.system) if self._is_readable(o, known))
        """The constraints whose rules read nothing but the state, free parameters and their own indices."""
        self.idles = False
        """Whether a rule was observed to be enabled without changing the state."""
        self.queries = 0

    def _is_readable(self, constraint: FairnessConstraint, known: set[str]) -> bool:
        own = {v.name for _, v in constraint.args if isinstance(v, e.Var)}
        for number in constraint.numbers:
            instance = self.system.instances[number]
            terms = (*(c.expr for c in instance.guard), *(t for _, t in instance.updates))
            if e.variables(*terms) - known - own:
                return False
        return True

    # --- the claims

    def later(self, term: Expr) -> Expr:
        """A term about the state after a step."""
        moved: dict[Expr, Expr] = {b.var(v.name, v.sort): b.next_(v.name, v.sort) for v in self.system.variables}
        return _Replaced(moved)(term)

    def can(self, constraint: FairnessConstraint) -> tuple[list[Expr], Expr]:
        """An instance of the constraint is enabled, and changes the state: the indices, and the condition at them."""
        rules = [self.system.instances[number] for number in constraint.numbers]
        changes = (
            b.or_(_differ(t, b.var(n, t.sort)) for n, t in rule.updates) if self.idles else b.TRUE for rule in rules
        )
        enabled = b.or_(b.and_((*(c.expr for c in rule.guard), x)) for rule, x in zip(rules, changes, strict=True))
        own = [v for _, v in constraint.args if isinstance(v, e.Var)]
        indices = [b.var(f"{v.name}''", v.sort) for v in own]  # a name that no rule has
        return indices, _Replaced(dict(zip(own, indices, strict=True)))(enabled)

    def claims(self, waiting: Waiting, rank: Expr, helpful: Sequence[FairnessConstraint]) -> Iterator[Property]:
        """The claims 1, 2, 4 and 5; 3 is of another system."""
        wait, later = waiting.condition, self.later
        goes_on = b.and_((at_most(later(rank), rank), later(waiting.region)))
        yield _claim("the rank does not increase", Kind.STEP, b.or_((b.not_(wait), later(waiting.goal), goes_on)))
        yield _claim("the rank is not negative", Kind.INVARIANT, b.or_((b.not_(wait), at_most(b.num(0), rank))))
        some = []
        for constraint in helpful:
            indices, enabled = self.can(constraint)
            for index in indices:
                enabled = exists(index, enabled)
            some.append(enabled)
        yield _claim("a helpful action is enabled", Kind.INVARIANT, b.or_((b.not_(wait), *some)))
        for number, constraint in enumerate(helpful, 1):
            indices, enabled = self.can(constraint)
            smaller = (b.not_(wait), later(waiting.goal), self._smaller(rank))
            stays = b.or_((*smaller, b.not_(enabled), later(enabled)))
            for index in indices:
                stays = forall(index, stays)
            yield _claim(f"{label(constraint)} stays enabled (helpful constraint {number})", Kind.STEP, stays)

    def _smaller(self, rank: Expr) -> Expr:
        return b.not_(at_most(rank, self.later(rank)))

    # --- the proof

    def proved(self, waiting: Waiting, rank: Expr, helpful: Sequence[FairnessConstraint]) -> ArrayRank:
        """The claims, proved for every size as far as they are."""
        system, claims = self.system, list(self.claims(waiting, rank, helpful))
        offered = (*(p for p in system.properties if p.kind is Kind.INVARIANT), *system.lemmas)
        found = self._prove(replace(self.parametric, system=replace(system, properties=(), lemmas=offered)), claims)
        failed = [p.name for p in claims if p.name not in found.proved]
        known = tuple(_claim(c.name, Kind.INVARIANT, c.condition) for c in found.claims if not c.step)
        numbers = sorted({number for constraint in helpful for number in constraint.numbers})
        chosen = {id(system.instances[number]) for number in numbers}
        actions = tuple(
            replace(a, instances=kept)
            for a in system.actions
            if (kept := tuple(i for i in a.instances if id(i) in chosen))
        )
        only = replace(self.parametric, system=replace(system, actions=actions, properties=(), lemmas=known))
        changes = b.or_(_differ(b.next_(v.name, v.sort), b.var(v.name, v.sort)) for v in system.variables)
        idle = b.not_(changes) if self.idles else b.FALSE
        decreases = b.or_((b.not_(waiting.condition), self.later(waiting.goal), self._smaller(rank), idle))
        helps = _claim("a helpful step decreases the rank", Kind.STEP, decreases)
        if not failed and helps.name not in self._prove(only, [helps]).proved:
            failed.append(helps.name)
        used = (*found.lemmas, *found.found)
        return ArrayRank(rank, tuple(helpful), used, tuple(failed))

    def _prove(self, parametric: Parametric, claims: Sequence[Property]) -> AnySize:
        found = prove_any(parametric, claims, self._stages, query_limit=self._query_limit, seconds=self._seconds())
        self.queries += found.queries
        self._check(parametric, found)
        return found

    def prove(self, waiting: Waiting, rank: Expr | None) -> ArrayRank | None:
        """A proof with the given rank, or with one that small instances suggest; else the last attempt, None without one."""
        last: ArrayRank | None = None
        for weighted, helpful in self._suggested(waiting, rank):
            last = self.proved(waiting, weighted, helpful)
            if not last.failed:
                return last
        return last

    # --- ranks that small instances suggest

    def _parts(self) -> list[Expr]:
        """Nonnegative terms: distances from bounds, and indicators of the values of enums and truth values."""
        found: list[Expr] = []
        for v in self.system.variables:
            found += _distances(b.var(v.name, v.sort), v.sort)
        return list(dict.fromkeys(found))

    def _suggested(self, waiting: Waiting, given: Expr | None) -> Iterator[tuple[Expr, tuple[FairnessConstraint, ...]]]:
        """Ranks, smallest first, each with its helpful constraints: all that decrease it in the observed steps."""
        parts = self._parts() if given is None else [given]
        observed = _Observed(self, waiting, parts)
        for small in small_values(self.parametric.free):
            observed.instance(small)
        if not observed.states:
            return  # no instance was looked at
        if not observed.choices:  # nothing waits in small instances: perhaps nothing ever does
            yield b.num(0), ()
            return
        for weights in observed.weights() if given is None else [(1,)]:
            rank: Expr = b.num(0)
            for weight, part in zip(weights, parts, strict=True):
                if weight:
                    rank = b.add(rank, part if weight == 1 else b.mul(b.num(weight), part))
            yield rank, tuple(self.fairness[at] for at in observed.helpful(weights))


def has_indices(parametric: Parametric) -> bool:
    """Whether there are free parameters, and some variable is no scalar, or some rule has an index."""
    if not parametric.free:
        return False  # no instance can be looked at
    args = (v for i in parametric.system.instances for _, v in i.args)
    return any(not is_scalar(v.sort) for v in parametric.system.variables) or any(isinstance(v, e.Var) for v in args)


def prove_over_indices(
    parametric: Parametric,
    name: str,
    *,
    rank: str | None,
    instantiate: Instantiate,
    stages: Sequence[Stage],
    query_limit: float,
    seconds: float,
    check: Callable[[Parametric, AnySize], object] = lambda model, proof: None,
) -> Ranked:
    """Proves the temporal property called `name`, as `ranking.prove_by_ranking` does.

    Inconclusive, never violated, without a proof. Raises `UsageError` for another kind of property and for an invalid rank.
    """
    begun = time.monotonic()
    try:
        with interrupts.limited(seconds), interrupts.doing("looking for a ranking function"):
            return _proved_over_indices(parametric, name, rank, instantiate, stages, query_limit, seconds, check)
    except interrupts.TimeUp:
        why = f"out of time after {seconds:g} s: allow more, or give a rank"
    return Ranked(
        Finding(name, Kind.TEMPORAL, Verdict.INCONCLUSIVE, None, why), "", (), (), 0, time.monotonic() - begun
    )


def _proved_over_indices(
    parametric: Parametric,
    name: str,
    rank: str | None,
    instantiate: Instantiate,
    stages: Sequence[Stage],
    query_limit: float,
    seconds: float,
    check: Callable[[Parametric, AnySize], object],
) -> Ranked:
    prop = parametric.system.property(name)
    if prop.formula is None:
        raise UsageError(f"{name} is not a temporal property", remedy="it can be proved without a ranking function")
    given = None if rank is None else parsed_rank(parametric, rank)
    begun = time.monotonic()

    def left() -> float:
        return max(seconds - (time.monotonic() - begun), 0.001)

    ranking = ArrayRanking(parametric, instantiate, stages, query_limit=query_limit, seconds=left, check=check)

    def answer(verdict: Verdict, because: str, proofs: Sequence[ArrayRank] = ()) -> Ranked:
        finding = Finding(name, Kind.TEMPORAL, verdict, None, because)
        ranks = "; ".join(dict.fromkeys(written(p.rank) for p in proofs))
        helpful = tuple(dict.fromkeys(label(o) for p in proofs for o in p.helpful))
        used = tuple(dict.fromkeys(n for p in proofs for n in p.used))
        return Ranked(finding, ranks, helpful, used, ranking.queries, time.monotonic() - begun)

    if parametric.system.constraint is not None:
        return answer(Verdict.INCONCLUSIVE, "ranks over arrays are not looked for under a state constraint")
    if any(c.condition is not b.FALSE for c in prop.checks):
        return answer(
            Verdict.INCONCLUSIVE,
            "evaluating the property may be an error: state it without the operation that may fail",
        )
    proofs: list[ArrayRank] = []
    for claim in claims(prop.formula):
        waiting = waiting_for(claim)
        if waiting is None:
            return answer(
                Verdict.INCONCLUSIVE, "only leads_to, eventually and always(eventually(...)) of conditions have a rank"
            )
        p, q = waiting
        last = ranking.prove(Waiting(b.TRUE, q), given)
        if (last is None or last.failed) and p is not b.TRUE:
            last = ranking.prove(Waiting(p, q), given) or last
        if last is None:
            what = "no sum of few parts decreases" if given is None else "the rank given does not decrease"
            other = "give one" if given is None else "give another"
            return answer(Verdict.INCONCLUSIVE, f"{what} in small instances: {other} with --rank")
        if last.failed:
            missing = " and ".join(last.failed)
            return answer(
                Verdict.INCONCLUSIVE,
                f"with the rank {written(last.rank)} it is not proved that {missing}: give another with --rank, or lemmas",
            )
        proofs.append(last)
    free = ", ".join(f.name for f in parametric.free)
    ranks = "; ".join(dict.fromkeys(written(p.rank) for p in proofs))
    *first, last_one = dict.fromkeys(label(o) for p in proofs for o in p.helpful) or [""]
    smaller = (
        f", which {', '.join(first)} and {last_one} make smaller" if first else f", which {last_one} makes smaller"
    )
    if all(isinstance(p.rank, e.Const) for p in proofs):
        own = " and ".join([*first, last_one])
        how = f"each step of {own} reaches the goal" if last_one else "no reachable state waits for the goal"
    else:
        how = f"by the ranking function {ranks}{smaller if last_one else ''}"
    because = f"{how}, for every value of {free}"
    return answer(Verdict.HOLDS, because, proofs)


class _Observed:
    """What the steps of small instances out of waiting states do to the parts of a rank."""

    def __init__(self, ranking: ArrayRanking, waiting: Waiting, parts: Sequence[Expr]) -> None:
        self._ranking, self._waiting, self._parts = ranking, waiting, parts
        self.steps: dict[tuple[int, ...], None] = {}
        """The differences of the parts, of each step that does not reach the goal."""
        self.of: list[dict[tuple[int, ...], None]] = [{} for _ in ranking.fairness]
        """The same of the steps of each constraint."""
        self.choices: dict[frozenset[int], None] = {}
        """The constraints that are enabled in a waiting state."""
        self.states = 0
        """Number of states that were looked at."""
        self.losses: dict[tuple[int, tuple[int, ...]], None] = {}
        """A constraint, and the differences of a step that disables one of its instances."""

    def instance(self, small: Mapping[str, int]) -> None:
        """Looks at the reachable states of an instance, up to a number of them."""
        try:
            system = self._ranking._instantiate(small)
            interpreter = Interpreter(system)
            found = dict.fromkeys(state for state, _ in zip(interpreter.initial_states(), range(64), strict=False))
        except StreamproofError:
            return
        put = Ground(small)
        wait, goal = put(self._waiting.condition), put(self._waiting.goal)
        parts = [put(part) for part in self._parts]
        groups = self._groups(system)
        queue = list(found)
        for state in queue:
            self.states += 1
            try:
                after = [interpreter.take(instance, state) for instance in system.instances]
                waits = bool(interpreter.value(wait, state))
                before = interpreter.values(parts, state) if waits else ()
            except EvaluationError:
                return  # a mistake of the model
            for then in after:
                if then is not None and then not in found and len(found) < MOST_STATES:
                    found[then] = None
                    queue.append(then)
            if not waits:
                continue
            enabled = {at for at, then in enumerate(after) if then not in (None, state)}
            self._ranking.idles |= state in after
            self.choices[frozenset(o for o, numbers in groups if enabled & numbers)] = None
            for number, then in enumerate(after):
                if then is None or then == state or interpreter.value(goal, then):
                    continue
                change = tuple(x - y for x, y in zip(interpreter.values(parts, then), before, strict=True))
                self.steps[change] = None
                for o, numbers in groups:
                    if number in numbers:
                        self.of[o][change] = None
                    elif enabled & numbers and not any(
                        interpreter.take(system.instances[other], then) not in (None, then) for other in numbers
                    ):
                        self.losses[o, change] = None

    def _groups(self, system: System) -> list[tuple[int, frozenset[int]]]:
        """Each constraint of an instance: the number of the constraint for every size, and its rules."""
        found = []
        for concrete in fairness_constraints(system):
            for at, o in enumerate(self._ranking.fairness):
                fixed = {n: v for n, v in o.args if not isinstance(v, e.Var)}
                same = {n: v for n, v in concrete.args if n in fixed} == fixed
                if (o.action, o.branch) == (concrete.action, concrete.branch) and same:
                    found.append((at, frozenset(concrete.numbers)))
        return found

    def helpful(self, weights: Sequence[int]) -> list[int]:
        """The constraints whose steps all decrease the rank, and that no step disables without decreasing it."""

        def change(row: Sequence[int]) -> int:
            return sum(w * d for w, d in zip(weights, row, strict=True))

        lost = {o for o, row in self.losses if change(row) >= 0}
        taken = {o for choice in self.choices for o in choice}
        return [o for o in sorted(taken - lost) if all(change(row) < 0 for row in self.of[o])]

    def weights(self) -> Iterator[tuple[int, ...]]:
        """Weights of the parts that satisfy the rule in everything observed, lightest first."""
        context = SolverContext()
        z3, ctx = context.z3, context.ctx
        solver = z3.Optimize(ctx=ctx)
        solver.set("timeout", int(1_000 * TIMEOUT))
        weights = [z3.Int(f"w{at}", ctx) for at in range(len(self._parts))]
        helps = [z3.Bool(f"h{at}", ctx) for at in range(len(self._ranking.fairness))]

        def change(row: Sequence[int]) -> Any:
            return z3.Sum([z3.IntVal(0, ctx), *(w * d for w, d in zip(weights, row, strict=True) if d)])

        solver.add(*(w >= 0 for w in weights), *(change(row) <= 0 for row in self.steps))
        for at, rows in enumerate(self.of):
            solver.add(z3.Implies(helps[at], context.all_of(change(row) < 0 for row in rows)))
        solver.add(*(context.any_of(helps[o] for o in choice) for choice in self.choices))
        solver.add(*(z3.Implies(helps[o], change(row) < 0) for o, row in self.losses))
        solver.minimize(z3.Sum([z3.IntVal(0, ctx), *weights]))
        for _ in range(ATTEMPTS):
            if interrupts.answer(solver) != z3.sat:
                return
            model = solver.model()
            chosen = tuple(model.eval(w, model_completion=True).as_long() for w in weights)
            yield chosen
            solver.add(context.any_of(w != x for w, x in zip(weights, chosen, strict=True)))


class _Replaced(Substitution):
    """A substitution of names that no quantifier binds, also under quantifiers and sums."""

    def rebuild(self, term: Expr) -> Expr:
        """The term from its substituted operands."""
        if isinstance(term, Forall | Total) and isinstance(term.bound.sort, TermRange):
            ends = (term.bound.sort.least, term.bound.sort.most)
            assert all(self(end) is end for end in ends), "the language and ranks have ranges of parameters only"
        match term:
            case Forall(bound=bound, body=body):
                return forall(bound, self(body), term.loc)
            case Total(bound=bound, body=body):
                return total(bound, self(body), term.loc)
            case _:
                return super().rebuild(term)


def _differ(one: Expr, other: Expr) -> Expr:
    """Two values of a variable are different."""
    if any_length(other.sort):
        at = b.var("at'", other.sort.index)
        return b.not_(forall(at, b.not_(_differ(b.select(one, at), b.select(other, at)))))
    return b.not_(b.eq(one, other))


def _claim(name: str, kind: Kind, condition: Expr) -> Property:
    return Property(name, kind, condition, (Conjunct(condition, name, None),))


def label(constraint: FairnessConstraint) -> str:
    """A constraint as text, with the names of its indices: ``send(i)``."""
    args = (
        n if isinstance(v, e.Var) else f"{n}={text}"
        for (n, v), text in zip(constraint.args, constraint.texts, strict=True)
    )
    branch = "" if constraint.branch is None else f": {constraint.branch}"
    return f"{constraint.action}({', '.join(args)}){branch}"


def _distances(term: Expr, sort: Sort) -> Iterator[Expr]:
    """Nonnegative terms that depend on a term of this sort."""
    match sort:
        case RangeSort():
            least, most = ends(sort)
            if least is not None:
                yield term if least is b.num(0) else b.sub(term, least)
            if most is not None:
                yield b.sub(most, term)
        case BoolSort():
            yield b.ite(term, b.num(1), b.num(0))
            yield b.ite(term, b.num(0), b.num(1))
        case EnumSort(members):
            for member in members:
                yield b.ite(b.eq(term, b.const(sort, member)), b.num(1), b.num(0))
        case RecordSort(fields):
            for name, part in fields:
                yield from _distances(b.field(term, name), part)
        case ArraySort(index, element) if any_length(sort):
            bound = b.var("at'", index)
            for one in _distances(b.select(term, bound), element):
                yield total(bound, one)
        case ArraySort(index, element):
            for key in values(index):
                yield from _distances(b.select(term, b.const(index, key)), element)


_OPERATORS = {ast.Add: b.add, ast.Sub: b.sub, ast.Mult: b.mul}


def parsed_rank(parametric: Parametric, text: str) -> Expr:
    """An arithmetic expression over variables and parameters, with sums over ranges:
    ``sum(2*left[c] + wire[c] for c in range(n))``. Truth values count 1 or 0, and so does ``busy[c] == "WORK"``. Raises
    `UsageError`."""
    known: dict[str, Expr] = {v.name: b.var(v.name, v.sort) for v in parametric.system.variables}
    known |= {f.name: b.var(f.name, f.sort) for f in parametric.free}

    def number(term: Expr, node: ast.expr) -> Expr:
        if isinstance(term.sort, BoolSort):
            return b.ite(term, b.num(1), b.num(0))
        if isinstance(term.sort, RangeSort):
            return term
        raise refused(node)

    def refused(node: ast.expr) -> UsageError:
        return UsageError(
            f"{ast.unparse(node)!r} is not supported in a rank",
            remedy="write sums, differences and products of numbers, array[i], and sum(... for i in range(n))",
        )

    def place(node: ast.expr, names: Mapping[str, Expr]) -> Expr:
        match node:
            case ast.Attribute(value=ast.Name(id="s"), attr=name) | ast.Name(id=name) if name in names:
                return names[name]
            case ast.Attribute(value=inner, attr=name):
                term = place(inner, names)
                if isinstance(term.sort, RecordSort) and name in dict(term.sort.fields):
                    return b.field(term, name)
            case ast.Subscript(value=inner, slice=index):
                term = place(inner, names)
                if isinstance(term.sort, ArraySort):
                    return b.select(term, value(index, names))
        raise refused(node)

    def value(node: ast.expr, names: Mapping[str, Expr]) -> Expr:
        match node:
            case ast.Constant(value=int() as given) if not isinstance(given, bool):
                return b.num(given)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return b.sub(b.num(0), value(inner, names))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left, names), value(right, names))
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str() as member)]):
                term = place(left, names)
                if isinstance(term.sort, EnumSort) and member in term.sort.members:
                    return number(b.eq(term, b.const(term.sort, member)), node)
            case ast.Call(
                func=ast.Name(id="sum"),
                args=[
                    ast.GeneratorExp(
                        elt=part,
                        generators=[
                            ast.comprehension(
                                target=ast.Name(id=name),
                                iter=ast.Call(func=ast.Name(id="range"), args=[length], keywords=[]),
                                ifs=[],
                            )
                        ],
                    )
                ],
                keywords=[],
            ):
                most = b.sub(value(length, names), b.num(1))
                if e.variables(most) - {f.name for f in parametric.free}:
                    raise refused(node)  # its range would be another one after a step
                if isinstance(most, e.Const):
                    every = (value(part, {**names, name: b.num(at)}) for at in range(most.value + 1))
                    return reduce(b.add, every, b.num(0))
                index = b.var(f"{name}'", term_range(b.num(0), most))
                return total(index, value(part, {**names, name: index}))
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return number(place(node, names), node)
        raise refused(node)

    try:
        return value(ast.parse(text, mode="eval").body, known)
    except SyntaxError:
        raise UsageError(f"{text!r} is not an expression", remedy="write a rank like 2*left + wire") from None
