"""Pretty-printing of conditions on leaves in the syntax of the model."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import EnumSort, RangeSort, Sort, Value, show

_IMPLIED, _OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _ATOM = range(8)
"""Operator precedence of a text."""


def pretty(condition: Expr) -> str:
    """A condition, or another term, in Python syntax: ``fork[0].holder == 0 or not hungry[1]``."""
    return _text_and_strength(condition)[0]


def _text_and_strength(term: Expr) -> tuple[str, int]:
    match term:
        case e.Const(sort=sort, value=value):
            return _literal(sort, value), _ATOM
        case e.Var(name=name):
            return name, _ATOM
        case e.Next(name=name):
            return f"next {name}", _ATOM
        case e.Not(arg=e.Eq(left=x, right=y)):
            return _joined(" != ", (x, y), _COMPARED)
        case e.Not(arg=e.IsNone(arg=x)):
            return f"{_within(x, _ATOM)} is not None", _COMPARED
        case e.Not(arg=e.Member(set_=x, value=y)):
            return _joined(" not in ", (y, x), _COMPARED)
        case e.Not(arg=e.Less(left=x, right=y)):
            return _joined(" >= ", (x, y), _COMPARED)
        case e.Not(arg=e.LessEq(left=e.Const() as x, right=y)):
            return _joined(" < ", (y, x), _COMPARED)
        case e.Not(arg=e.LessEq(left=x, right=y)):
            return _joined(" > ", (x, y), _COMPARED)
        case e.Not(arg=x):
            return f"not {_within(x, _COMPARED)}", _NOT
        case e.And(args=args):
            return _joined(" and ", args, _AND)
        case e.Or(args=args):
            return _joined(" or ", args, _OR)
        case e.Ite(cond=c, then=e.Const(value=1), other=e.Const(value=0)):
            return _within(c, _ATOM), _ATOM
        case e.Ite(cond=c, then=x, other=y):
            return f"{_within(x, _OR)} if {_within(c, _OR)} else {_within(y, _OR)}", _IMPLIED
        case e.Eq(left=x, right=y):
            return _joined(" == ", (x, y), _COMPARED)
        case e.Less(left=x, right=y):
            return _joined(" < ", (x, y), _COMPARED)
        case e.LessEq(left=e.Const() as x, right=y):
            return _joined(" >= ", (y, x), _COMPARED)
        case e.LessEq(left=x, right=y):
            return _joined(" <= ", (x, y), _COMPARED)
        case e.Add(left=x, right=y):
            return _joined(" + ", (x, y), _SUM)
        case e.Sub(left=x, right=y):
            return f"{_within(x, _SUM)} - {_within(y, _PRODUCT)}", _SUM
        case e.Mul(left=x, right=y):
            return _joined(" * ", (x, y), _PRODUCT)
        case e.Select(array=x, index=y) | e.Peek(queue=x, index=y):
            return f"{_within(x, _ATOM)}[{pretty(y)}]", _ATOM
        case e.Field(record=x, name=name):
            return f"{_within(x, _ATOM)}.{name}", _ATOM
        case e.IsNone(arg=x):
            return f"{_within(x, _ATOM)} is None", _COMPARED
        case e.Unwrap(arg=x):
            return _text_and_strength(x)
        case e.Length(queue=x) | e.Size(set_=x):
            return f"len({pretty(x)})", _ATOM
        case e.Member(set_=x, value=y):
            return _joined(" in ", (y, x), _COMPARED)
        case _:
            inner = ", ".join(pretty(part) for part in e.children(term))
            return f"{type(term).__name__.lower()}({inner})", _ATOM


def _literal(sort: Sort, value: Value) -> str:
    return repr(value) if isinstance(sort, EnumSort | RangeSort) else show(sort, value)


def _within(term: Expr, strength: int) -> str:
    text, own = _text_and_strength(term)
    return f"({text})" if own < strength else text


def _joined(by: str, terms: Iterable[Expr], strength: int) -> tuple[str, int]:
    # Operands of a comparison need a higher precedence than it has; sums and connectives may nest at the same level.
    inner = strength + 1 if strength == _COMPARED else strength
    return by.join(_within(t, inner) for t in terms), strength
