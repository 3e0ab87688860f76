"""Sorts: the finite domains that state variables and expressions range over, and the values in them.

A *value* is plain, immutable Python, so that states hash, compare and print without help:

==========  =====================================================
sort        value
==========  =====================================================
Bool        ``True`` / ``False``
Range       ``int``
Enum        ``str``, one of the members
Record      ``tuple`` of field values, in field order; so has Tuple
Union       ``(case, values of its fields)``: a name and a ``tuple``
Option      ``None`` or a value of the element sort
Array       ``tuple``, one value per index, in index order
Queue       ``tuple``, head first, at most ``capacity`` long
Set         ``frozenset`` of values of the element sort
Bag         ``tuple``, the count of each value of the item sort, in their order
==========  =====================================================

The *default* of a sort is its first value in the order of `values`; total expressions fall back to it (see `expr`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import combinations, product
from typing import Any, Final, TypeAlias, assert_never, cast

from streamproof.base.errors import ModelError
from streamproof.base.records import dataclass

Value: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class BoolSort:
    """Truth values; ``False`` comes first."""

    def __str__(self) -> str:
        return "Bool"


@dataclass(frozen=True, slots=True)
class RangeSort:
    """Integers from `lo` to `hi`, both included. A range with `lo` = `hi` + 1 is empty, like ``range(0)``."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi + 1:
            raise ModelError(
                f"Range({self.lo}, {self.hi}) is empty",
                remedy="the upper end must not be below the lower end",
            )

    def __str__(self) -> str:
        if self.hi == INFINITY:
            return "Nat" if self.lo == 0 else "Int" if self.lo == -INFINITY else f"Int from {self.lo}"
        return f"Range({self.lo}, {self.hi})" if self.lo > -INFINITY else f"Int to {self.hi}"


INFINITY: Final = cast(int, math.inf)
"""An infinite end of a range. Such ranges are for proofs for every size (`unbounded`)."""


@dataclass(frozen=True, slots=True)
class TermRange(RangeSort):
    """Integers from `least` to `most`, which are terms of numbers; `lo` and `hi` are their known bounds.

    The sort alone never decides membership; the range may be empty.
    """

    least: Any
    most: Any
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class EnumSort:
    """A fixed list of names; the first is the default.

    `symmetric` names are interchangeable, a claim that symmetry reduction verifies. It does not change the meaning of
    values, but a symmetric sort and a plain one with the same names are two sorts.
    """

    members: tuple[str, ...]
    symmetric: bool = False
    places: Mapping[str, int] = field(init=False, compare=False, repr=False)
    """The position of each member."""

    def __post_init__(self) -> None:
        if not self.members:
            raise ModelError("Enum() has no members", remedy='name at least one: Enum("IDLE", "BUSY")')
        object.__setattr__(self, "places", {m: at for at, m in enumerate(self.members)})
        if len(self.places) != len(self.members):
            twice = next(m for m in self.members if self.members.count(m) > 1)
            raise ModelError(f"Enum names {twice!r} twice", remedy="give every member a unique name")

    def __str__(self) -> str:
        return f"{'Symmetric' if self.symmetric else 'Enum'}({', '.join(map(repr, self.members))})"


@dataclass(frozen=True, slots=True)
class KeySort(EnumSort):
    """A fixed list of keys, the index of an array: integers, truth values, strings, and tuples of these.

    The values of the sort are the texts of the keys, so engines handle it like an Enum. `keys` are the keys themselves,
    in the same order; `typed` gives the text of a key by `key_type` and value.
    """

    keys: tuple[Any, ...] = ()
    typed: Mapping[Any, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {m: at for at, m in enumerate(self.members)})
        object.__setattr__(self, "typed", {(key_type(k), k): m for m, k in zip(self.members, self.keys, strict=True)})

    def __str__(self) -> str:
        return f"[{', '.join(self.members)}]"


@dataclass(frozen=True, slots=True)
class ValueKeys(KeySort):
    """The values of a composite sort as index: that of a bag of records, unions or options."""

    item: Any = None


def key_type(key: Any) -> Any:
    """The type of a key; for a tuple, the types of its elements: 1 and True are different keys."""
    return tuple(map(key_type, key)) if type(key) is tuple else type(key)


def key_text(key: Any) -> str:
    """The text of a key in names of places and in labels: ``(0, 1)``, ``(a, 1)``, ``5``."""
    if type(key) is tuple:
        return f"({', '.join(map(key_text, key))}{',' if len(key) == 1 else ''})"
    return str(key)


def key_sort(keys: tuple[Any, ...]) -> KeySort:
    """The sort of different keys. If two have the same text, the texts are those of Python: ``('1',)`` and ``(1,)``."""
    texts = tuple(map(key_text, keys))
    return KeySort(texts if len(set(texts)) == len(keys) else tuple(map(repr, keys)), keys=keys)


@lru_cache(maxsize=256)
def index_keys(index: RangeSort | EnumSort | BoolSort) -> tuple[Any, ...]:
    """The indices of an array as a model writes them, in order."""
    return index.keys if isinstance(index, KeySort) else tuple(values(index))


def index_value(index: RangeSort | EnumSort | BoolSort, key: Any) -> Value:
    """The index value of a key that a model writes; None for a key outside a `KeySort`."""
    if not isinstance(index, KeySort):
        return key
    try:
        return index.typed.get((key_type(key), key))
    except TypeError:  # not hashable
        return None


@dataclass(frozen=True, slots=True)
class RecordSort:
    """Named fields, each of its own sort."""

    fields: tuple[tuple[str, Sort], ...]

    def index(self, name: str) -> int:
        """Position of the field `name`; raises `KeyError` if there is none."""
        for at, (own, _) in enumerate(self.fields):
            if own == name:
                return at
        raise KeyError(name)

    def part(self, name: str) -> str:
        """The field `name` behind the text of a value: ``.name``."""
        return f".{name}"

    def __str__(self) -> str:
        return f"Record({', '.join(f'{n}={s}' for n, s in self.fields)})"


@dataclass(frozen=True, slots=True)
class TupleSort(RecordSort):
    """A record whose fields have a position and no name: ``_0``, ``_1``, ..."""

    def part(self, name: str) -> str:
        """The element `name` behind the text of a value: ``[0]``."""
        return f"[{self.index(name)}]"

    def __str__(self) -> str:
        return f"Tuple({', '.join(str(s) for _, s in self.fields)})"


def tuple_sort(elements: Iterable[Sort]) -> TupleSort:
    """The sort of tuples of these elements."""
    return TupleSort(tuple((f"_{at}", sort) for at, sort in enumerate(elements)))


@dataclass(frozen=True, slots=True)
class UnionSort:
    """A value of one of several named cases, each with fields of its own."""

    cases: tuple[tuple[str, RecordSort], ...]
    tag: EnumSort = field(init=False, compare=False, repr=False)
    """The names of the cases."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", EnumSort(tuple(name for name, _ in self.cases)))

    def payload(self, case: str) -> RecordSort:
        """The fields of a case; raises `KeyError` if there is no such case."""
        return self.cases[self.tag.places[case]][1]

    def __str__(self) -> str:
        return f"Union({', '.join(name + str(fields).removeprefix('Record') for name, fields in self.cases)})"


@dataclass(frozen=True, slots=True)
class OptionSort:
    """A value or nothing. Options do not nest, so that ``None`` is unambiguous."""

    element: Sort

    def __post_init__(self) -> None:
        if isinstance(self.element, OptionSort):
            raise ModelError(
                "Option(Option(...)) is ambiguous: None would mean two things",
                remedy="use an Enum beside one Option",
            )

    def __str__(self) -> str:
        return f"Option({self.element})"


@dataclass(frozen=True, slots=True)
class ArraySort:
    """A total map from a finite index sort (Range, Enum, Bool or a list of keys) to elements."""

    index: RangeSort | EnumSort | BoolSort
    element: Sort

    def __str__(self) -> str:
        return f"Array({self.index}, {self.element})"


@dataclass(frozen=True, slots=True)
class BagSort(ArraySort):
    """A multiset of at most `capacity` values of `item`: an array of their counts, the sum of which is bounded."""

    item: Sort
    capacity: int

    def __str__(self) -> str:
        return f"Bag({self.item}, capacity={self.capacity})"


def bag_sort(item: Sort, capacity: int) -> BagSort:
    """The sort of multisets of at most `capacity` values of a finite sort."""
    return BagSort(_item_index(item), RangeSort(0, capacity), item, capacity)


@lru_cache(maxsize=256)
def _item_index(item: Sort) -> RangeSort | EnumSort | BoolSort:
    if isinstance(item, RangeSort | EnumSort | BoolSort):
        return item
    every = tuple(values(item))
    texts = tuple(show(item, value) for value in every)
    return ValueKeys(texts if len(set(texts)) == len(texts) else tuple(map(repr, every)), keys=every, item=item)


@dataclass(frozen=True, slots=True)
class QueueSort:
    """A bounded first-in-first-out queue."""

    element: Sort
    capacity: int

    def __str__(self) -> str:
        return f"Queue({self.element}, capacity={self.capacity})"


@dataclass(frozen=True, slots=True)
class SetSort:
    """A set of values of a finite element sort."""

    element: Sort

    def __str__(self) -> str:
        return f"Set({self.element})"


Sort: TypeAlias = (
    BoolSort | RangeSort | EnumSort | RecordSort | UnionSort | OptionSort | ArraySort | QueueSort | SetSort
)
Scalar: TypeAlias = BoolSort | RangeSort | EnumSort

BOOL = BoolSort()

SCALARS = (BoolSort, RangeSort, EnumSort)
"""The scalar sorts, as a tuple, because the test is a hot path."""

EMPTY = RangeSort(0, -1)
"""The index of an array without elements."""


def is_empty(sort: Sort) -> bool:
    """Whether a sort has no value. It can be the sort of elements, members and absent options, but of no variable."""
    match sort:
        case RangeSort(lo, hi):
            return lo > hi
        case RecordSort(fields):
            return any(is_empty(s) for _, s in fields)
        case ArraySort(index, element):
            return not is_empty(index) and is_empty(element)
        case BoolSort() | EnumSort() | UnionSort() | OptionSort() | QueueSort() | SetSort():
            return False
        case _:
            assert_never(sort)


def is_scalar(sort: Sort) -> bool:
    """Whether `sort` is scalar: Bool, Range or Enum."""
    return isinstance(sort, SCALARS)


def cardinality(sort: Sort) -> int:
    """The number of values of `sort`."""
    match sort:
        case BoolSort():
            return 2
        case RangeSort(lo, hi):
            _expect_finite(sort)
            return hi - lo + 1
        case EnumSort(members):
            return len(members)
        case RecordSort(fields):
            return math.prod(cardinality(s) for _, s in fields)
        case UnionSort(cases):
            return sum(cardinality(fields) for _, fields in cases)
        case OptionSort(element):
            return 1 + cardinality(element)
        case BagSort(index, capacity=capacity):
            return math.comb(cardinality(index) + capacity, capacity)
        case ArraySort(index, element):
            return int(cardinality(element) ** cardinality(index))
        case QueueSort(element, capacity):
            return int(sum(cardinality(element) ** n for n in range(capacity + 1)))
        case SetSort(element):
            return int(2 ** cardinality(element))
        case _:
            assert_never(sort)


def cardinality_up_to(sort: Sort, most: int) -> int:
    """The number of values of `sort`, or `most` + 1 if there are more; no large number is computed."""
    top = most + 1
    match sort:
        case RecordSort(fields):
            count = 1
            for _, inner in fields:
                count = min(count * cardinality_up_to(inner, most), top)
            return count
        case UnionSort(cases):
            return min(sum(cardinality_up_to(fields, most) for _, fields in cases), top)
        case OptionSort(element):
            return min(1 + cardinality_up_to(element, most), top)
        case ArraySort(index, element) if not isinstance(sort, BagSort):
            return _power(cardinality_up_to(element, most), cardinality(index), top)
        case QueueSort(element, capacity):
            base = cardinality_up_to(element, most)
            lengths = min(capacity, most if base == 1 else top.bit_length())
            return min(sum(_power(base, n, top) for n in range(lengths + 1)), top) if base > 1 else lengths + 1
        case SetSort(element):
            return _power(2, cardinality_up_to(element, most), top)
        case _:
            return min(cardinality(sort), top)


def _power(base: int, exponent: int, top: int) -> int:
    """`base` to the power of `exponent`, or `top` if that is less."""
    return min(int(base ** min(exponent, top.bit_length())), top)


def values(sort: Sort) -> Iterator[Value]:
    """Every value of `sort`, in a fixed order, the default first."""
    match sort:
        case BoolSort():
            yield from (False, True)
        case RangeSort(lo, hi):
            _expect_finite(sort)
            yield from range(lo, hi + 1)
        case EnumSort(members):
            yield from members
        case RecordSort(fields):
            yield from product(*(tuple(values(s)) for _, s in fields))
        case UnionSort(cases):
            for name, payload in cases:
                yield from ((name, value) for value in values(payload))
        case OptionSort(element):
            yield None
            yield from values(element)
        case BagSort(index, capacity=capacity):
            yield from _counts(cardinality(index), capacity)
        case ArraySort(index, element):
            yield from product(tuple(values(element)), repeat=cardinality(index))
        case QueueSort(element, capacity):
            for n in range(capacity + 1):
                yield from product(tuple(values(element)), repeat=n)
        case SetSort(element):
            every = tuple(values(element))
            for n in range(len(every) + 1):
                yield from (frozenset(chosen) for chosen in combinations(every, n))
        case _:
            assert_never(sort)


def _counts(places: int, most: int) -> Iterator[tuple[int, ...]]:
    """The tuples of counts with a sum of at most `most`, in lexicographic order."""
    if places == 0:
        yield ()
        return
    for count in range(most + 1):
        yield from ((count, *rest) for rest in _counts(places - 1, most - count))


def bag_items(sort: BagSort, value: Value) -> list[Value]:
    """The values in a bag in their order, each as often as it occurs."""
    every = zip(index_keys(sort.index), value, strict=True)
    return [item for item, count in every for _ in range(count)]


def bag_of(sort: BagSort, items: Iterable[Value]) -> Value:
    """The bag of values of the item sort, whatever the capacity. Raises `KeyError` for a value outside."""
    places = _item_places(sort.index)
    counts = [0] * len(places)
    for item in items:
        counts[places[key_type(item), item]] += 1
    return tuple(counts)


@lru_cache(maxsize=256)
def _item_places(index: RangeSort | EnumSort | BoolSort) -> Mapping[Any, int]:
    return {(key_type(item), item): at for at, item in enumerate(index_keys(index))}


def default(sort: Sort) -> Value:
    """The first value of `sort`: the result of a total expression where a partial one is undefined."""
    match sort:
        case BoolSort():
            return False
        case RangeSort(lo, _):
            return lo if lo > -INFINITY else 0
        case EnumSort(members):
            return members[0]
        case RecordSort(fields):
            return tuple(default(s) for _, s in fields)
        case UnionSort(cases):
            return (cases[0][0], default(cases[0][1]))
        case OptionSort():
            return None
        case ArraySort(index, element):
            return (default(element),) * cardinality(index)
        case QueueSort():
            return ()
        case SetSort():
            return frozenset()
        case _:
            assert_never(sort)


def _expect_finite(sort: RangeSort) -> None:
    """Raises `ModelError` for a range with an infinite end, which only proofs for every size support (see `unbounded`)."""
    if sort.hi - sort.lo == INFINITY or type(sort) is not RangeSort:
        raise ModelError(
            f"the values of {sort} cannot be gone through one by one",
            remedy="state it with comparisons"
            if type(sort) is RangeSort
            else "state it with comparisons, all(...), any(...) or sum(...) over range(...), or give the parameter a value",
        )


def contains(sort: Sort, value: Value) -> bool:
    """Whether `value` is a value of `sort` (type and domain)."""
    match sort:
        case BoolSort():
            return isinstance(value, bool)
        case RangeSort(lo, hi):
            return isinstance(value, int) and not isinstance(value, bool) and lo <= value <= hi
        case EnumSort():
            return isinstance(value, str) and value in sort.places
        case RecordSort(fields):
            return (
                isinstance(value, tuple)
                and len(value) == len(fields)
                and all(contains(s, v) for (_, s), v in zip(fields, value, strict=True))
            )
        case UnionSort():
            return (
                isinstance(value, tuple)
                and len(value) == 2
                and contains(sort.tag, value[0])
                and contains(sort.payload(value[0]), value[1])
            )
        case OptionSort(element):
            return value is None or contains(element, value)
        case ArraySort(index, element):
            return (
                isinstance(value, tuple)
                and len(value) == cardinality(index)
                and all(contains(element, v) for v in value)
                and not (isinstance(sort, BagSort) and sum(value) > sort.capacity)
            )
        case QueueSort(element, capacity):
            return isinstance(value, tuple) and len(value) <= capacity and all(contains(element, v) for v in value)
        case SetSort(element):
            return isinstance(value, frozenset) and all(contains(element, v) for v in value)
        case _:
            assert_never(sort)


def position(index: RangeSort | EnumSort | BoolSort, key: Value) -> int | None:
    """The position of `key` in the order of `index` (0-based), or None if it is outside."""
    match index:
        case BoolSort():
            return int(key) if isinstance(key, bool) else None
        case RangeSort(lo, hi):
            inside = isinstance(key, int) and not isinstance(key, bool) and lo <= key <= hi
            return key - lo if inside else None
        case EnumSort():
            return index.places.get(key) if isinstance(key, str) else None
        case _:
            assert_never(index)


def compatible(a: Sort, b: Sort) -> bool:
    """Whether values of the two sorts may be compared or assigned; ranges may differ, which an assignment checks."""
    if a == b or (isinstance(a, RangeSort) and isinstance(b, RangeSort)):
        return True
    if type(a) is not type(b) or is_scalar(a):
        return False
    some, others = _components(a), _components(b)
    same = [name for name, _ in some] == [name for name, _ in others]
    return same and all(compatible(x, y) for (_, x), (_, y) in zip(some, others, strict=True))


def _components(sort: Sort) -> Sequence[tuple[Any, Sort]]:
    """The component sorts, each with its key: the name or array index that must be equal in a compatible sort."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return ()
        case RecordSort(parts) | UnionSort(parts):
            return parts
        case ArraySort(index, element):
            return ((index, element),)
        case OptionSort(element) | QueueSort(element) | SetSort(element):
            return ((None, element),)
        case _:
            assert_never(sort)


def show(sort: Sort, value: Value) -> str:
    """The text of `value`: records and arrays with their names and keys, sets sorted."""
    match sort:
        case BoolSort() | RangeSort() | EnumSort():
            return str(value)
        case TupleSort(fields):
            inner = ", ".join(show(s, v) for (_, s), v in zip(fields, value, strict=True))
            return f"({inner}{',' if len(fields) == 1 else ''})"
        case RecordSort(fields):
            inner = ", ".join(f"{n}={show(s, v)}" for (n, s), v in zip(fields, value, strict=True))
            return f"({inner})"
        case UnionSort():
            return f"{value[0]}{show(sort.payload(value[0]), value[1])}"
        case OptionSort(element):
            return "None" if value is None else show(element, value)
        case BagSort(item=element):
            return f"{{|{', '.join(show(element, v) for v in bag_items(sort, value))}|}}"
        case ArraySort(index, element):
            inner = ", ".join(f"{k}: {show(element, v)}" for k, v in zip(values(index), value, strict=True))
            return f"[{inner}]"
        case QueueSort(element, _):
            return f"<{', '.join(show(element, v) for v in value)}>"
        case SetSort(element):
            return f"{{{', '.join(show(element, v) for v in ordered(element, value))}}}"
        case _:
            assert_never(sort)


def ordered(element: Sort, members: frozenset[Value]) -> list[Value]:
    """The members of a set value in the order of `values(element)`, without enumerating the element sort."""
    return sorted(members, key=lambda v: sort_key(element, v))


def sort_key(sort: Sort, value: Value) -> Any:
    """A key that orders values of `sort` deterministically (default order for scalars)."""
    match sort:
        case BoolSort() | RangeSort():
            return int(value)
        case EnumSort():
            return sort.places[value]
        case RecordSort(fields):
            return tuple(sort_key(s, v) for (_, s), v in zip(fields, value, strict=True))
        case UnionSort():
            return (sort.tag.places[value[0]], sort_key(sort.payload(value[0]), value[1]))
        case OptionSort(element):
            return (0,) if value is None else (1, sort_key(element, value))
        case ArraySort(_, element) | QueueSort(element, _):
            return (len(value), *(sort_key(element, v) for v in value))
        case SetSort(element):
            return (len(value), *(sort_key(element, v) for v in ordered(element, value)))
        case _:
            assert_never(sort)
