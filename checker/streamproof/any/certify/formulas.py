"""Conditions of a parametric system as JSON data, for the discovered lemmas of a certificate, and as text.

A term is a truth value, an integer, or a list of its kind and its parts, as in ``["LessEq", ["Var", "pool"], 3]``. A
bound index is a de Bruijn index, the number of enclosing binders inside its own: ``["Forall", least, most, body]``,
``["Index", 0]``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from streamproof.base.errors import StreamproofError
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.leaves import decode, encode
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    RangeSort,
    RecordSort,
    Sort,
    TermRange,
    contains,
    key_sort,
)
from streamproof.transform.unbounded import Forall, Parametric, Total, forall, term_range, total


class NoFormula(StreamproofError):
    """Data that is not a condition of the system, or a condition without data form."""


MOST_BOUND = 5
"""Maximum nesting depth of quantifiers and sums: each is instantiated at many terms for every enclosing one."""
MAKE: dict[str, Callable[..., e.Expr]] = {
    "Less": b.less, "LessEq": b.less_eq, "Add": b.add, "Sub": b.sub, "Mul": b.mul, "FloorDiv": b.floor_div, "Mod": b.mod,
    "Eq": b.eq, "Ite": b.ite, "Select": b.select, "Some": b.some, "IsNone": b.is_none, "Unwrap": b.unwrap,
}  # fmt: skip
LOGIC: dict[str, Callable[..., e.Expr]] = {"Not": b.not_, "And": lambda *a: b.and_(a), "Or": lambda *a: b.or_(a)}
WORDS = {
    "Forall": "for all {}: {}", "Total": "sum({1})", "Select": "{}[{}]", "Not": "not ({})", "IsNone": "{} is None",
    "Unwrap": "{}", "Some": "{}", "Ite": "({1} if {0} else {2})",
}  # fmt: skip
"""The text of some kinds of terms, with the texts of their parts."""
SIGNS = {"Less": "<", "LessEq": "<=", "Eq": "=", "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "Mod": "%"}


def condition_of(parametric: Parametric, data: Any) -> e.Expr:
    """The condition in `data`. Raises `NoFormula`, and `ModelError` for ill-sorted terms.

    A condition has exactly one data form, that of `condition_data`, so no part of it is ignored.
    """
    return _in_form(simplified(parametric, data), data)


def number_of(parametric: Parametric, data: Any) -> e.Expr:
    """The numeric term in `data`; raises as `condition_of`."""
    found = simplified(parametric, data, RangeSort)
    return _in_form(found, data)


def _in_form(found: e.Expr, data: Any) -> e.Expr:
    if json.dumps(condition_data(found)) != json.dumps(data):
        raise NoFormula("a term is not in the form in which certificates have it")
    return found


def simplified(parametric: Parametric, data: Any, sort: type[Sort] = BoolSort) -> e.Expr:
    """The condition of `data`, or the term of another sort, which may be in a form other than that of a certificate."""
    names: dict[str, Sort] = {v.name: v.sort for v in parametric.system.variables}
    names |= {f.name: f.sort for f in parametric.free}
    found = _term(data, names, ())
    if not isinstance(found.sort, sort):
        raise NoFormula("a lemma is not a condition" if sort is BoolSort else "a rank is not a number")
    return found


def _term(data: Any, names: Mapping[str, Sort], bound: tuple[e.Expr, ...]) -> e.Expr:
    if isinstance(data, bool):
        return b.truth(data)
    if isinstance(data, int):
        return b.num(data)
    kind, *parts = data
    match kind:
        case "Var":
            (name,) = parts
            return b.var(name, names[name])
        case "Index":
            (level,) = parts
            own: e.Expr = bound[range(len(bound))[level]]
            return own
        case "Const":
            sort = _sort(parts[0])
            value = decode(sort, iter(parts[1]))
            if not contains(sort, value):
                raise NoFormula(f"{value!r} is not a value of {sort}")
            return b.const(sort, value)
        case "Field":
            return b.field(_term(parts[0], names, bound), parts[1])
        case "Forall" | "Total":
            least, most = (_term(part, names, ()) for part in parts[:2])
            if len(bound) == MOST_BOUND:
                raise NoFormula(f"a lemma has more than {MOST_BOUND} quantifiers and sums in each other")
            index = b.var(f"k'{len(bound)}", term_range(least, most))
            body = _term(parts[2], names, (*bound, index))
            if kind == "Total":
                return total(index, body)
            if body.sort != BOOL:
                raise NoFormula("a quantified term is not a condition")
            return forall(index, body)
    terms = [_term(part, names, bound) for part in parts]
    if (kind in LOGIC and any(t.sort != BOOL for t in terms)) or (kind == "Ite" and terms[0].sort != BOOL):
        raise NoFormula(f"an operand of {kind} is not a condition")
    return (LOGIC | MAKE)[kind](*terms)


def condition_data(condition: e.Expr) -> Any:
    """A condition as data. Raises `NoFormula` for unsupported terms."""
    return _data(condition, {})


def _data(term: Any, levels: Mapping[str, int]) -> Any:
    kind = type(term).__name__
    match term:
        case e.Const(sort=BoolSort() | RangeSort(), value=value):
            return value
        case e.Const(sort=sort, value=value):
            return ["Const", _sort_data(sort), list(encode(sort, value))]
        case e.Var(name=name):
            return ["Index", levels[name]] if name in levels else ["Var", name]
        case e.Field(record=record, name=name):
            return ["Field", _data(record, levels), name]
        case Forall(bound=e.Var(name=name) as bound, body=body) | Total(bound=e.Var(name=name) as bound, body=body):
            over: Any = bound.sort
            ends = (over.least, over.most) if isinstance(over, TermRange) else (b.num(over.lo), b.num(over.hi))
            return [kind, *(_data(end, {}) for end in ends), _data(body, {**levels, name: len(levels)})]
    if kind not in LOGIC and kind not in MAKE:
        raise NoFormula(f"certificates for every size have no {kind}")
    return [kind, *(_data(child, levels) for child in e.children(term))]


def _sort(data: Any) -> Sort:
    match data:
        case "bool":
            return BOOL
        case ["range", int() as lo, int() as hi]:
            return RangeSort(lo, hi)
        case ["keys", list() as keys] if keys and all(map(_is_key, keys)):
            return key_sort(tuple(map(_key, keys)))
        case ["enum", list() as members, bool() as symmetric]:
            return EnumSort(tuple(members), symmetric)
        case ["record", list() as fields]:
            return RecordSort(tuple((name, _sort(field)) for name, field in fields))
        case ["option", element]:
            return OptionSort(_sort(element))
        case ["array", index, element]:
            found: Any = _sort(index)
            return ArraySort(found, _sort(element))
    raise NoFormula("a constant has no sort")


def _is_key(data: Any) -> bool:
    return all(map(_is_key, data)) if isinstance(data, list) else isinstance(data, bool | int | str)


def _key(data: Any) -> Any:
    return tuple(map(_key, data)) if isinstance(data, list) else data


def _key_data(key: Any) -> Any:
    return list(map(_key_data, key)) if isinstance(key, tuple) else key


def _sort_data(sort: Sort) -> Any:
    match sort:
        case BoolSort():
            return "bool"
        case RangeSort(lo, hi) if type(sort) is RangeSort and isinstance(lo, int) and isinstance(hi, int):
            return ["range", lo, hi]
        case KeySort(keys=keys):
            return ["keys", [_key_data(key) for key in keys]]
        case EnumSort(members, symmetric):
            return ["enum", list(members), symmetric]
        case RecordSort(fields):
            return ["record", [[name, _sort_data(field)] for name, field in fields]]
        case OptionSort(element):
            return ["option", _sort_data(element)]
        case ArraySort(index, element) if not isinstance(sort, BagSort):
            return ["array", _sort_data(index), _sort_data(element)]
    raise NoFormula(f"certificates for every size have no constant of {sort}")


def readable(term: Any) -> str:
    """A condition as text."""
    match term:
        case e.Const(value=value):
            return str(value)
        case e.Var(name=name):
            return name.replace("'", "")
        case e.Field(name=name):
            return f"{readable(term.record)}.{name}"
        case e.And() | e.Or():
            return f" {type(term).__name__.lower()} ".join(f"({readable(part)})" for part in term.args)
    parts, kind = e.children(term), type(term).__name__
    # Parentheses around a sum: on the right of a minus, and on both sides of products and quotients.
    inner = {"Sub": parts[1:], "Mul": parts, "FloorDiv": parts, "Mod": parts}.get(kind, ())
    texts = [f"({readable(p)})" if p in inner and isinstance(p, e.Add | e.Sub) else readable(p) for p in parts]
    if kind in SIGNS:
        return f" {SIGNS[kind]} ".join(texts)
    return WORDS[kind].format(*texts) if kind in WORDS else f"{kind}({', '.join(texts)})"
