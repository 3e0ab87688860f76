"""Declaration of state variables: sorts with initial values, and `State`.

Each constructor returns a `Decl`: a sort of the system plus the possible initial values. The default initial value is
that of the sort (False, the lower end, the first member, None, empty). ``init=ANY`` permits every value.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final, TypeVar

from streamproof.base.errors import Loc, ModelError, TooLarge
from streamproof.base.records import dataclass, replace
from streamproof.language.free.symbolic_parameters import (
    Declared,
    SymbolicInt,
    SymbolicRange,
    UniformArray,
    as_term,
    is_free,
    range_between,
    shown,
    sort_of,
    term_of,
)
from streamproof.language.lower.cases import Case, is_case_class
from streamproof.language.lower.conversion import (
    ANY,
    FIRST_LIMIT,
    AnyOf,
    AnyValue,
    each_value,
    expect_faithful,
    plain,
    sort_of_keys,
    to_value,
    varies,
)
from streamproof.language.lower.sources import caller
from streamproof.language.lower.terms import describe, is_expr
from streamproof.system import build as b
from streamproof.system.expr import Node
from streamproof.system.leaves import SET_LIMIT
from streamproof.system.sorts import (
    BOOL,
    EMPTY,
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TermRange,
    UnionSort,
    Value,
    bag_sort,
    cardinality,
    cardinality_up_to,
    contains,
    default,
    is_empty,
    tuple_sort,
    values,
)
from streamproof.transform.unbounded import endless, integers, ranges, searchable, term_range

S = TypeVar("S", bound=Sort)

PARTS_LIMIT: Final = 1_000_000
"""Maximum number of scalar components of one variable; engines have lower limits."""


@dataclass(frozen=True, slots=True)
class Decl(Declared):
    """A declared sort and its possible initial values (`first`), in order."""

    sort: Sort
    first: tuple[Value, ...]
    loc: Loc | None = None
    guessed: bool = False
    """Whether the initial value is the default, and the range begins below 0."""
    endless: str = ""
    """The text of the declared sort, if ranges stand for its unbounded integers."""

    def searched(self) -> Decl:
        """The declaration with a wide range for each unbounded integer, if its initial values are in it; see `searchable`."""
        sort = searchable(self.sort)
        if sort == self.sort or not all(contains(sort, value) for value in self.first):
            return self
        _expect_fits(sort, self.loc)
        return replace(self, sort=sort, endless=str(self.sort))

    def is_open(self) -> bool:
        """Whether it depends on free parameters."""
        return any(isinstance(part, TermRange) for part in ranges(self.sort)) or any(map(_is_open, self.first))

    def __iter__(self) -> Iterator[Value]:
        """Every value of the sort, in order, so that a rule can iterate over a declared sort."""
        return values(self.sort)


def _is_open(value: Any) -> bool:
    """Whether an initial value depends on free parameters."""
    if isinstance(value, tuple):
        return any(map(_is_open, value))
    return isinstance(value, Node | UniformArray)


def _decl(sort: Sort, init: Any, otherwise: Iterable[Value]) -> Decl:
    loc = caller()
    if is_empty(sort):
        options: Iterable[Value] = ()
    elif init is None and not isinstance(sort, OptionSort):
        options = otherwise
    elif isinstance(init, AnyValue):
        options = [ANY] if isinstance(sort, RangeSort) and endless(sort) else values(sort)
    elif varies(init):
        options = (to_value(sort, v, loc) for v in each_value(sort, init))
    else:
        options = [to_value(sort, init, loc)]
    _expect_fits(sort, loc)
    limit = FIRST_LIMIT.get()
    if isinstance(init, AnyValue) and options != [ANY] and cardinality_up_to(sort, limit) > limit:
        raise _too_many(sort, limit, loc)
    first = tuple(dict.fromkeys(islice(options, limit + 1)))
    if len(first) > limit:
        raise _too_many(sort, limit, loc)
    return Decl(sort, first, loc)


def _expect_fits(sort: Sort, loc: Loc | None) -> None:
    """Raises `TooLarge` before constructing a value with too many elements; queues and sets are initially empty."""
    if not any(map(endless, ranges(sort))) and (parts := elements_made(sort)) > PARTS_LIMIT:
        raise TooLarge(
            f"a variable of {sort} has {parts:,} elements, more than {PARTS_LIMIT:,}",
            loc=loc,
            remedy="choose smaller parameters",
        )


def elements_made(sort: Sort) -> int:
    """The number of scalar components of the sort's initial value."""
    match sort:
        case RecordSort(fields):
            return sum(elements_made(inner) for _, inner in fields)
        case UnionSort(cases):
            return sum(elements_made(fields) for _, fields in cases)
        case ArraySort(index, element):
            return cardinality(index) * elements_made(element)
        case _:
            return 1


def _too_many(sort: Sort, limit: int, loc: Loc | None) -> ModelError:
    return ModelError(
        f"a variable of {sort} has more than {limit:,} first values",
        loc=loc,
        remedy="give it an init, or fewer with init=any_of(...)",
    )


def _element(given: Any, loc: Loc | None) -> Decl:
    if isinstance(given, Decl):
        return given
    got = given.__name__ if isinstance(given, type) else f"{given!r} ({type(given).__name__})"
    raise ModelError(
        f"a sort expected, got {got}",
        loc=loc,
        remedy='write Bool(), Range(0, 3), Enum("A", "B"), Record(...), Tuple(...), Union(...), Option(...), Array(...), '
        "Queue(...), Set(...) or Bag(...)",
    )


def Bool(init: Any = None) -> Decl:
    """A truth value; initially False."""
    return _decl(BOOL, init, [False])


def Range(lo: int, hi: int | None = None, init: Any = None) -> Decl:
    """An integer from `lo` to `hi`, both included."""
    if is_free(lo) or is_free(hi):
        return _between(lo, hi, init)
    if not isinstance(lo, int) or isinstance(lo, bool) or not isinstance(hi, int) or isinstance(hi, bool):
        given = repr(lo) if hi is None else f"{lo!r} and {hi!r}"
        raise ModelError(f"Range needs two integers, got {given}", loc=caller(), remedy="write Range(0, 3)")
    lo, hi = _plain((lo, hi))
    decl = _decl(_sort(RangeSort, lo, hi), init, [lo])
    return replace(decl, guessed=True) if init is None and lo < 0 and lo <= hi else decl


def _sort(kind: Callable[..., S], *args: Any) -> S:
    """A sort of this kind; an error names the line of the declaration."""
    try:
        return kind(*args)
    except ModelError as error:
        raise ModelError(error.message, loc=caller(), remedy=error.remedy) from None


def _plain(given: Iterable[Any]) -> tuple[Any, ...]:
    """Numbers and texts as plain values. Raises `ModelError` for subclasses that override special methods."""
    found = tuple(given)
    for value in found:
        expect_faithful(value, caller())
    return tuple(map(plain, found))


def _between(lo: Any, hi: Any, init: Any) -> Decl:
    """An integer between bounds that depend on free parameters."""
    least, most = (b.num(end) if type(end) is int else as_term(end) for end in (lo, hi))
    for end in (least, most):
        if not is_expr(end) or not isinstance(end.sort, RangeSort):
            raise ModelError(f"Range needs two integers, got {end!r}", loc=caller(), remedy="write Range(0, 3)")
    return _decl(term_range(least, most), init, [as_term(lo)])


def Nat(init: Any = None) -> Decl:
    """A natural number without an upper bound; for proofs (``streamproof prove``), and for searches within a constraint."""
    return _decl(integers(0, None), init, [0])


def Int(init: Any = None) -> Decl:
    """An unbounded integer, initially 0; for proofs (``streamproof prove``), and for searches within a constraint."""
    return _decl(integers(None, None), init, [0])


def Enum(*members: str, init: Any = None) -> Decl:
    """One of the named members, or of the members of a `StrEnum`; the first is the default."""
    members = _of_class(members)
    if not members:
        return _decl(EMPTY, init, ())
    for m in members:
        if not isinstance(m, str):
            remedy = "write Enum(*names)" if isinstance(m, list | tuple | set) else 'write Enum("IDLE", "BUSY")'
            remedy = "derive the class from StrEnum" if isinstance(m, enum.Enum) else remedy
            raise ModelError(f"Enum members are strings, got {m!r}", loc=caller(), remedy=remedy)
    sort = _sort(EnumSort, _plain(members))
    return _decl(sort, init, [sort.members[0]])


def _of_class(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """The member names if an enumeration class is given; other arguments unchanged."""
    only = members[0] if len(members) == 1 else None
    return tuple(only) if isinstance(only, enum.EnumType) else members


def Symmetric(*members: str | int, init: Any = None) -> Decl:
    """Interchangeable names (a scalarset), for array indices, set members and action parameters.

    Give the names, ``Symmetric("a", "b", "c")``, or their number and an optional prefix, ``Symmetric(3, "worker")`` for
    worker1, worker2, worker3. They may be used like `Enum` members; symmetry reduction first verifies that every
    transposition of two names is an automorphism of the system.
    """
    names: tuple[Any, ...] = _of_class(members)
    if members and isinstance(members[0], int) and not isinstance(members[0], bool):
        count, rest = members[0], members[1:]
        if count < 0 or len(rest) > 1 or not all(isinstance(name, str) for name in rest):
            raise ModelError(
                f"Symmetric({', '.join(map(repr, members))}) is not a list of names",
                loc=caller(),
                remedy='write Symmetric(3, "worker") or Symmetric("a", "b", "c")',
            )
        names = tuple(f"{rest[0] if rest else 'm'}{number}" for number in range(1, count + 1))
    if not names:
        return _decl(EMPTY, init, ())
    for name in names:
        if not isinstance(name, str):
            raise ModelError(
                f"Symmetric members are strings, got {name!r}", loc=caller(), remedy='write Symmetric(3, "worker")'
            )
    try:
        sort = EnumSort(_plain(names), symmetric=True)
    except ModelError as error:
        raise ModelError(error.message.replace("Enum", "Symmetric"), loc=caller(), remedy=error.remedy) from None
    return _decl(sort, init, [sort.members[0]])


def Record(init: Any = None, **fields: Decl) -> Decl:
    """A record of named fields, accessed as attributes."""
    loc = caller()
    if not fields:
        raise ModelError("a Record needs at least one field", loc=loc, remedy="write Record(holder=Range(0, 3))")
    for name in fields:
        _expect_name("field", name, loc)
    decls = {n: _element(d, loc) for n, d in fields.items()}
    return _record(RecordSort(tuple((n, d.sort) for n, d in decls.items())), [*decls.values()], init)


def Tuple(*elements: Decl, init: Any = None) -> Decl:
    """A tuple: one value of each sort, read by position, ``t[0]``, or unpacked, ``a, b = t``, and assigned as a whole."""
    loc = caller()
    if not elements:
        raise ModelError("a Tuple needs at least one element", loc=loc, remedy="write Tuple(Range(0, 3), Bool())")
    decls = [_element(d, loc) for d in elements]
    return _record(tuple_sort(d.sort for d in decls), decls, init)


def _record(sort: RecordSort, decls: Sequence[Decl], init: Any) -> Decl:
    """A record or tuple; without an init, each part begins with the values of its declaration."""
    if init is None and math.prod(len(d.first) for d in decls) > FIRST_LIMIT.get():
        raise _too_many(sort, FIRST_LIMIT.get(), caller())
    decl = _decl(sort, init, product(*(d.first for d in decls)))
    return replace(decl, guessed=init is None and any(d.guessed for d in decls))


def _expect_name(what: str, name: str, loc: Loc | None) -> None:
    if name.startswith("_"):
        raise ModelError(f"{what} {name!r} starts with an underscore", loc=loc, remedy="such names are reserved")
    if not name.isidentifier():
        raise ModelError(f"{what} {name!r} is not an identifier", loc=loc, remedy="use letters, digits and _")


def Union(*cases: Any, init: Any = None) -> Decl:
    """A value of one of several cases, each with its own fields: ``Union(Vote(voter=Range(0, 2)), Commit())``.

    The cases are classes derived from `Case`. Initially the first case, with the initial values of its fields.
    """
    loc = caller()
    if not cases:
        raise ModelError(
            "a Union needs at least one case", loc=loc, remedy="write Union(Vote(voter=Range(0, 2)), Commit())"
        )
    found: dict[str, tuple[tuple[str, Decl], ...]] = {}
    for case in cases:
        if not isinstance(case, Case):
            remedy = "derive a class from Case"
            if is_case_class(case):
                form = ", ".join(f"{name}=..." for name in case.__match_args__)
                remedy = f"write {case.__name__}({form})" + (", with the sort of each field" if form else "")
            got = case.__name__ if isinstance(case, type) else describe(case)
            raise ModelError(f"a case expected, got {got}", loc=loc, remedy=remedy)
        if type(case).__name__ in found:
            raise ModelError(
                f"Union names the case {type(case).__name__} twice", loc=loc, remedy="give each a unique name"
            )
        fields = zip(case.__match_args__, case._values, strict=True)
        own = found[type(case).__name__] = tuple((n, _element(d, loc)) for n, d in fields)
        for name, field in own:
            if is_empty(field.sort):
                raise ModelError(
                    f"the field {name!r} of {type(case).__name__} has no value, because {field.sort} is empty",
                    loc=loc,
                    remedy="leave the case out, or make the field an Option(...)",
                )
    sort = UnionSort(tuple((name, RecordSort(tuple((n, d.sort) for n, d in f))) for name, f in found.items()))
    first, fields_of_first = next(iter(found.items()))
    if init is None and math.prod(len(d.first) for _, d in fields_of_first) > FIRST_LIMIT.get():
        raise _too_many(sort, FIRST_LIMIT.get(), loc)
    decl = _decl(sort, init, ((first, row) for row in product(*(d.first for _, d in fields_of_first))))
    return replace(decl, guessed=init is None and any(d.guessed for _, d in fields_of_first))


def Option(element: Decl, init: Any = None) -> Decl:
    """A value or None; initially None."""
    inner = _element(element, caller())
    return _decl(_sort(OptionSort, inner.sort), init, [None])


def Array(index: Any, element: Decl, init: Any = None) -> Decl:
    """A total map from `index` (a range, an int n for range(n), an Enum or Bool sort, or names) to elements.

    ``init`` is one value for every element, or a list or dict of them.
    """
    loc = caller()
    keys = index_sort(index, loc)
    inner = _element(element, loc)
    sort = ArraySort(keys, inner.sort)
    if isinstance(keys, RangeSort) and endless(keys):
        return _everywhere(sort, inner, init)
    _expect_fits(sort, loc)
    count = cardinality(keys)
    many = type(init) is not SymbolicInt and isinstance(init, AnyValue | AnyOf | Mapping)
    if init is not None and not many and _is_element(inner.sort, init):
        return _decl(sort, None, [(to_value(inner.sort, init, loc),) * count])
    if init is None:
        if len(inner.first) ** count > FIRST_LIMIT.get():
            raise _too_many(sort, FIRST_LIMIT.get(), loc)
        every = iter([inner.first * count]) if len(inner.first) == 1 else product(inner.first, repeat=count)
        return replace(_decl(sort, None, every), guessed=inner.guessed and count > 0)
    if (
        varies(init)
        and not isinstance(init, AnyValue)
        and all(_is_element(inner.sort, v) for v in each_value(inner.sort, init))
    ):
        raise ModelError(
            f"the first values {init!r} are those of one element",
            loc=loc,
            remedy="give the element sort the init, for independent choices: Array(index, Range(0, 1, init=any_of(0, 1))); "
            "or list all elements: any_of([0, 0], [1, 1])",
        )
    return _decl(sort, init, ())


def _everywhere(sort: ArraySort, inner: Decl, init: Any) -> Decl:
    """An array of unbounded length; every index has the same initial value, or the same choice of initial values."""
    loc = caller()
    if type(init) is not SymbolicInt and isinstance(init, AnyValue | AnyOf | Mapping | list | tuple):
        raise ModelError(
            f"the first values of an array with {sort.index} as index are not given one by one",
            loc=loc,
            remedy="give one value for every element, or give the element sort an init",
        )
    if init is not None:
        return Decl(sort, (UniformArray((to_value(sort.element, init, loc),)),), loc)
    return Decl(sort, (UniformArray(inner.first),), loc)


def _is_element(sort: Sort, value: Any) -> bool:
    if type(value) is SymbolicInt:
        return isinstance(sort, RangeSort)
    try:
        return contains(sort, to_value(sort, value, None))
    except ModelError:
        return False


def index_sort(index: Any, loc: Loc | None) -> RangeSort | EnumSort | BoolSort:
    """The index sort of an array declaration."""
    if type(index) is SymbolicInt:
        index = range_between([term_of(index)], loc)
    if type(index) is SymbolicRange:
        return sort_of(index)
    if isinstance(index, Decl) and isinstance(index.sort, RangeSort | EnumSort | BoolSort):
        return EMPTY if is_empty(index.sort) else index.sort
    if isinstance(index, Decl) and isinstance(index.sort, RecordSort) and not any(map(endless, ranges(index.sort))):
        if cardinality_up_to(index.sort, PARTS_LIMIT) > PARTS_LIMIT:
            raise TooLarge(
                f"an Array over {index.sort} has more than {PARTS_LIMIT:,} elements",
                loc=loc,
                remedy="choose smaller parameters",
            )
        index = tuple(values(index.sort))
    if isinstance(index, enum.EnumType):
        index = _plain(index)
        numbers = index if all(isinstance(m, int) for m in index) else ()
        if numbers and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
            return RangeSort(numbers[0], numbers[-1])
    expect_faithful(index, loc)
    if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
        return RangeSort(0, plain(index) - 1)
    if isinstance(index, list | tuple | range | set | frozenset) and not index:
        return EMPTY
    if isinstance(index, range) and index.step == 1:
        return RangeSort(index.start, index.stop - 1)
    shape = isinstance(index, tuple) and any(isinstance(key, int) for key in index)  # (2, 3): a grid, or two keys?
    if isinstance(index, list | tuple | range | set | frozenset) and not shape:
        return sort_of_keys(index, loc)
    raise ModelError(
        f"{f'a {index.sort}' if isinstance(index, Decl) else repr(index)} cannot index an Array",
        loc=loc,
        remedy="use a number, a range, a list of names, numbers or tuples, or an Enum, Range, Bool, Tuple or Record sort",
    )


def Queue(element: Decl, capacity: int | None = None, init: Any = None) -> Decl:
    """A bounded FIFO queue, initially empty; ``push``, ``pop``, ``head``, ``len``, indexing from the head."""
    instead = (
        "where the order does not matter, keep the number of elements in a Range or Nat; or give the parameter a value"
    )
    bound = _capacity("Queue", capacity, instead)
    inner = _element(element, caller()).sort
    return _decl(QueueSort(inner, 0 if is_empty(inner) else bound), init, [()])


def _capacity(kind: str, given: Any, instead: str) -> int:
    """The capacity of a queue or bag. Raises `ModelError`; `instead`: what to do if it is a free parameter."""
    if is_free(given):
        raise ModelError(
            f"a {kind} of capacity {shown(given)} is unbounded, which is not supported in proofs for every size",
            loc=caller(),
            remedy=instead,
        )
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ModelError(
            f"a {kind} needs a capacity of 0 or more, got {given!r}",
            loc=caller(),
            remedy=f"write {kind}(sort, capacity=2)",
        )
    return given


def Set(element: Decl, init: Any = None) -> Decl:
    """A set of values, initially empty; ``add``, ``discard``, ``in``, ``len``, ``|``, ``&``, ``-``, ``<=``."""
    return _decl(SetSort(_element(element, caller()).sort), init, [frozenset()])


def Bag(element: Decl, capacity: int | None = None, init: Any = None) -> Decl:
    """A multiset of at most `capacity` values, initially empty: a network that reorders and duplicates messages.

    ``add``, ``discard``, ``remove``, ``count``, ``in``, ``len``, iteration over the elements, ``==`` and ``<=``.
    """
    loc = caller()
    instead = "keep the number of each kind of message in an Array of Nat, or give the parameter a value"
    bound = _capacity("Bag", capacity, instead)
    inner = _element(element, loc).sort
    if any(type(part) is not RangeSort or endless(part) for part in ranges(inner)):
        raise ModelError(
            f"a Bag of {inner} is not supported: it has a count for each value, of which there is any number",
            loc=loc,
            remedy="use finite sorts, or give the parameter a value",
        )
    if cardinality_up_to(inner, SET_LIMIT) > SET_LIMIT:
        raise TooLarge(
            f"a Bag of {inner} has a count for each of more than {SET_LIMIT:,} values", loc=loc, remedy="a smaller sort"
        )
    sort = bag_sort(inner, 0 if is_empty(inner) else plain(bound))
    return _decl(sort, init, [default(sort)])


class State(Declared):
    """The variables of a model, by name and in order."""

    def __init__(self, *unnamed: Any, **variables: Decl) -> None:
        loc = caller()
        if unnamed:
            raise ModelError("a state variable has no name", loc=loc, remedy="write State(name=sort, ...)")
        for name, given in variables.items():
            _expect_name("state variable", name, loc)
            if is_empty(_element(given, loc).sort):
                raise ModelError(
                    f"{name} has no value, because {given.sort} is empty",
                    loc=given.loc or loc,
                    remedy="only containers and options may be empty: Option(...), or an Array over 0 indices",
                )
            if _element(given, loc).guessed:
                raise ModelError(
                    f"{name} has no init, and the least value of {given.sort} is not 0",
                    loc=given.loc or loc,
                    remedy="say where it starts: init=0, or another value of the range",
                )
        self._variables = variables
        self.loc = loc

    def is_open(self) -> bool:
        """Whether it depends on free parameters."""
        return any(decl.is_open() for decl in self._variables.values())

    def items(self) -> Iterator[tuple[str, Decl]]:
        """The name and declaration of each variable."""
        return iter(self._variables.items())
