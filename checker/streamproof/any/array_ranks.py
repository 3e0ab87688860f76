"""Proofs of temporal properties by ranking functions over arrays of any length.

`rank_rule` has the claims that make a sum a ranking function; the induction of `engine.proof` proves them. Without a given
rank, weights are sought that satisfy the claims in the states and steps of small instances; a solver finds the smallest
ones. What they suggest is proved for every size, or not used.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

from streamproof import interrupts
from streamproof.any.engine.claims import ends
from streamproof.any.engine.proof import AnySize, Stage, prove_any
from streamproof.any.engine.samples import Instantiate, small_values
from streamproof.any.ranking import Ranked
from streamproof.base.errors import EvaluationError, StreamproofError, UsageError
from streamproof.base.records import replace
from streamproof.symbolic.theory import SolverContext
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Kind, Property, State, System, fairness_constraints
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    KeySort,
    RangeSort,
    RecordSort,
    Sort,
    contains,
    is_scalar,
    values,
)
from streamproof.system.verdict import Finding, Measure, Verdict
from streamproof.transform.ground import Ground
from streamproof.transform.rank_rule import (
    Helpful,
    RankProof,
    RankRule,
    Waiting,
    as_claim,
    helpful_constraints,
    index_names,
    indices_of,
    waitings,
)
from streamproof.transform.unbounded import Parametric, Total, any_length, term_range, total

MOST_STATES = 1_500
"""Largest number of states of an instance that are looked at for a rank; an instance with more is looked at in part."""
TIMEOUT = 20.0
"""Seconds for the weights of one rank."""
NO_TIME = 0.001
"""Seconds that are left when a time limit is over."""
ATTEMPTS = 4
"""Number of ranks that are tried."""


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
        self.instantiate, self._stages = instantiate, stages
        self._query_limit, self._seconds, self._check = query_limit, seconds, check
        self.queries = 0

    def proved(self, rule: RankRule, rank: Expr, helpful: Sequence[Helpful]) -> tuple[RankProof, list[str]]:
        """The claims, proved for every size as far as they are; and the names of the others, none if it is a proof."""
        system, claims = rule.parametric.system, list(rule.claims(rank, helpful))
        offered = (*(p for p in system.properties if p.kind is Kind.INVARIANT), *system.lemmas)
        whole = replace(rule.parametric, system=replace(system, properties=(), lemmas=offered))
        found = self._prove(whole, claims, self._stages)
        failed = [p.name for p in claims if p.name not in found.proved]
        helps = rule.decreases(rank)
        if not failed and helpful:
            known = tuple(as_claim(c.name, Kind.INVARIANT, c.condition) for c in found.claims if not c.step)
            only = rule.helping(helpful)
            only = replace(only, system=replace(only.system, lemmas=known))
            # No laws are discovered here: one of the helpful rules alone may be false after other rules.
            if helps.name not in self._prove(only, [helps], ()).proved:
                failed.append(helps.name)
        discovered = tuple((c.name, c.condition) for c in found.claims if c.found)
        return RankProof(rule, rank, tuple(helpful), found.lemmas, discovered), failed

    def _prove(self, parametric: Parametric, claims: Sequence[Property], stages: Sequence[Stage]) -> AnySize:
        found = prove_any(parametric, claims, stages, query_limit=self._query_limit, seconds=self._seconds())
        self.queries += found.queries
        if self._seconds() <= NO_TIME:
            raise interrupts.TimeUp
        self._check(parametric, found)
        return found

    def prove(self, waiting: Waiting, rank: Expr | None) -> tuple[RankProof, list[str]] | None:
        """A proof with the given rank, or with one that small instances suggest; else the last attempt, None without one."""
        last = None
        for suggestion in self._suggested(waiting, rank):
            last = self.proved(*suggestion)
            if not last[1]:
                return last
        return last

    # --- ranks that small instances suggest

    def _parts(self, indices: Sequence[e.Var]) -> list[Expr]:
        """Nonnegative terms: distances from bounds, and indicators of the values of enums and truth values; of an array the
        sums of these, and those of its elements at the indices."""
        found: list[Expr] = []
        for v in self.parametric.system.variables:
            term = b.var(v.name, v.sort)
            found += _distances(term, v.sort)
            for index in indices:
                if any_length(v.sort) and v.sort.index == index.sort:
                    found += _distances(b.select(term, index), v.sort.element)
        return list(dict.fromkeys(found))

    def _suggested(self, waiting: Waiting, given: Expr | None) -> Iterator[tuple[RankRule, Expr, tuple[Helpful, ...]]]:
        """Ranks, smallest first, each with its helpful constraints: all that decrease it in the observed steps."""
        parts = self._parts(waiting.indices) if given is None else [given]
        observed = _Observed(self, waiting, parts)
        for small in small_values(self.parametric.free):
            observed.instance(small)
        rule = RankRule(self.parametric, waiting, observed.idles)
        if not observed.states:
            return  # no instance was looked at
        if not observed.choices:  # nothing waits in small instances: perhaps nothing ever does
            yield rule, b.num(0), ()
            return
        for weights in observed.weights() if given is None else [(1,)]:
            rank: Expr = b.num(0)
            for weight, part in zip(weights, parts, strict=True):
                if weight:
                    rank = b.add(rank, part if weight == 1 else b.mul(b.num(weight), part))
            yield rule, rank, observed.helpful(weights)


def has_indices(parametric: Parametric, name: str) -> bool:
    """Whether there are free parameters, and some variable is no scalar, or some rule or the property has an index."""
    if not parametric.free:
        return False  # no instance can be looked at
    formula = parametric.system.property(name).formula
    args = (v for i in parametric.system.instances for _, v in i.args)
    return (
        any(not is_scalar(v.sort) for v in parametric.system.variables)
        or any(isinstance(v, e.Var) for v in args)
        or (formula is not None and indices_of(parametric, formula) != ())
    )


def prove_over_indices(
    parametric: Parametric,
    name: str,
    *,
    rank: str | Measure | None,
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
    rank: str | Measure | None,
    instantiate: Instantiate,
    stages: Sequence[Stage],
    query_limit: float,
    seconds: float,
    check: Callable[[Parametric, AnySize], object],
) -> Ranked:
    prop = parametric.system.property(name)
    if prop.formula is None:
        raise UsageError(f"{name} is not a temporal property", remedy="it can be proved without a ranking function")
    begun = time.monotonic()

    def left() -> float:
        return max(seconds - (time.monotonic() - begun), NO_TIME)

    ranking = ArrayRanking(parametric, instantiate, stages, query_limit=query_limit, seconds=left, check=check)
    proofs: list[RankProof] = []

    def answer(verdict: Verdict, because: str) -> Ranked:
        finding = Finding(name, Kind.TEMPORAL, verdict, None, because)
        found = proofs if verdict is Verdict.HOLDS else ()
        ranks = "; ".join(dict.fromkeys(p.text for p in found))
        helpful = tuple(dict.fromkeys(h.label for p in found for h in p.helpful))
        used = tuple(dict.fromkeys(n for p in found for n in (*p.lemmas, *(name for name, _ in p.discovered))))
        spent = time.monotonic() - begun
        return Ranked(finding, ranks, helpful, used, ranking.queries, spent, tuple(found))

    if parametric.system.constraint is not None:
        return answer(Verdict.INCONCLUSIVE, "ranks over arrays are not looked for under a state constraint")
    if any(c.condition is not b.FALSE for c in prop.checks):
        return answer(
            Verdict.INCONCLUSIVE,
            "evaluating the property may be an error: state it without the operation that may fail",
        )
    for regions in waitings(parametric, prop.formula):
        if not regions:
            return answer(
                Verdict.INCONCLUSIVE, "only leads_to, eventually and always(eventually(...)) of conditions have a rank"
            )
        given = None if rank is None else _term(parametric, rank, regions[0].indices)
        last = None
        for waiting in regions:
            last = ranking.prove(waiting, given) or last
            if last is not None and not last[1]:
                break
        if last is None:
            what = "no sum of few parts decreases" if given is None else "the rank given does not decrease"
            other = "give one" if given is None else "give another"
            return answer(Verdict.INCONCLUSIVE, f"{what} in small instances: {other} with --rank")
        proof, failed = last
        if isinstance(rank, Measure):
            proof = replace(proof, name=rank.name)
        if failed:
            missing = " and ".join(failed)
            return answer(
                Verdict.INCONCLUSIVE,
                f"with the rank {proof.text} it is not proved that {missing}: give another with --rank, or lemmas",
            )
        proofs.append(proof)
    every = [f.name for f in parametric.free]
    every += [n for p in proofs for n in index_names(parametric, p.rule.waiting.indices).values()]
    ranks = "; ".join(dict.fromkeys(p.text for p in proofs))
    *first, last_one = dict.fromkeys(h.label for p in proofs for h in p.helpful) or [""]
    smaller = (
        f", which {', '.join(first)} and {last_one} make smaller" if first else f", which {last_one} makes smaller"
    )
    if all(isinstance(p.rank, e.Const) for p in proofs):
        own = " and ".join([*first, last_one])
        how = f"each step of {own} reaches the goal" if last_one else "no reachable state waits for the goal"
    else:
        how = f"by the ranking function {ranks}{smaller if last_one else ''}"
    return answer(Verdict.HOLDS, f"{how}, for every value of {', '.join(dict.fromkeys(every))}")


class _Observed:
    """What the steps of small instances out of waiting states do to the parts of a rank."""

    def __init__(self, ranking: ArrayRanking, waiting: Waiting, parts: Sequence[Expr]) -> None:
        self._ranking, self._waiting, self._parts = ranking, waiting, parts
        self._helpful = helpful_constraints(ranking.parametric, waiting.indices)
        """The constraints that may be helpful; the others are numbers of these."""
        self.steps: dict[tuple[int, ...], None] = {}
        """The differences of the parts, of each step that does not reach the goal."""
        self.of: list[dict[tuple[int, ...], None]] = [{} for _ in self._helpful]
        """The same of the steps of each constraint."""
        self.choices: dict[frozenset[int], None] = {}
        """The constraints that are enabled in a waiting state."""
        self.states = 0
        """Number of states that were looked at."""
        self.losses: dict[tuple[int, tuple[int, ...]], None] = {}
        """A constraint, and the differences of a step that disables one of its instances."""
        self.idles = False
        """Whether a rule was observed to be enabled without changing the state."""

    def instance(self, small: Mapping[str, int]) -> None:
        """Looks at the reachable states of an instance, up to a number of them."""
        try:
            system = self._ranking.instantiate(small)
            interpreter = Interpreter(system)
            found = dict.fromkeys(state for state, _ in zip(interpreter.initial_states(), range(64), strict=False))
        except StreamproofError:
            return
        put = Ground(small)
        indices = self._waiting.indices
        ranges = [put.indices(v.sort) for v in indices if isinstance(v.sort, RangeSort)]
        places = [
            self._place(system, small, dict(zip([v.name for v in indices], chosen, strict=True)))
            for chosen in product(*ranges)
        ]
        queue = list(found)
        for state in queue:
            self.states += 1
            try:
                after = [interpreter.take(instance, state) for instance in system.instances]
                for place in places:
                    self._state(system, interpreter, state, after, *place)
            except EvaluationError:
                return  # a mistake of the model
            self.idles |= state in after
            for then in after:
                if then is not None and then not in found and len(found) < MOST_STATES:
                    found[then] = None
                    queue.append(then)

    def _place(
        self, system: System, small: Mapping[str, int], chosen: Mapping[str, int]
    ) -> tuple[Expr, Expr, list[Expr], list[tuple[int, frozenset[int]]]]:
        """The conditions, the parts and the constraints of an instance at one value of the indices of the property."""
        put = Ground(small, chosen)
        parts = [put(part) for part in self._parts]
        return put(self._waiting.condition), put(self._waiting.goal), parts, self._groups(system, chosen)

    def _state(
        self,
        system: System,
        interpreter: Interpreter,
        state: State,
        after: Sequence[State | None],
        wait: Expr,
        goal: Expr,
        parts: Sequence[Expr],
        groups: Sequence[tuple[int, frozenset[int]]],
    ) -> None:
        if not interpreter.value(wait, state):
            return
        before = interpreter.values(parts, state)
        enabled = {at for at, then in enumerate(after) if then not in (None, state)}
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

    def _groups(self, system: System, chosen: Mapping[str, int]) -> list[tuple[int, frozenset[int]]]:
        """Each constraint of an instance: the number of the constraint for every size, and its rules."""
        found = []
        for concrete in fairness_constraints(system):
            for number, helpful in enumerate(self._helpful):
                o, at = helpful.constraint, dict(helpful.at)
                fixed = {n: v for n, v in o.args if not isinstance(v, e.Var)}
                fixed |= {n: chosen[at[v].name] for n, v in o.args if v in at}
                same = {n: v for n, v in concrete.args if n in fixed} == fixed
                if (o.action, o.branch, o.part) == (concrete.action, concrete.branch, concrete.part) and same:
                    found.append((number, frozenset(concrete.numbers)))
        return found

    def helpful(self, weights: Sequence[int]) -> tuple[Helpful, ...]:
        """The constraints whose steps all decrease the rank, and that no step disables without decreasing it. Of one that
        is helpful at every index, those at one index are left out."""

        def change(row: Sequence[int]) -> int:
            return sum(w * d for w, d in zip(weights, row, strict=True))

        lost = {o for o, row in self.losses if change(row) >= 0}
        taken = {o for choice in self.choices for o in choice}
        good = [self._helpful[o] for o in sorted(taken - lost) if all(change(row) < 0 for row in self.of[o])]
        return tuple(h for h in good if not any(h.is_part_of(other) for other in good))

    def weights(self) -> Iterator[tuple[int, ...]]:
        """Weights of the parts that satisfy the rule in everything observed, lightest first."""
        context = SolverContext()
        z3, ctx = context.z3, context.ctx
        solver = z3.Optimize(ctx=ctx)
        solver.set("timeout", int(1_000 * TIMEOUT))
        weights = [z3.Int(f"w{at}", ctx) for at in range(len(self._parts))]
        helps = [z3.Bool(f"h{at}", ctx) for at in range(len(self._helpful))]

        def change(row: Sequence[int]) -> Any:
            return z3.Sum([z3.IntVal(0, ctx), *(w * d for w, d in zip(weights, row, strict=True) if d)])

        solver.add(*(w >= 0 for w in weights), *(change(row) <= 0 for row in self.steps))
        for at, rows in enumerate(self.of):
            solver.add(z3.Implies(helps[at], context.all_of(change(row) < 0 for row in rows)))
        solver.add(*(context.any_of(helps[o] for o in choice) for choice in self.choices))
        solver.add(*(z3.Implies(helps[o], change(row) < 0) for o, row in self.losses))
        cost = [2 if any(isinstance(t, Total) for t in e.subterms(part)) else 1 for part in self._parts]
        solver.minimize(z3.Sum([z3.IntVal(0, ctx), *(w * c for w, c in zip(weights, cost, strict=True))]))
        for _ in range(ATTEMPTS):
            if interrupts.answer(solver) != z3.sat:
                return
            model = solver.model()
            chosen = tuple(model.eval(w, model_completion=True).as_long() for w in weights)
            yield chosen
            solver.add(context.any_of(w != x for w, x in zip(weights, chosen, strict=True)))


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
                if not any(isinstance(t, Total) for t in e.subterms(one)):  # a sum of sums is outside the fragment
                    yield total(bound, one)
        case ArraySort(index, element):
            for key in values(index):
                yield from _distances(b.select(term, b.const(index, key)), element)


_OPERATORS = {ast.Add: b.add, ast.Sub: b.sub, ast.Mult: b.mul}


def _term(parametric: Parametric, rank: str | Measure, indices: Sequence[e.Var]) -> Expr:
    return rank.expr if isinstance(rank, Measure) else parsed_rank(parametric, rank, indices)


def parsed_rank(parametric: Parametric, text: str, indices: Sequence[e.Var] = ()) -> Expr:
    """An arithmetic expression over variables, parameters and the indices of the property, with sums over ranges:
    ``sum(2*left[c] + wire[c] for c in range(n))``. Truth values count 1 or 0, and so does ``busy[c] == "WORK"``. Raises
    `UsageError`."""
    known: dict[str, Expr] = {v.name: b.var(v.name, v.sort) for v in parametric.system.variables}
    known |= {f.name: b.var(f.name, f.sort) for f in parametric.free}
    known |= {name: index for index, name in index_names(parametric, indices).items()}

    def number(term: Expr, node: ast.expr) -> Expr:
        if isinstance(term.sort, BoolSort):
            return b.ite(term, b.num(1), b.num(0))
        if isinstance(term.sort, RangeSort):
            return term
        raise refused(node)

    def refused(node: ast.expr) -> UsageError:
        return UsageError(
            f"{ast.unparse(node)!r} is not supported in a rank",
            remedy="write sums, differences and products of numbers, array[i], array['key'], and sum(... for i in range(n))",
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
                    return b.select(term, key(term.sort.index, index, names))
        raise refused(node)

    def key(sort: Sort, node: ast.expr, names: Mapping[str, Expr]) -> Expr:
        if not isinstance(sort, EnumSort | KeySort):
            return value(node, names)
        try:
            given = ast.literal_eval(node)
            known = contains(sort, given)
        except (ValueError, TypeError):  # no literal, or one that is no key, such as a list
            known = False
        if not known:
            raise refused(node)
        return b.const(sort, given)

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
