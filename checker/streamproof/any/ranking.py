"""Proofs of ``leads_to`` by ranking functions: over unbounded integers, and for every value of parameters.

While a behaviour waits, from a state with `p` until one with `q`, a nonnegative function of the state, the rank, must
not increase, and a helpful action, which weak fairness guarantees to occur, must decrease it (Z. Manna, A. Pnueli,
"Completing the temporal picture", 1991, the rule for well-founded sets). The solver checks these conditions over
integers, with `inv` the invariants proved before and `wait` = `inv` and not `q`:

1. every step out of `wait` leads to `q`, or to a `wait` in which the rank is not larger;
2. in `wait`, the rank is not negative;
3. helpful is a fairness constraint each of whose steps out of `wait` leads to `q` or makes the rank smaller; in every
   `wait` one of them is enabled;
4. a step out of `wait` that does not change the rank, and does not lead to `q`, keeps enabled helpful actions enabled.

So the rank decreases again and again until `q` is true. If the rule does not apply to every state without `q`, it is
tried on the states in which `p` remains true until then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from typing import Any

from streamproof import interrupts
from streamproof.any.engine.claims import ends, inside
from streamproof.any.engine.values import SymbolicView, Universe
from streamproof.base.errors import UsageError
from streamproof.base.records import dataclass, replace
from streamproof.symbolic.solver import SolverAnswer, SolverBudget, Stopped, checked
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import atoms, claims
from streamproof.system.model import (
    Action,
    Conjunct,
    FairnessConstraint,
    Instance,
    Kind,
    Property,
    System,
    fairness_constraints,
)
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Sort, is_scalar
from streamproof.system.verdict import Finding, Measure, Verdict
from streamproof.transform.assume import Substitution
from streamproof.transform.constraint import after, changing
from streamproof.transform.fair_scheduler import enabled
from streamproof.transform.flatten import Rewriter
from streamproof.transform.rank_rule import Helpful, RankProof, RankRule, Waiting, waiting_for
from streamproof.transform.scalarise import scalarise
from streamproof.transform.unbounded import Forall, Parametric, Total, at_most, has_unbounded, instead_of

WEIGHTS = (1, 2, 3)
"""Coefficients of the summands in the search for a rank."""
PARTS = 3
"""Maximum number of summands of a rank."""
_OPERATORS = {ast.Add: b.add, ast.Sub: b.sub, ast.Mult: b.mul}


@dataclass(frozen=True, slots=True)
class Ranked:
    """The result of an attempt. `rank` proves the property, with the helpful fairness constraints `helpful`; both are
    empty if none was found. `invariants` were proved and used."""

    finding: Finding
    rank: str
    helpful: tuple[str, ...]
    invariants: tuple[str, ...]
    queries: int
    seconds: float
    proofs: tuple[RankProof, ...] = ()
    """Its proof of each ``leads_to``, for a certificate; none of a system without free parameters and unbounded integers."""


def prove_by_ranking(
    model: System | Parametric,
    name: str,
    *,
    rank: str | Measure | None = None,
    query_limit: float = 2.0,
    seconds: float = 60.0,
) -> Ranked:
    """Proves the temporal property called `name`, one or several ``leads_to`` (or ``always(eventually(...))``), by a
    ranking function.

    `rank` is an arithmetic expression over variables and parameters, ``2*left + wire``; without it, sums of few
    variables, measured from their bounds, are tried. `query_limit` limits one query, `seconds` the whole search. A proof
    holds for every value of the free parameters of a `Parametric`; without a proof the property is inconclusive, never
    violated.

    Raises `UsageError` for another kind of property, for a state with containers of unbounded size, and for an invalid
    rank.
    """
    return _RankAttempt(model, name, query_limit, seconds).run(rank)


class _RankAttempt:
    def __init__(self, model: System | Parametric, name: str, query_limit: float, seconds: float) -> None:
        self.seconds = seconds
        self.parametric: Parametric | None
        self.budget = SolverBudget(query_limit, seconds)
        if isinstance(model, Parametric):
            self.system, self.free, self.parametric = model.system, model.free, model
            self.initial = model.initial
            searched = bool(self.free) and not any(has_unbounded(v.sort) for v in self.system.variables)
            self._or_check = ", or use check at one size" if searched else ""
        else:
            self.system, self.free, self.parametric = scalarise(model).system, (), None
            self._or_check = ", or use check"
            first = (
                b.or_(b.eq(b.var(v.name, v.sort), b.const(v.sort, x)) for x in dict.fromkeys(v.initial))
                for v in self.system.variables
            )
            self.initial = b.and_((*first, self.system.initially))
        self.prop = self.system.property(name)
        if self.prop.formula is None:
            raise UsageError(f"{name} is not a temporal property", remedy="it can be proved without a ranking function")
        for v in self.system.variables:
            if not is_scalar(v.sort):
                raise UsageError(
                    f"{v.name} is of {v.sort}: ranking functions are for numbers, enums and truth values",
                    loc=v.loc,
                    remedy="give the parameters it depends on a value" if self.free else instead_of(v.sort),
                )
        self.system = _without_indices(self.system)
        self.sorts = {v.name: v.sort for v in self.system.variables}
        universe = Universe()
        now = {n: universe.fresh(n, s) for n, s in (*self.sorts.items(), *((f.name, f.sort) for f in self.free))}
        then = {n: universe.fresh(f"{n}'", s) for n, s in self.sorts.items()}
        self.view = SymbolicView(universe, now, SymbolicView(universe, then))
        self.solver: Any = universe.z3.Solver(ctx=universe.ctx)
        for f in self.free:
            self.solver.add(self.view.value(within(b.var(f.name, f.sort), f.sort)))
        for n, s in self.sorts.items():
            if isinstance(s, EnumSort):  # terms of enums have no other values, whatever is computed
                self.solver.add(now[n] >= 0, now[n] < len(s.members))
        self._refuse_quantifiers()
        self.fairness = fairness_constraints(self.system)
        self.invariants: list[tuple[str, Expr]] = []

    def _refuse_quantifiers(self) -> None:
        """Raises `UsageError`, with its line, for a quantified term: the queries are quantifier-free."""
        roots = [(self.prop.loc, atom.expr) for atom in atoms(self.prop.formula)] if self.prop.formula else []
        roots += [(None, self.initial), *((self.prop.loc, c.condition) for c in self.prop.checks)]
        for action in self.system.actions:
            roots += [(action.loc, term) for i in action.instances for term in _terms(i)]
        for place, root in roots:
            for term in e.subterms(root):
                if isinstance(term, Forall | Total):
                    raise UsageError(
                        f"{self.prop.name} has no rank: all(), any() or sum() over a range of free size",
                        loc=term.loc or place,
                        remedy="state it without the range, or give the parameters it depends on a value",
                    )

    # --- queries ---

    def valid(self, given: Iterable[Expr], claim: Expr) -> bool:
        """Whether the solver proves the claim for all integers. Raises `Stopped`."""
        self.solver.push()
        try:
            self.solver.add(*map(self.view.value, (*given, b.not_(claim))))
            return checked(self.solver, self.budget, ()) is SolverAnswer.NO
        finally:
            self.solver.pop()

    def _next(self, instance: Instance, term: Expr) -> Expr:
        """A condition on the state after a step of the instance, as a condition on the state before."""
        later = {v.name: b.next_(v.name, v.sort) for v in self.system.variables}
        read = {part for part in e.subterms(term) if isinstance(part, e.Var) and part.name in later}
        moved: dict[Expr, Expr] = {part: later[part.name] for part in read}
        return after(self.system, instance)(Substitution(moved)(term))

    # --- the attempt ---

    def run(self, rank: str | Measure | None) -> Ranked:
        """The result; inconclusive if a condition was not proved, with that condition."""
        try:
            with interrupts.limited(self.seconds), interrupts.doing("looking for a ranking function"):
                return self._run(rank)
        except (Stopped, interrupts.TimeUp):
            return self._open(f"out of time after {self.seconds:g} s: allow more, or give a rank")

    def _run(self, rank: str | Measure | None) -> Ranked:
        assert self.prop.formula is not None, "a temporal property has a formula"
        try:
            self._name = rank.name if isinstance(rank, Measure) else ""
            wanted = None if rank is None else self._term(rank)
            self._find_invariants()
            proofs: list[RankProof] = []
            for claim in claims(self.prop.formula):
                waiting = waiting_for(claim)
                if waiting is None:
                    return self._open("only leads_to, eventually and always(eventually(...)) of conditions have a rank")
                found = self._ranked(*waiting, wanted)
                if found is None:
                    tried = (
                        "the rank given does not show it" if wanted is not None else "no sum of few variables shows it"
                    )
                    return self._open(f"{tried}: give another with --rank, or invariants that it needs{self._or_check}")
                proofs.append(found)
        except _NotSafe as wrong:
            return self._open(str(wrong))
        return self._proved(proofs)

    def _proved(self, proofs: Sequence[RankProof]) -> Ranked:
        rank = "; ".join(dict.fromkeys(p.text for p in proofs))
        helpful = [*dict.fromkeys(h.constraint.label for p in proofs for h in p.helpful)]
        names = tuple(name for name, _ in self.invariants if name)
        for_all = f", for every value of {', '.join(f.name for f in self.free)}" if self.free else ""
        *first, last = helpful or [""]
        smaller = f", which {', '.join(first)} and {last} make smaller" if first else f", which {last} makes smaller"
        smaller = smaller if helpful else ""
        because = f"by the ranking function {rank}{smaller}{for_all}"
        if names:
            because += f", with {', '.join(names)}"
        finding = Finding(self.prop.name, Kind.TEMPORAL, Verdict.HOLDS, None, because)
        certifiable = tuple(proofs) if self.parametric is not None else ()
        return Ranked(finding, rank, tuple(helpful), names, self.budget.queries, self.budget.elapsed, certifiable)

    def _open(self, why: str) -> Ranked:
        finding = Finding(self.prop.name, Kind.TEMPORAL, Verdict.INCONCLUSIVE, None, why)
        return Ranked(finding, "", (), (), self.budget.queries, self.budget.elapsed)

    # --- invariants ---

    def _find_invariants(self) -> None:
        """The bounds of the variables and the offered invariants, as far as they are inductive together; no model errors."""
        offered = [(p.name, p.expr) for p in (*self.system.properties, *self.system.lemmas) if _offered(p)]
        bounds = [("", within(b.var(v.name, v.sort), v.sort)) for v in self.system.variables]
        bounds = [(n, c) for n, c in bounds if c is not b.TRUE]
        known = [(n, c) for n, c in (*bounds, *offered) if c is not b.TRUE and self.valid([self.initial], c)]
        changed = True
        while changed:
            kept = [(n, c) for n, c in known if self._kept(c, [x for _, x in known])]
            changed, known = len(kept) < len(known), kept
        self.invariants = known
        if any(bound not in known for bound in bounds):
            # Terms were simplified under the assumption of their sorts, so the domain claims must be proved.
            raise _NotSafe("it is not proved that every variable stays within its sort: prove that first, with a lemma")
        wrong = b.or_(self._mistakes())
        if not self.valid([c for _, c in known], b.not_(wrong)):
            raise _NotSafe(
                "it is not proved that the model makes no mistake: prove that first, and offer it as a lemma"
            )

    def _kept(self, condition: Expr, known: Sequence[Expr]) -> bool:
        """Whether the condition holds after every step out of the known states."""
        return all(self.valid([*known, *_guard(i)], self._next(i, condition)) for i in self.system.instances)

    def _mistakes(self) -> Iterator[Expr]:
        for i in self.system.instances:
            yield from (c.condition for c in i.guard_checks)
            outside = (b.not_(within(term, self.sorts[name])) for name, term in i.updates)
            yield b.and_((*_guard(i), b.or_((*(c.condition for c in i.effect_checks), *outside))))
        yield from (c.condition for c in self.prop.checks)

    # --- the rule ---

    def _ranked(self, p: Expr, q: Expr, wanted: Expr | None) -> RankProof | None:
        """A proof that `p` leads to `q`."""
        inv = [c for _, c in self.invariants]
        for region in (b.TRUE, p):
            wait = [*inv, region, b.not_(q)]
            if region is not b.TRUE and not self._kept(b.or_((q, region)), wait):
                continue
            for rank in (wanted,) if wanted is not None else self._candidates():
                helpful = self._shows(wait, q, rank)
                if helpful is not None:
                    original = self.parametric or Parametric(self.system, (), self.initial)
                    rule = RankRule(original, Waiting(region, q), idles=True)
                    names = tuple(name for name, _ in self.invariants if name)
                    return RankProof(rule, rank, tuple(map(Helpful, helpful)), names, name=self._name)
        return None

    def _shows(self, wait: Sequence[Expr], q: Expr, rank: Expr) -> tuple[FairnessConstraint, ...] | None:
        """The helpful constraints, if the rank proves the property."""
        instances = self.system.instances

        def steps(instance: Instance, claim: Expr, *given: Expr) -> bool:
            """Whether every step of the instance leads to `q` or satisfies the claim."""
            moved = after(self.system, instance)(changing(self.system))
            return self.valid([*wait, *_guard(instance), *given, moved], b.or_((self._next(instance, q), claim)))

        def smaller(instance: Instance) -> Expr:
            return b.not_(at_most(rank, self._next(instance, rank)))

        if not all(steps(i, at_most(self._next(i, rank), rank)) for i in instances):
            return None
        if not self.valid(wait, at_most(b.num(0), rank)):
            return None
        helpful = [o for o in self.fairness if all(steps(instances[n], smaller(instances[n])) for n in o.numbers)]
        can = {o: enabled(self.system, o) for o in helpful}
        if not self.valid(wait, b.or_(can.values())):
            return None
        for condition in can.values():
            if not all(steps(i, b.or_((smaller(i), self._next(i, condition))), condition) for i in instances):
                return None
        return tuple(helpful)

    # --- candidates ---

    def _candidates(self) -> Iterator[Expr]:
        """Sums of few summands, in ascending size."""
        parts = list(self._parts())
        for size in range(1, PARTS + 1):
            for chosen in combinations(parts, size):
                for weights in product(WEIGHTS, repeat=size):
                    if min(weights) == 1:
                        weighted = zip(weights, chosen, strict=True)
                        yield reduce(b.add, (part if w == 1 else b.mul(b.num(w), part) for w, part in weighted))

    def _parts(self) -> Iterator[Expr]:
        """Nonnegative functions of the state: the distance of a variable from its bounds."""
        for v in self.system.variables:
            term = b.var(v.name, v.sort)
            match v.sort:
                case RangeSort():
                    least, most = ends(v.sort)
                    if least is not None:
                        yield term if least is b.num(0) else b.sub(term, least)
                    if most is not None:
                        yield b.sub(most, term)
                    elif least is not None:
                        for f in self.free:
                            yield b.sub(b.var(f.name, f.sort), term)
                case BoolSort():
                    yield b.ite(term, b.num(1), b.num(0))
                    yield b.ite(term, b.num(0), b.num(1))
                case EnumSort(members):
                    for order in (members, members[::-1]):
                        place: Expr = b.num(0)
                        for at, member in enumerate(order):
                            place = b.ite(b.eq(term, b.const(v.sort, member)), b.num(at), place)
                        yield place
                case _:
                    continue

    def _term(self, rank: str | Measure) -> Expr:
        """The rank as a term over the variables here, which are scalars."""
        if isinstance(rank, str):
            return self._parsed(rank)
        if any(isinstance(t, Forall | Total) for t in e.subterms(rank.expr)):
            raise UsageError(
                f"{rank.name} is no rank here: all(), any() or sum() over a range of free size",
                loc=rank.loc,
                remedy="give the parameters it depends on a value",
            )
        return rank.expr if self.parametric is not None else Rewriter().scalar(rank.expr)

    def _parsed(self, text: str) -> Expr:
        """An arithmetic expression over variables and parameters."""
        known = {**self.sorts, **{f.name: f.sort for f in self.free}}

        def term(node: ast.expr) -> Expr:
            match node:
                case ast.Constant(value=int() as value) if not isinstance(value, bool):
                    return b.num(value)
                case ast.Attribute(value=ast.Name(id="s"), attr=name) | ast.Name(id=name):
                    sort = known.get(name)
                    if isinstance(sort, BoolSort):
                        return b.ite(b.var(name, sort), b.num(1), b.num(0))
                    if isinstance(sort, RangeSort):
                        return b.var(name, sort)
                case ast.UnaryOp(op=ast.USub(), operand=inner):
                    return b.sub(b.num(0), term(inner))
                case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                    return _OPERATORS[type(op)](term(left), term(right))
            numbers = ", ".join(n for n, s in known.items() if isinstance(s, RangeSort | BoolSort))
            raise UsageError(
                f"{ast.unparse(node)!r} is not supported in a rank",
                remedy=f"write sums, differences and products of {numbers}",
            )

        try:
            return term(ast.parse(text, mode="eval").body)
        except SyntaxError:
            raise UsageError(f"{text!r} is not an expression", remedy="write a rank like 2*left + wire") from None


def _without_indices(system: System) -> System:
    """The system with one instance of a rule for all values of a parameter with an unbounded range.

    The rule must not read the parameter, so all its instances are equal. The range may be empty, so the guard requires
    that it is not. Raises `UsageError` for a rule that reads the parameter.
    """

    def merged(action: Action, instance: Instance) -> Instance:
        indices = [v for _, v in instance.args if isinstance(v, e.Var)]
        if any(v.name in e.variables(*_terms(instance)) for v in indices):
            raise UsageError(
                f"{action.name} has a parameter from a range of free size",
                loc=action.loc,
                remedy="give the parameters it depends on a value",
            )
        some = tuple(Conjunct(_some(v.sort), f"{v.name} has a value", action.loc) for v in indices)
        args = tuple((n, v) for n, v in instance.args if not isinstance(v, e.Var))
        return replace(instance, args=args, guard=(*some, *instance.guard))

    return replace(
        system,
        actions=tuple(replace(a, instances=tuple(merged(a, i) for i in a.instances)) for a in system.actions),
    )


def _terms(instance: Instance) -> list[Expr]:
    """Every term of an instance."""
    checks = (*instance.guard_checks, *instance.effect_checks)
    return [*_guard(instance), *(term for _, term in instance.updates), *(c.condition for c in checks)]


class _NotSafe(Exception):
    """A state condition required by the rule was not proved."""


def within(term: Expr, sort: Sort) -> Expr:
    """The domain condition of a scalar term, without assuming the term's own sort."""
    return inside(term, sort, 0) if isinstance(sort, RangeSort) else b.TRUE


def _some(sort: Sort) -> Expr:
    """The range of a parameter is not empty."""
    assert isinstance(sort, RangeSort)
    least, most = ends(sort)
    return b.TRUE if least is None or most is None else at_most(least, most)


def _guard(instance: Instance) -> Iterator[Expr]:
    return (c.expr for c in instance.guard)


def _offered(prop: Property) -> bool:
    """Whether a property can serve as an invariant; quantified ones are outside the query fragment."""
    return (
        prop.kind is Kind.INVARIANT
        and not prop.checks
        and not any(isinstance(term, Forall | Total) for term in e.subterms(prop.expr))
    )
