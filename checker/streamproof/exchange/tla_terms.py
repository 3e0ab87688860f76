"""Terms in TLA+, one family at a time; repeated subterms are named by LET.

Terms are total, TLA+'s operators are not: the text tests for an index outside, an empty or full queue, an absent option
or a zero divisor, unless the known conditions at that place exclude it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import assert_never

from streamproof.exchange.tla_families import GROUND, Family, Shapes, Tables, Terms
from streamproof.exchange.tla_layout import (
    Bind,
    Text,
    atom,
    below,
    beside,
    chosen,
    closed,
    listed,
    separated,
)
from streamproof.exchange.tla_names import TlaNames, field_name
from streamproof.exchange.tla_values import domain, fields, function, literal, record, resting
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Assuming
from streamproof.system.expr import Expr, children
from streamproof.system.records import dataclass
from streamproof.system.sorts import (
    ArraySort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    Scalar,
    default,
    values,
)

HEAVY = 8
"""Minimum size, in operators and operands, from which a repeated subterm gets a name."""
LONG = 2_000
"""Maximum size, in operators and operands, up to which a subterm is compared with its neighbours."""
MANY = 3
"""Minimum number of subterms of one shape that are written with a quantifier."""


@dataclass
class TlaWriter:
    """Data shared by all terms of a module: names of the variables, tables, auxiliary operators."""

    variables: Mapping[str, str]
    names: TlaNames
    shapes: Shapes = field(default_factory=Shapes)
    needs: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tables = Tables(self.names)
        self._weights: dict[Expr, int] = {}

    def weight(self, term: Expr) -> int:
        """The size of a term's text, in operators and operands, repeated subterms counted again."""
        for part in e.unfinished(term, self._weights):
            self._weights[part] = 1 + sum(self._weights[c] for c in children(part))
        return self._weights[term]

    def whole(self, terms: Terms, family: Family = GROUND, given: Sequence[Assuming] | None = None) -> Text:
        """One expression, with its repeated subterms named before it."""
        passage = Passage(self, family, given or [Assuming() for _ in terms])
        [text] = passage.texts([terms])
        return passage.after_names(text)

    def ground(self, term: Expr) -> Text:
        """One ground expression."""
        return self.whole((term,))


class Passage:
    """Expressions in one place, under one LET: the known conditions there, and the names so far."""

    def __init__(
        self, writer: TlaWriter, family: Family, given: Sequence[Assuming], numbers: Iterator[int] | None = None
    ) -> None:
        self.writer = writer
        self.family = family
        self.given = given
        self.numbers = numbers or count(1)
        self.lets: list[Text] = []
        self._done: dict[Terms, Text] = {}
        self._uses: Counter[Terms] = Counter()

    def texts(self, roots: Sequence[Terms]) -> list[Text]:
        """The text of each term."""
        self._count(roots)
        return [self.text(terms) for terms in roots]

    def after_names(self, text: Text) -> Text:
        """`text` with its LET definitions."""
        if not self.lets:
            return text
        return below((beside("LET ", below(self.lets)), beside("IN  ", text)))

    def _count(self, roots: Sequence[Terms]) -> None:
        self._uses.update(roots)
        seen: set[Terms] = set(roots)
        stack = list(roots)
        while stack:
            for part in parts(stack.pop()):
                self._uses[part] += 1
                if part not in seen:
                    seen.add(part)
                    stack.append(part)

    def text(self, terms: Terms) -> Text:
        """The text of one term, or the name given to it."""
        if terms not in self._done:
            text = self._text(terms)
            if self._is_heavy(terms) and text.length > 30:
                name = self.writer.names.bound(f"t{next(self.numbers)}")
                self.lets.append(beside(f"{name} == ", text))
                text = atom(name)
            self._done[terms] = text
        return self._done[terms]

    def _is_heavy(self, terms: Terms) -> bool:
        return self._uses[terms] > 1 and self.writer.weight(terms[0]) >= HEAVY

    # --- known conditions

    def sure(self, condition: Callable[[Expr], Expr], terms: Terms) -> bool:
        """Whether the condition is known to be true of the term in every row."""
        return all(here(condition(t)) is b.TRUE for here, t in zip(self.given, terms, strict=True))

    # --- terms

    def _text(self, terms: Terms) -> Text:
        first = terms[0]
        match first:
            case e.Const():
                return self.writer.tables.constant(terms, self.family)
            case e.Var(name=name):
                return atom(self.writer.variables[name])
            case e.Next(name=name):
                return atom(f"{self.writer.variables[name]}'")
            case e.Not():
                return self._negation(parts(terms)[0])
            case e.And():
                return self._many(terms, "/\\", "\\A")
            case e.Or():
                return self._disjunction(terms)
            case e.Ite():
                condition, then, other = map(self.text, parts(terms))
                return chosen(condition, then, other)
            case e.Eq():
                return self._compared("=", terms)
            case e.Less():
                return self._compared("<", terms)
            case e.LessEq():
                return self._compared("<=", terms)
            case e.Add():
                return self._chain("+", terms)
            case e.Sub():
                return self._chain("-", terms)
            case e.Mul():
                return self._chain("*", terms)
            case e.FloorDiv():
                return self._divided("\\div", "FloorDiv", terms)
            case e.Mod():
                return self._divided("%", "FloorMod", terms)
            case e.Subset():
                return self._compared("\\subseteq", terms)
            case e.Member():
                return self._member("\\in", terms)
            case e.Union():
                return self._chain("\\cup", terms)
            case e.Intersection():
                return self._chain("\\cap", terms)
            case e.Difference():
                return self._chain("\\", terms)
            case e.Insert() | e.Remove():
                whole, value = map(self.text, parts(terms))
                operator = "\\cup" if isinstance(first, e.Insert) else "\\"
                one = closed(value, Bind.COMPUTED)  # {x \in S} would be parsed as the members with a property
                return beside(closed(whole, Bind.ATOM), f" {operator} {{", one, "}", bind=Bind.COMPUTED)
            case e.Size():
                return beside("Cardinality(", self.text(parts(terms)[0]), ")")
            case e.MakeArray() | e.MakeRecord() | e.Select() | e.Store() | e.Field() | e.WithField():
                return self._of_structure(terms)
            case e.Some() | e.IsNone() | e.Unwrap():
                return self._of_option(terms)
            case e.Length() | e.Peek() | e.Push() | e.Pop():
                return self._of_queue(terms)
            case _:
                assert_never(first)

    def _negation(self, arg: Terms) -> Text:
        match arg[0]:
            case e.Eq():
                return self._compared("#", arg)
            case e.Less():
                return self._compared(">=", arg)
            case e.LessEq():
                return self._compared(">", arg)
            case e.Member():
                return self._member("\\notin", arg)
            case e.IsNone():
                option = self.text(parts(arg)[0])
                return beside(closed(option, Bind.ATOM), '.tag = "Some"', bind=Bind.COMPARED)
            case _:
                return beside("~", closed(self.text(arg), Bind.ATOM), bind=Bind.COMPARED)

    def _disjunction(self, terms: Terms) -> Text:
        args = parts(terms)
        denied = [a for a in args if isinstance(a[0], e.Not)]
        if not denied or len(denied) == len(args):
            return self._many(terms, "\\/", "\\E")
        first = parts(denied[0])[0]
        rest = [a for a in args if a is not denied[0]]
        if len(denied) > 1:
            return self._many(terms, "\\/", "\\E")
        given = closed(self.text(first), Bind.COMPARED)
        then = closed(listed("\\/", [self.text(r) for r in rest]), Bind.COMPARED)
        return beside(given, " => ", then, bind=Bind.LOOSE)

    def _many(self, terms: Terms, operator: str, quantifier: str) -> Text:
        args = parts(terms)
        return (
            self._one_of(args, operator)
            or self._quantified(args, quantifier)
            or listed(operator, [self.text(a) for a in args])
        )

    def _one_of(self, args: Sequence[Terms], operator: str) -> Text | None:
        """Several comparisons of one term with constants, as membership in a set."""
        denied = operator == "/\\"
        pairs = [parts(parts(a)[0]) if denied and isinstance(a[0], e.Not) else parts(a) for a in args]
        kinds = {(type(a[0]), type(a[0].arg)) if isinstance(a[0], e.Not) else (type(a[0]), None) for a in args}
        if kinds != {(e.Not, e.Eq) if denied else (e.Eq, None)}:
            return None
        if len({left for left, _ in pairs}) > 1 or not all(isinstance(right[0], e.Const) for _, right in pairs):
            return None
        among = separated("{", [self.text(right) for _, right in pairs], "}")
        term = closed(self.text(pairs[0][0]), Bind.COMPUTED)
        return beside(term, " \\notin " if denied else " \\in ", among, bind=Bind.COMPARED)

    def _compared(self, operator: str, terms: Terms) -> Text:
        left, right = (closed(self.text(t), Bind.COMPUTED) for t in parts(terms))
        if isinstance(parts(terms)[0][0], e.Const) and operator in _MIRRORED:
            left, right, operator = right, left, _MIRRORED[operator]
        return beside(left, f" {operator} ", right, bind=Bind.COMPARED)

    def _member(self, operator: str, terms: Terms) -> Text:
        whole, value = (closed(self.text(t), Bind.COMPUTED) for t in parts(terms))
        return beside(value, f" {operator} ", whole, bind=Bind.COMPARED)

    def _chain(self, operator: str, terms: Terms) -> Text:
        left, right = parts(terms)
        again = type(left[0]) is type(terms[0]) and not isinstance(terms[0], e.Difference)
        first = closed(self.text(left), Bind.COMPUTED if again else Bind.ATOM)
        return beside(first, f" {operator} ", closed(self.text(right), Bind.ATOM), bind=Bind.COMPUTED)

    def _divided(self, operator: str, careful: str, terms: Terms) -> Text:
        left, right = parts(terms)
        if self.sure(lambda t: b.less(b.num(0), t), right):
            texts = (closed(self.text(t), Bind.ATOM) for t in (left, right))
            return beside(next(texts), f" {operator} ", next(texts), bind=Bind.COMPUTED)
        self.writer.needs.add(careful)
        return beside(f"{careful}(", self.text(left), ", ", self.text(right), ")")

    # --- structure

    def _of_structure(self, terms: Terms) -> Text:
        first, args = terms[0], parts(terms)
        match first:
            case e.MakeArray(sort=ArraySort(index, _)):
                return self._array(index, args)
            case e.MakeRecord(sort=RecordSort() as sort):
                return record([(n, self.text(a)) for (n, _), a in zip(fields(sort), args, strict=True)])
            case e.Select():
                return self._selected(*args)
            case e.Field(record=whole, name=name):
                return beside(closed(self.text(args[0]), Bind.ATOM), f".{_field(whole, name)}")
            case _:
                return self._updated(terms)

    def _array(self, index: Scalar, args: Sequence[Terms]) -> Text:
        name = self._fresh("k")
        keys = [(literal(index, k).lines[0], k if isinstance(index, RangeSort) else None) for k in values(index)]
        if len(keys) > 1 and self._alike(args):
            body = self._body(args, name, keys)
            if body is not None:
                return beside(f"[{name} \\in ", domain(index), " |-> ", body, "]")
        return function(index, [self.text(a) for a in args], name)

    def _selected(self, array: Terms, index: Terms) -> Text:
        sort = array[0].sort
        assert isinstance(sort, ArraySort)
        whole, at = self.text(array), self.text(index)
        found = beside(closed(whole, Bind.ATOM), "[", at, "]")
        if self.sure(lambda t: b.in_domain(t, sort.index), index):
            return found
        inside = beside(closed(at, Bind.COMPUTED), " \\in ", domain(sort.index), bind=Bind.COMPARED)
        return chosen(inside, found, literal(sort.element, default(sort.element)))

    def _updated(self, terms: Terms) -> Text:
        """An array or a record with parts replaced, the innermost replacement first."""
        changes: list[Text] = []
        base = terms
        while True:
            change = self._change(base)
            if change is None or (changes and self._is_heavy(base)):
                break
            changes.insert(0, change)
            base = parts(base)[0]
        if changes:
            return beside("[", self.text(base), " EXCEPT ", below(_commas(changes)), "]")
        array, index, value = map(self.text, parts(terms))
        sort = terms[0].sort
        assert isinstance(sort, ArraySort)
        inside = beside(closed(index, Bind.COMPUTED), " \\in ", domain(sort.index), bind=Bind.COMPARED)
        return chosen(inside, beside("[", array, " EXCEPT ![", index, "] = ", value, "]"), array)

    def _change(self, terms: Terms) -> Text | None:
        """``!.f = v`` or ``![i] = v``, where the index is known to be inside."""
        match terms[0]:
            case e.WithField(record=whole, name=name):
                place, value = beside(f"!.{_field(whole, name)}"), parts(terms)[1]
            case e.Store(array=whole):
                _, index, value = parts(terms)
                sort = whole.sort
                assert isinstance(sort, ArraySort)
                if not self.sure(lambda t: b.in_domain(t, sort.index), index):
                    return None
                place = beside("![", self.text(index), "]")
            case _:
                return None
        deeper = self._inner_change(terms, value)
        return beside(place, *(deeper or (" = ", self.text(value))))

    def _inner_change(self, terms: Terms, value: Terms) -> tuple[Text | str, ...] | None:
        """The rest of ``![i].f = v``, if the new element is the old one with a field replaced."""
        old, new = zip(*(_old_and_new(t) for t in terms), strict=True)
        if any(o is None or not isinstance(n, e.WithField) or n.record is not o for o, n in zip(old, new, strict=True)):
            return None
        if self._is_heavy(value):
            return None
        first = value[0]
        assert isinstance(first, e.WithField)
        return (f".{_field(first.record, first.name)} = ", self.text(parts(value)[1]))

    # --- options and queues

    def _of_option(self, terms: Terms) -> Text:
        first, [arg] = terms[0], parts(terms)
        text = self.text(arg)
        match first:
            case e.Some():
                return beside("Some(", text, ")")
            case e.IsNone():
                return beside(closed(text, Bind.ATOM), '.tag = "None"', bind=Bind.COMPARED)
            case _:
                sort = arg[0].sort
                assert isinstance(sort, OptionSort)
                value, usual = beside(closed(text, Bind.ATOM), ".value"), default(sort.element)
                if usual == resting(sort.element) or self.sure(lambda t: b.not_(b.is_none(t)), arg):
                    return value
                there = beside(closed(text, Bind.ATOM), '.tag = "Some"', bind=Bind.COMPARED)
                return chosen(there, value, literal(sort.element, usual))

    def _of_queue(self, terms: Terms) -> Text:
        first, args = terms[0], parts(terms)
        sort = args[0][0].sort
        assert isinstance(sort, QueueSort)
        queue = self.text(args[0])
        size = beside("Len(", queue, ")")
        match first:
            case e.Length():
                return size
            case e.Pop():
                rest = beside("Tail(", queue, ")")
                if self.sure(lambda q: b.less(b.num(0), b.length(q)), args[0]):
                    return rest
                empty = beside(closed(queue, Bind.COMPUTED), " = <<>>", bind=Bind.COMPARED)
                return chosen(empty, queue, rest)
            case e.Push():
                longer = beside("Append(", queue, ", ", self.text(args[1]), ")")
                if self.sure(lambda q: b.less(b.length(q), b.num(sort.capacity)), args[0]):
                    return longer
                return chosen(beside(size, f" < {sort.capacity}", bind=Bind.COMPARED), longer, queue)
            case _:
                return self._peeked(sort, queue, size, args)

    def _peeked(self, sort: QueueSort, queue: Text, size: Text, args: Sequence[Terms]) -> Text:
        index = args[1]
        constants = {t.value for t in index if isinstance(t, e.Const)}
        at = self.text(index)
        if constants == {0}:
            found = beside("Head(", queue, ")")
        else:
            found = beside(closed(queue, Bind.ATOM), "[", closed(at, Bind.ATOM), " + 1]")
        bound = all(
            here(b.and_((b.less_eq(b.num(0), i), b.less(i, b.length(q))))) is b.TRUE
            for here, q, i in zip(self.given, args[0], index, strict=True)
        )
        if bound:
            return found
        if constants == {0}:
            inside = beside(closed(queue, Bind.COMPUTED), " # <<>>", bind=Bind.COMPARED)
        else:
            number = closed(at, Bind.COMPUTED)
            inside = beside("0 <= ", number, " /\\ ", number, " < ", size, bind=Bind.LOOSE)
        return chosen(inside, found, literal(sort.element, default(sort.element)))

    # --- families inside terms

    def _fresh(self, text: str) -> str:
        name = self.writer.names.bound(text)
        number = 1
        while name in self.family.names:
            name = self.writer.names.bound(f"{text}{number}")
            number += 1
        return name

    def _alike(self, args: Sequence[Terms]) -> bool:
        shapes = {self.writer.shapes(t) for terms in args for t in terms}
        return len(shapes) == 1 and not isinstance(args[0][0], e.Const | e.Var)

    def _quantified(self, args: Sequence[Terms], quantifier: str) -> Text | None:
        """The operands with a quantifier, if they differ in one constant with a set of values."""
        if len(args) < MANY or not self._alike(args):
            return None
        name = self._fresh("i")
        for keys in self._running(args):
            body = self._body(args, name, keys)
            if body is not None:
                numbers = [number for _, number in keys]
                if None not in numbers and numbers == list(range(numbers[0] or 0, (numbers[0] or 0) + len(numbers))):
                    among = f"{keys[0][0]}..{keys[-1][0]}"
                else:
                    among = f"{{{', '.join(key for key, _ in keys)}}}"
                return beside(f"{quantifier} {name} \\in {among} : ", body, bind=Bind.LOOSE)
        return None

    def _running(self, args: Sequence[Terms]) -> Iterable[list[tuple[str, int | None]]]:
        """Candidates for the values of a bound name: constants that differ between operands."""
        if self.writer.weight(args[0][0]) > LONG:
            return []
        columns = zip(*(list(_constants(terms[0])) for terms in args), strict=True)
        found: dict[tuple[tuple[str, int | None], ...], None] = {}
        for column in columns:
            if not all(isinstance(c.sort, RangeSort | EnumSort) for c in column):
                continue
            keys = tuple(
                (literal(c.sort, c.value).lines[0], c.value if isinstance(c.sort, RangeSort) else None) for c in column
            )
            if len(set(keys)) == len(keys):
                found.setdefault(keys)
        return [list(keys) for keys in found]

    def _body(self, args: Sequence[Terms], name: str, keys: Sequence[tuple[str, int | None]]) -> Text | None:
        """The body of the quantifier; None if the constants are not a function of the names."""
        family = self.family.widened(name, keys)
        terms = tuple(terms[row] for row in range(len(self.family.rows)) for terms in args)
        given = [here for here in self.given for _ in args]
        if not all(self.writer.tables.simple(c, family) for c in _constant_columns(terms)):
            return None
        inner = Passage(self.writer, family, given, self.numbers)
        [text] = inner.texts([terms])
        return inner.after_names(text)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parts(terms: Terms) -> list[Terms]:
    """The direct subterms of terms of one shape, from left to right."""
    return list(zip(*(children(t) for t in terms), strict=True))


def _constants(term: Expr) -> Iterable[e.Const]:
    """The constants of a term, from left to right in its text."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, e.Const):
            yield part
        else:
            stack += reversed(list(children(part)))


def _constant_columns(terms: Terms) -> Iterable[Terms]:
    """The distinct constants of terms of one shape, together."""
    seen = {terms}
    stack = [terms]
    while stack:
        part = stack.pop()
        if isinstance(part[0], e.Const):
            yield part
            continue
        for inner in parts(part):
            if inner not in seen:
                seen.add(inner)
                stack.append(inner)


def _field(whole: Expr, name: str) -> str:
    assert isinstance(whole.sort, RecordSort)
    return field_name(name, [n for n, _ in whole.sort.fields])


def _old_and_new(term: Expr) -> tuple[Expr | None, Expr | None]:
    """The replaced part, and its replacement."""
    match term:
        case e.Store(array=whole, index=index, value=value):
            return b.select(whole, index), value
        case e.WithField(record=whole, name=name, value=value):
            return b.field(whole, name), value
        case _:
            return None, None


def _commas(items: Sequence[Text]) -> list[Text]:
    return [beside(item, "," if at + 1 < len(items) else "") for at, item in enumerate(items)]
