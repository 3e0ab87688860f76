"""Conversion of values written by an author (numbers, texts, lists, dicts, sets, names) to values of a sort; keys of arrays;
several initial values (`any_of`, `ANY`).

Lowering expands the meaning of numbers, texts and containers that meet the state, so a host value must have the meaning
of its plain base type. It would not see a subclass's own `__contains__`, `__eq__`, `__len__` and the like.

A key in a rule may have parts that depend on the state: ``s.wire[s.turn, n]``. It is compared with every key of the
array; a key that is not among them is an index outside the array.
"""

from __future__ import annotations

import ast
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice, product
from typing import Any, Final, assert_never

from streamproof.base.errors import Loc, ModelError, nearest
from streamproof.base.options import setting
from streamproof.base.records import dataclass
from streamproof.language.free.symbolic_parameters import SymbolicInt, term_of
from streamproof.language.lower.cases import Case, fields_of, unknown_case
from streamproof.language.lower.sources import caller
from streamproof.language.lower.terms import Cases, Term, is_expr, symbolic
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import (
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    bag_of,
    contains,
    index_keys,
    index_value,
    key_sort,
    key_type,
    values,
)

_EXACT = frozenset({bool, int, str, float, bytes, types.NoneType, tuple, list, dict, set, frozenset, range})
_KNOWN = _EXACT | {
    *(OrderedDict, defaultdict, Counter, deque, types.MappingProxyType),
    *(type({}.keys()), type({}.values()), type({}.items())),
}
"""Types whose meaning lowering implements."""
_BASES = (int, str, float, bytes, tuple, list, dict, set, frozenset)
_MEANING = frozenset(
    f"__{name}__"
    for name in (
        *("contains", "iter", "len", "getitem", "missing", "reversed", "length_hint", "bool", "hash", "index", "int"),
        *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
        *(
            f"{side}{op}"
            for op in ("add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow", "and", "or", "xor")
            for side in ("", "r", "i")
        ),
    )
) | {"keys", "values", "items"}
"""Special methods that lowering assumes unchanged from the plain type."""
_OTHERS = frozenset({"enum", "typing", "abc", "collections.abc", "_collections_abc"})
"""Modules of intermediate base classes whose overriding methods agree with the plain type."""


def is_faithful(value: object) -> bool:
    """Whether a host value has the meaning of its plain base type."""
    kind: Any = type(value)
    return kind in _EXACT or not own_methods(kind)


@lru_cache(maxsize=4096)
def own_methods(kind: type) -> tuple[str, ...]:
    """The special methods by which a type redefines the meaning of its values; empty for a supported type."""
    own = set[str]()
    for base in kind.__mro__ if kind not in _KNOWN else ():
        if base not in _KNOWN and base is not object and base.__module__ not in _OTHERS:
            own |= _MEANING & vars(base).keys()
    return tuple(sorted(own))


def expect_faithful(value: object, loc: Loc | None) -> None:
    """Raises `ModelError` for an instance of a plain type that overrides special methods lowering would not call."""
    kind: Any = type(value)
    if kind in _EXACT or not isinstance(value, _BASES):
        return
    own = own_methods(kind) if issubclass(kind, _BASES) else ("__class__",)
    if own:
        base = next(one.__name__ for one in _BASES if isinstance(value, one))
        raise ModelError(
            f"{kind.__name__} has its own {own[0]}, and would be read as {'an' if base == 'int' else 'a'} {base} here",
            loc=loc,
            remedy="use a plain value where the state is involved, and write what the method does as a helper",
        )


def plain(value: Any) -> Any:
    """A faithful number or text as its plain value: `Phase.IDLE` of a `StrEnum` as ``"IDLE"``."""
    if type(value) in _EXACT or not issubclass(type(value), str | int):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value)


def plain_inside(value: Any) -> Any:
    """Like `plain`, also inside tuples and frozen sets."""
    if isinstance(value, Case):
        return (type(value).__name__, plain_inside(value._values))
    if type(value) is tuple or type(value) is frozenset:
        return type(value)(map(plain_inside, value))
    return plain(value)


def in_order(host: Iterable[Any]) -> list[Any]:
    """The elements of a host collection; those of a Python set in a fixed order, so that every run is the same."""
    if not isinstance(host, set | frozenset) or not is_faithful(host):
        return list(host)  # other set types, such as dict keys, are ordered
    try:
        return sorted(host)
    except TypeError:
        return sorted(host, key=repr)


# --- values of a sort


def to_value(sort: Sort, given: Any, loc: Loc | None) -> Value:
    """The value of `sort` that `given` denotes. Raises `ModelError` if it is not a value of `sort`."""
    expect_faithful(given, loc)
    given = plain(given)
    match sort:
        case BoolSort():
            if isinstance(given, bool):
                return given
        case RangeSort() if type(given) is SymbolicInt:
            return term_of(given)
        case RangeSort(lo, hi):
            if isinstance(given, int) and not isinstance(given, bool):
                if lo <= given <= hi:
                    return given
                raise ModelError(
                    f"{given} is outside {sort}", loc=loc, remedy=f"widen the range or stay within {lo}..{hi}"
                )
        case EnumSort(members):
            if isinstance(given, str):
                if given in members:
                    return given
                raise unknown_member(sort, given, loc)
        case OptionSort(element):
            return None if given is None else to_value(element, given, loc)
        case RecordSort(fields):
            if isinstance(given, Mapping):
                given = by_field(sort, given, loc)
            if isinstance(given, tuple | list) and len(given) == len(fields):
                return tuple(to_value(s, v, loc) for (_, s), v in zip(fields, given, strict=True))
        case UnionSort():
            if isinstance(given, Case):
                own = fields_of(type(given), sort)
                if own is None:
                    raise unknown_case(type(given), sort, loc)
                return (type(given).__name__, to_value(own, given._values, loc))
            if isinstance(given, tuple) and contains(sort, given):
                return given
        case BagSort(item=item):
            if isinstance(given, tuple | list):
                expect_room(sort, len(given), loc)
                return bag_of(sort, (to_value(item, v, loc) for v in given))
        case ArraySort(index, element):
            keys = index_keys(index)
            if isinstance(given, Mapping) and set(given) == set(keys):
                return tuple(to_value(element, given[k], loc) for k in keys)
            if isinstance(given, tuple | list) and len(given) == len(keys):
                return tuple(to_value(element, v, loc) for v in given)
        case QueueSort(element):
            if isinstance(given, tuple | list):
                expect_room(sort, len(given), loc)
                return tuple(to_value(element, v, loc) for v in given)
        case SetSort(element):
            if isinstance(given, AbstractSet | tuple | list):
                return frozenset(to_value(element, v, loc) for v in given)
        case _:
            assert_never(sort)
    raise mismatch(sort, "None" if given is None else f"{given!r} ({type(given).__name__})", loc)


def by_field(sort: RecordSort, given: Mapping[Any, Any], loc: Loc | None) -> list[Any]:
    """The values of the fields, in order, from those by name. Raises `ModelError` for a missing or unknown field."""
    names = [n for n, _ in sort.fields]
    for key in given:
        if key not in names:
            raise no_field(sort, key, loc)
    missing = [n for n in names if n not in given]
    if missing:
        raise ModelError(f"field {missing[0]!r} of {sort} is not given", loc=loc, remedy="give every field")
    return [given[n] for n in names]


def no_field(sort: RecordSort, name: Any, loc: Loc | None) -> ModelError:
    """The error for an unknown record field."""
    names = ", ".join(n for n, _ in sort.fields)
    return ModelError(f"no field {name!r} in {sort}", loc=loc, remedy=f"its fields are {names}")


def expect_room(sort: QueueSort | BagSort, number: int, loc: Loc | None) -> None:
    """Raises `ModelError` for more elements than the capacity."""
    if number > sort.capacity:
        raise ModelError(f"{number} elements do not fit into {sort}", loc=loc, remedy="raise the capacity")


def mismatch(sort: Sort, what: str, loc: Loc | None) -> ModelError:
    """The error for a value outside `sort`, with an example of a value inside."""
    remedy = "declare it Option(...) if it can be absent" if what == "None" else _hint(sort)
    return ModelError(f"{what} is not a value of {sort}", loc=loc, remedy=remedy)


def unknown_member(sort: EnumSort, given: str, loc: Loc | None) -> ModelError:
    """The error for a name that is not a member of an Enum, with the closest member."""
    near = nearest(given, sort.members, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"its members are {', '.join(sort.members)}"
    return ModelError(f"{given!r} is not a member of {sort}", loc=loc, remedy=remedy)


def _hint(sort: Sort) -> str:
    match sort:
        case BoolSort():
            return "give True or False"
        case RangeSort():
            return "give an integer"
        case EnumSort(members):
            return f"give one of {', '.join(members)}"
        case RecordSort(fields):
            return f"give a dict with {', '.join(n for n, _ in fields)}"
        case UnionSort(cases):
            return f"give a value of one of its cases, {' or '.join(name for name, _ in cases)}"
        case OptionSort(element):
            return f"give None or a value of {element}"
        case BagSort():
            return "give a list of its elements"
        case ArraySort(index, element):
            return f"give one value of {element}, a list of them, or a dict with a key for each of {index}"
        case QueueSort():
            return "give a list, head first"
        case SetSort():
            return "give a set"
        case _:
            assert_never(sort)


def sort_of_keys(given: Iterable[Any], loc: Loc | None) -> RangeSort | EnumSort:
    """The index sort of a collection of keys: numbers in ascending order, others in their order."""
    keys = tuple(_declared(key, loc) for key in in_order(given))
    if all(type(key) is str for key in keys):
        return EnumSort(keys)
    if all(type(key) is int for key in keys):
        keys = tuple(sorted(keys))
    found = set()
    for key in keys:
        if (typed := (key_type(key), key)) in found:
            raise ModelError(f"the index has the key {key!r} twice", loc=loc, remedy="list every key once")
        found.add(typed)
    if type(keys[0]) is int and keys == tuple(range(keys[0], keys[0] + len(keys))):
        return RangeSort(keys[0], keys[-1])
    return key_sort(keys)


def _declared(key: Any, loc: Loc | None) -> Any:
    """A key as plain value. Raises `ModelError` for one that is not made of numbers, names and truth values."""
    expect_faithful(key, loc)
    if isinstance(key, tuple):
        return tuple(_declared(part, loc) for part in key)
    if isinstance(key, int | str):
        return plain(key)
    raise ModelError(
        f"{key!r} ({type(key).__name__}) cannot be a key of an Array",
        loc=loc,
        remedy="use numbers, names, and tuples of these: [(0, 1), (1, 2)]",
    )


def plain_key(key: Any, loc: Loc | None) -> Any:
    """A key of a rule as plain value, tuples included."""
    expect_faithful(key, loc)
    return tuple(plain_key(part, loc) for part in key) if isinstance(key, tuple) else plain(key)


def cases_of(key: Term) -> Cases | None:
    """A key of which some part is a conditional value, as a conditional key; None for other keys."""
    if not isinstance(key, tuple):
        return key if isinstance(key, Cases) else None
    for at, part in enumerate(key):
        if (split := cases_of(part)) is not None:
            then, other = ((*key[:at], value, *key[at + 1 :]) for value in (split.then, split.other))
            return Cases(split.cond, then, other)
    return None


def is_key(term: Term, key: Any, loc: Loc | None) -> Expr:
    """The condition that a value of a rule, without references, options and conditional values, is this key."""
    if isinstance(term, tuple):
        alike = isinstance(key, tuple) and len(key) == len(term)
        return b.and_(is_key(t, k, loc) for t, k in zip(term, key, strict=True)) if alike else b.FALSE
    if not is_expr(term):
        host = None if symbolic(term) else plain_key(term, loc)
        return b.truth((key_type(host), host) == (key_type(key), key))
    match term.sort:
        case BoolSort() if type(key) is bool:
            return b.eq(term, b.truth(key), loc)
        case RangeSort() if type(key) is int:
            return b.eq(term, b.num(key), loc)
        case EnumSort(members) if key in members and type(key) is str:
            return b.eq(term, b.const(term.sort, key), loc)
        case _:
            return b.FALSE


def key_term(sort: KeySort, key: Term, loc: Loc | None) -> tuple[Expr, Expr]:
    """A value of a rule as an index of `sort`, and the condition that it is none. Options are unwrapped before."""
    if not symbolic(key) and (known := index_value(sort, plain_key(key, loc))) is not None:
        return b.const(sort, known, loc), b.FALSE
    tests = [
        (is_key(key, own, loc), b.const(sort, text, loc)) for text, own in zip(sort.members, sort.keys, strict=True)
    ]
    possible = [(test, text) for test, text in tests if test is not b.FALSE]
    term = possible[-1][1] if possible else tests[0][1]
    for test, text in reversed(possible[:-1]):
        term = b.ite(test, text, term, loc)
    return term, b.not_(b.or_((test for test, _ in possible), loc))


def named_parts(text: str, key: Term) -> list[tuple[str, Any]]:
    """The scalar parts of a key with their texts in the source, for messages; literals are left out."""
    if not isinstance(key, tuple):
        return [(text, key)]
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Tuple) or len(node.elts) != len(key):
        return [(f"{text}[{at}]", part) for at, part in enumerate(key) if _is_scalar(part)]
    parts = zip(node.elts, key, strict=True)
    return [(ast.unparse(n), part) for n, part in parts if _is_scalar(part) and not isinstance(n, ast.Constant)]


def _is_scalar(part: Term) -> bool:
    return is_expr(part) or isinstance(part, int | str)


def as_operand(part: Any) -> Expr:
    """A part of a key as a term, for messages."""
    if is_expr(part):
        return part
    host: Any = plain(part)
    return (
        b.truth(host) if type(host) is bool else b.num(host) if type(host) is int else b.const(EnumSort((host,)), host)
    )


INITIAL_LIMIT: Final = 5_000_000
"""Maximum number of initial values of one variable; a larger number is an error in a model for exploration."""


FIRST_LIMIT: ContextVar[int] = ContextVar("limit", default=INITIAL_LIMIT)


def first_values_at_most(number: int) -> AbstractContextManager[None]:
    """Within this context, raises `ModelError` for variables with more initial values than the given maximum."""
    return setting(FIRST_LIMIT, number)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Several possible initial values; each gives an initial state."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"any_of({', '.join(map(repr, self.values))})"


class AnyValue:
    """The type of the marker `ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = AnyValue()
"""Permits every value of the sort as an initial value."""


def any_of(*options: Any) -> AnyOf:
    """Permits each of the given initial values."""
    if not options:
        raise ModelError("any_of() has no values", loc=caller(), remedy="name them: any_of(1, 2), or write ANY")
    return AnyOf(options)


def varies(init: Any) -> bool:
    """Whether an initial value is, or contains, several."""
    if isinstance(init, Mapping):
        return any(map(varies, init.values()))
    return isinstance(init, AnyOf | AnyValue) or (type(init) in (list, tuple) and any(map(varies, init)))


def each_value(sort: Sort, init: Any) -> Iterator[Any]:
    """Every initial value that an `any_of` or `ANY`, on its own or inside a list or dict, permits."""
    if isinstance(sort, OptionSort) and not isinstance(init, AnyOf | AnyValue):
        sort = sort.element
    if isinstance(init, AnyValue):
        yield from values(sort)
    elif isinstance(init, AnyOf):
        for option in init.values:
            yield from each_value(sort, option)
    elif isinstance(init, Mapping):
        rows = [_each_inside(sort, name, part) for name, part in init.items()]
        yield from (dict(zip(init, row, strict=True)) for row in product(*rows))
    elif type(init) in (list, tuple) and varies(init):
        yield from map(list, product(*(_each_inside(sort, at, part) for at, part in enumerate(init))))
    else:
        yield init


def _each_inside(sort: Sort, name: Any, init: Any) -> tuple[Any, ...]:
    """The same for a part of a value: a field by its name or position, an element of an array, a queue or a set."""
    match sort:
        case RecordSort(fields):
            parts: Mapping[Any, Sort] = {**dict(fields), **{at: s for at, (_, s) in enumerate(fields)}}
            inner = parts.get(name, sort)
        case BagSort(item=element) | ArraySort(_, element) | QueueSort(element, _) | SetSort(element):
            inner = element
        case _:
            inner = sort
    return tuple(islice(each_value(inner, init), FIRST_LIMIT.get() + 1))
