"""SMT-LIB's names, sorts and terms for the variables and terms of a scalar system, over unbounded integers.

Written without a solver library, so that a solver's answer to the text also checks the encoding independently. Repeated
subterms are bound by ``let``, so that a text is not longer than its shared terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance, Kind, Property, System, fires
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Sort, Value
from streamproof.transform.assume import Substitution, simplify
from streamproof.transform.scalarise import scalarise


def symbol(name: str) -> str:
    """A name as a quoted symbol."""
    return f"|{name.replace('|', '/').replace(chr(92), '/')}|"


def sort_name(sort: Sort) -> str:
    """``Bool`` or ``Int``."""
    return "Bool" if isinstance(sort, BoolSort) else "Int"


def literal(sort: Sort, value: Value) -> str:
    """A value: enum members are their positions."""
    if isinstance(sort, BoolSort):
        return "true" if value else "false"
    return number(sort.members.index(value) if isinstance(sort, EnumSort) else int(value))


def number(value: int) -> str:
    """An integer numeral."""
    return str(value) if value >= 0 else f"(- {-value})"


class SmtTerms:
    """Writes scalar terms; `name` gives the text of a variable, `after` that of its value after the step."""

    def __init__(self, name: Callable[[str], str], after: Callable[[str], str]) -> None:
        self._name, self._after = name, after

    def text(self, root: Expr) -> str:
        """The term, with repeated subterms bound by ``let``."""
        uses = Counter([root])
        order = list(e.subterms(root))
        for term in order:
            uses.update(e.children(term))
        texts: dict[Expr, str] = {}
        bound: list[tuple[str, str]] = []
        for term in order:
            texts[term] = self._term_text(term, texts)
            if uses[term] > 1 and not isinstance(term, e.Const | e.Var | e.Next):
                bound.append((f"?{len(bound)}", texts[term]))
                texts[term] = bound[-1][0]
        opening = "".join(f"(let (({name} {text})) " for name, text in bound)
        return f"{opening}{texts[root]}{')' * len(bound)}"

    def _term_text(self, term: Expr, t: Mapping[Expr, str]) -> str:
        match term:
            case e.Const(sort=sort, value=value):
                return literal(sort, value)
            case e.Var(name=name):
                return self._name(name)
            case e.Next(name=name):
                return self._after(name)
            case e.Not(arg=x):
                return f"(not {t[x]})"
            case e.And(args=args) | e.Or(args=args):
                return f"({'and' if isinstance(term, e.And) else 'or'} {' '.join(t[a] for a in args)})"
            case e.Ite(cond=c, then=x, other=y):
                return f"(ite {t[c]} {t[x]} {t[y]})"
            case e.FloorDiv(left=x, right=y):
                return _unless_zero(y, t[y], _signed(y, f"(div {t[x]} {t[y]})", f"(div (- {t[x]}) (- {t[y]}))", t[y]))
            case e.Mod(left=x, right=y):
                return _unless_zero(
                    y, t[y], _signed(y, f"(mod {t[x]} {t[y]})", f"(- (mod (- {t[x]}) (- {t[y]})))", t[y])
                )
            case (
                e.Eq(left=x, right=y)
                | e.Less(left=x, right=y)
                | e.LessEq(left=x, right=y)
                | e.Add(left=x, right=y)
                | e.Sub(left=x, right=y)
                | e.Mul(left=x, right=y)
            ):
                return f"({_SIGN[type(term)]} {t[x]} {t[y]})"
            case _:
                raise AssertionError(f"{type(term).__name__} is not a scalar term")


_SIGN: dict[type[e.Node], str] = {e.Eq: "=", e.Less: "<", e.LessEq: "<=", e.Add: "+", e.Sub: "-", e.Mul: "*"}


def _signed(divisor: Expr, positive: str, negative: str, text: str) -> str:
    """SMT-LIB rounds down for positive divisors only."""
    sort = divisor.sort
    return positive if isinstance(sort, RangeSort) and sort.lo >= 0 else f"(ite (< {text} 0) {negative} {positive})"


def _unless_zero(divisor: Expr, text: str, quotient: str) -> str:
    sort = divisor.sort
    outside = isinstance(sort, RangeSort) and not sort.lo <= 0 <= sort.hi
    return quotient if outside else f"(ite (= {text} 0) 0 {quotient})"


@dataclass(frozen=True, slots=True)
class SmtEvent:
    """The deciding event of a property, a violation or a reached goal; and where its evaluation is an error."""

    prop: Property
    shown: Expr
    wrong: Expr


class Scalar:
    """A system as conditions over scalar variables: initial condition, instances, model errors."""

    def __init__(self, system: System) -> None:
        self.original = system
        self.system = simplify(scalarise(system).system)
        self.variables = self.system.variables

    @property
    def initial(self) -> Expr:
        """The state is initial."""
        first = (
            b.or_(b.eq(b.var(v.name, v.sort), b.const(v.sort, value)) for value in dict.fromkeys(v.initial))
            for v in self.variables
        )
        return b.and_((*first, self.system.initially))

    @property
    def mistake(self) -> Expr:
        """Evaluating or taking some step is an evaluation error, or puts a value outside its sort."""
        return b.or_(part for i in self.system.instances for part in self._mistakes(i))

    def guard(self, instance: Instance) -> Expr:
        """The instance is enabled, apart from errors."""
        return b.and_(c.expr for c in instance.guard)

    def events(self) -> Iterator[SmtEvent]:
        """The deciding event of each state or step property."""
        for prop in self.system.properties:
            wrong = fires(prop.checks)
            match prop.kind:
                case Kind.INVARIANT | Kind.STEP:
                    yield SmtEvent(prop, b.and_((b.not_(wrong), b.not_(prop.expr))), wrong)
                case Kind.REACHABLE:
                    yield SmtEvent(prop, b.and_((b.not_(wrong), prop.expr)), wrong)
                case Kind.DEADLOCK:
                    stuck = b.not_(b.or_(map(self.guard, self.system.instances)))
                    legal = b.FALSE if self.system.terminal is None else self.system.terminal
                    yield SmtEvent(prop, b.and_((stuck, b.not_(legal), b.not_(self.mistake))), b.FALSE)
                case Kind.TERMINATION | Kind.TEMPORAL:
                    continue
                case _:
                    assert_never(prop.kind)

    def stepped(self, event: Expr, instance: Instance) -> Expr:
        """A step condition as a condition on the state before a step of the instance."""
        written = dict(instance.updates)
        into = {b.next_(v.name, v.sort): written.get(v.name, b.var(v.name, v.sort)) for v in self.variables}
        return Substitution(into)(event)

    def _mistakes(self, instance: Instance) -> Iterator[Expr]:
        yield fires(instance.guard_checks)
        sorts = {v.name: v.sort for v in self.variables}
        leaving = (b.not_(b.in_domain(value, sorts[name])) for name, value in instance.updates)
        yield b.and_((self.guard(instance), b.or_((fires(instance.effect_checks), *leaving))))


def declared(variables: Sequence[tuple[str, Sort]]) -> str:
    """Parameters of a function or bound variables, whose names are texts already."""
    return " ".join(f"({name} {sort_name(sort)})" for name, sort in variables)


def remark(text: str) -> str:
    """A comment on one line, for any name."""
    return f"; {visible(text)}"


def meanings(scalar: Scalar) -> Iterator[str]:
    """A comment for every variable."""
    for v in scalar.variables:
        match v.sort:
            case EnumSort(members):
                yield remark(f"{v.name}: {', '.join(f'{at} {name}' for at, name in enumerate(members))}")
            case RangeSort(lo, hi):
                yield remark(f"{v.name}: {lo} to {hi}")
            case _:
                yield remark(f"{v.name}: true or false")
