"""Candidate conservation laws of a parametric system: sums at one index, and sums over all indices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamproof.any.engine.claims import ParametricClaim
from streamproof.any.engine.local import Local, forgetting, local, own_index, without
from streamproof.base.records import dataclass
from streamproof.symbolic.discovery.laws import Books, Law
from streamproof.symbolic.discovery.linear import ONE, Form, amount, form, plus, scaled
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import System
from streamproof.system.sorts import BoolSort
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import Forall, Parametric, count, forall, total, written

MOST_LEFT_OUT = 12
"""Maximum number of actions that are excluded, one at a time, in the search for laws."""


EQUAL, AT_MOST, AT_LEAST = "=", "<=", ">="


def law_candidates(parametric: Parametric) -> list[ParametricClaim]:
    """Laws that the rules suggest. An action that resets the state conserves every law, but appears to violate all of
    them syntactically, so laws are also computed without each such action; induction decides whether they hold."""
    return _found(parametric, lambda system: Books(system).kept(), (EQUAL,))


def drift_candidates(parametric: Parametric) -> list[ParametricClaim]:
    """Bounds that the rules suggest: sums conserved by all actions but one, which changes them in one direction only."""
    return _found(parametric, lambda system: Books(system).drifting(), (AT_MOST, AT_LEAST))


def _found(
    parametric: Parametric, look: Callable[[System], Iterable[Law]], relations: tuple[str, ...]
) -> list[ParametricClaim]:
    view = local(parametric)
    if view is None:
        return []
    finder = LawFinder(parametric, view)
    left_out = list(dict.fromkeys(forgetting(view.system)))[:MOST_LEFT_OUT]
    groups: list[set[str] | None] = [None]
    for bound in dict.fromkeys(view.index.values()):
        groups.append({name for name, own in view.index.items() if own is bound})
    found: dict[str, ParametricClaim] = {}
    for actions in ((), *((name,) for name in left_out)):
        for group in groups:
            for law in look(without(view.system, actions, group)):
                for relation in relations:
                    claim = finder.claim(law, relation)
                    if claim is not None:
                        found.setdefault(claim.name, claim)
    return list(found.values())


@dataclass
class LawFinder:
    """Turns laws of the local view into claims on the parametric system."""

    parametric: Parametric
    view: Local

    def __post_init__(self) -> None:
        self._back = Substitution({b.var(n, t.sort): t for n, t in self.view.terms.items()})
        self._starts = dict(self._first())

    def _first(self) -> Iterator[tuple[Expr, Expr]]:
        """The initial values of terms, if expressible as one term over the parameters."""
        initial = self.parametric.initial
        for part in initial.args if isinstance(initial, e.And) else (initial,):
            match part:
                case Forall(bound=e.Var() as bound, body=e.Eq(left=left, right=right)):
                    own = own_index(left.array.sort) if isinstance(left, e.Select) else None
                    if own is not None and not e.variables(right) & {bound.name}:
                        yield Substitution({bound: own})(left), right
                case e.Eq(left=left, right=right):
                    yield left, right
                case e.Not(arg=inner):
                    yield inner, b.FALSE
                case _:
                    yield part, b.TRUE

    def claim(self, law: Law, relation: str) -> ParametricClaim | None:
        """The claim on the parametric system that a law's sum is (at most, at least) its initial value.

        None if that is unknown, or the law mentions two indices.
        """
        bounds = {self.view.index[n] for f in law.coefficients for n in e.variables(f) if n in self.view.index}
        everywhere = all(n in self.view.index for f in law.coefficients for n in e.variables(f))
        if len(bounds) > 1 and everywhere:
            return None
        terms = {self._back(feature): weight for feature, weight in law.coefficients.items()}
        at_first = Substitution(self._starts)
        weighed: Form = {}
        begun: Expr = b.num(0)
        for term, weight in terms.items():
            first = at_first(term)
            if e.variables(first) - {f.name for f in self.parametric.free}:
                return None
            part = b.mul(b.num(weight), _number(first))
            bound = None if everywhere else _bound(term)
            begun = b.add(begun, part if bound is None else b.mul(count(bound), part))
            weighed = plus(weighed, scaled(amount(term), weight))
        for part, share in form(begun).items():
            weighed = plus(weighed, {part: -share})
        return self.stated(weighed, relation, bounds.pop() if everywhere and bounds else None)

    def stated(self, weighed: Form, relation: str, bound: Expr | None) -> ParametricClaim:
        """The claim that a sum is zero, or that its positive part is at most or at least its negative part: at every value of
        the index `bound`, or without it of sums over all indices."""
        sides: list[list[tuple[Expr, int]]] = [[], []]
        for term, weight in weighed.items():
            number = int(weight)
            sides[number < 0].append((term, abs(number)))
        left, right = (self._sum(side, bound is not None) for side in sides)
        text = f" {relation} ".join(self._text(side, bound is not None) for side in sides)
        relation_term = {EQUAL: b.eq, AT_MOST: b.less_eq, AT_LEAST: lambda x, y: b.less_eq(y, x)}[relation](left, right)
        if bound is None:
            return ParametricClaim(text, relation_term, found=True)
        return ParametricClaim(f"for all c: {text}", forall(bound, relation_term), found=True)

    def _sum(self, side: list[tuple[Expr, int]], everywhere: bool) -> Expr:
        whole: Expr = b.num(0)
        for term, weight in side:
            part, bound = b.mul(b.num(weight), _number(term)), _bound(term)
            whole = b.add(whole, part if everywhere or bound is None else total(bound, part))
        return whole

    def _text(self, side: list[tuple[Expr, int]], everywhere: bool) -> str:
        parts = []
        for term, weight in side:
            text = name_of(term)
            if term is ONE:
                parts.append(str(weight))
                continue
            if not everywhere and _bound(term) is not None:
                text = f"sum({text})"
            parts.append(text if weight == 1 else f"{weight}*{text}")
        return " + ".join(parts) or "0"


def _bound(term: Expr) -> Expr | None:
    """The index variable at which a term reads arrays of unbounded length."""
    for part in e.subterms(term):
        if isinstance(part, e.Select):
            own = own_index(part.array.sort)
            if own is not None:
                return own
    return None


def _number(term: Expr) -> Expr:
    return b.ite(term, b.num(1), b.num(0)) if isinstance(term.sort, BoolSort) else term


def name_of(term: Expr) -> str:
    """The name of a leaf in the syntax of the model."""
    match term:
        case e.Var(name=name):
            return name.partition("'")[0]
        case e.Select(array=array, index=index):
            return f"{name_of(array)}[{name_of(index)}]"
        case e.Field(record=record, name=name):
            return f"{name_of(record)}.{name}"
        case e.Unwrap(arg=arg):
            return name_of(arg)
        case e.Eq(left=left, right=right):
            return f"({name_of(left)} == {name_of(right)})"
        case e.Not(arg=arg):
            return f"(not {name_of(arg)})"
        case e.IsNone(arg=arg):
            return f"({name_of(arg)} is None)"
        case e.Const(value=value):
            return str(value)
        case _:
            return written(term)
