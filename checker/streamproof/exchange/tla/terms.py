"""Terms in TLA+, one family at a time; repeated subterms are named by LET.

Terms are total, TLA+'s operators are not: the text tests for an index outside, an empty or full queue, an absent option
or a zero divisor, unless the known conditions at that place exclude it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from streamproof.exchange.tla.cases import case_field, is_case, of_option, of_queue, of_union
from streamproof.exchange.tla.families import GROUND, Family, Terms, known, parts, walked
from streamproof.exchange.tla.layout import WIDTH, Bind, Text, atom, below, beside, chosen, closed, joined
from streamproof.exchange.tla.passage import Passage, Vocabulary
from streamproof.exchange.tla.quantifiers import bounded, connected, summed
from streamproof.exchange.tla.values import accesses, domain, function, literal, separated_by, structure
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import ArraySort, RecordSort, Scalar, ValueKeys, default, values
from streamproof.transform.assume import Assuming

SHORT = 40
"""Maximum size of a replaced element's new value for which the old one is written as ``@``."""


class TlaWriter(Vocabulary):
    """Writes the terms of a module."""

    def whole(self, terms: Terms, family: Family = GROUND, given: Sequence[Assuming] | None = None) -> Text:
        """One expression, with its repeated subterms named before it."""
        passage = WrittenPassage(self, family, given or [Assuming() for _ in terms])
        [text] = passage.texts([terms])
        return passage.after_names(text)

    def ground(self, term: Expr) -> Text:
        """One ground expression."""
        return self.whole((term,))


class WrittenPassage(Passage):
    """A passage whose terms are written in TLA+."""

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
                return connected(self, parts(terms), "/\\")
            case e.Or():
                return self._disjunction(parts(terms))
            case e.Ite():
                given, *branches = parts(terms)
                texts = [self.text(given)]
                for branch, truth in zip(branches, (True, False), strict=True):
                    with self.deeper():
                        if self.writer.is_partial(branch[0]):
                            self.note(given, truth)
                        texts.append(self.text(branch))
                return chosen(*texts)
            case e.Eq():
                return self._compared("=", terms)
            case e.Less():
                return self._compared("<", terms)
            case e.LessEq():
                return self._compared("<=", terms)
            case e.Add():
                return self._sum(terms)
            case e.Sub():
                return self._difference(terms)
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
            case e.MakeCase() | e.IsCase() | e.Payload():
                return of_union(self, terms)
            case e.MakeArray() | e.MakeRecord() | e.Select() | e.Store() | e.Field() | e.WithField():
                return self._of_structure(terms)
            case e.Some() | e.IsNone() | e.Unwrap():
                return of_option(self, terms)
            case e.Length() | e.Peek() | e.Push() | e.Pop():
                return of_queue(self, terms)
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
            case e.IsCase():
                return is_case(self, arg, "#")
            case e.IsNone():
                option = self.text(parts(arg)[0])
                return beside(closed(option, Bind.ATOM), '.tag = "Some"', bind=Bind.COMPARED)
            case _:
                return beside("~", closed(self.text(arg), Bind.ATOM), bind=Bind.COMPARED)

    def _disjunction(self, args: Sequence[Terms]) -> Text:
        """Operands up to the last negation are the premise of an implication, if something follows them."""
        denied = [at for at, arg in enumerate(args) if isinstance(arg[0], e.Not)]
        if len(denied) == 1 and denied[0] == len(args) - 1 and not any(self.writer.is_partial(a[0]) for a in args):
            args, denied = [args[-1], *args[:-1]], [0]
        end = denied[-1] + 1 if denied else 0
        if len(args) == end == 2 and any(isinstance(t, e.Not) and isinstance(t.arg, e.And) for t, *_ in args):
            end = 1
        if end in (0, len(args)):
            return connected(self, args, "\\/")
        premise: list[Terms] = []
        for arg in args[:end]:
            negated: Terms = tuple(map(b.not_, arg))
            premise += parts(negated) if all(isinstance(t, e.And) for t in negated) else [negated]
        given = closed(connected(self, premise, "/\\"), Bind.COMPARED)
        with self.deeper():
            for terms in premise:
                self.note(terms, True)
            then = closed(connected(self, args[end:], "\\/"), Bind.COMPARED)
        if given.width + then.width > WIDTH:
            return below((given, beside("=> ", then)))
        return beside(given, " => ", then, bind=Bind.LOOSE)

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

    def _sum(self, terms: Terms) -> Text:
        left, right = parts(terms)
        if len(set(right)) == 1 and isinstance(right[0], e.Const) and right[0].value < 0:
            again = isinstance(left[0], e.Sub)
            text = closed(self.text(left), Bind.COMPUTED if again else Bind.ATOM)
            return beside(text, f" - {-right[0].value}", bind=Bind.COMPUTED)
        first, *rest = summed(self, terms)
        if not rest:
            return first
        texts = [closed(text, Bind.ATOM) for text in (first, *rest)]
        if sum(text.width for text in texts) > WIDTH:
            return separated_by(" +", texts)
        return beside(*[part for text in texts for part in (" + ", text)][1:], bind=Bind.COMPUTED)

    def _difference(self, terms: Terms) -> Text:
        left, right = parts(terms)
        if len(set(right)) == 1 and isinstance(right[0], e.Const) and right[0].value < 0:
            return beside(closed(self.text(left), Bind.ATOM), f" + {-right[0].value}", bind=Bind.COMPUTED)
        return self._chain("-", terms)

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
                return structure(sort, [self.text(a) for a in args])
            case e.Select():
                return self._selected(*args)
            case e.Field(record=e.Payload() as whole, name=name):
                return case_field(self, args[0], name)
            case e.Field(record=whole, name=name):
                return beside(closed(self.text(args[0]), Bind.ATOM), _access(whole, name))
            case _:
                return self._updated(terms)

    def _array(self, index: Scalar, args: Sequence[Terms]) -> Text:
        replaced = self._replaced_at_a_key(index, args)
        if replaced is not None:
            return replaced
        name = self.fresh("k")
        keys = [(literal(index, k).lines[0], known(index, k)) for k in values(index)]
        shapes = {self.writer.shapes(t) for terms in args for t in terms}
        if len(keys) > 1 and len(shapes) == 1 and not isinstance(args[0][0], e.Const | e.Var):
            body = bounded(self, [args], name, keys, "/\\")
            if body is not None:
                return beside(f"[{name} \\in ", domain(index), " |-> ", body, "]")
        return function(index, [self.text(a) for a in args], name)

    def _replaced_at_a_key(self, index: Scalar, args: Sequence[Terms]) -> Text | None:
        """``[f EXCEPT ![key] = @ + n]`` for elements that are compared one by one with a key, as those of a bag are; a
        key outside the index changes nothing, as in TLA+."""
        if not isinstance(index, ValueKeys) or len(args) < 2 or len(args[0]) > 1:
            return None
        keys, before, change = set[Expr](), list[Expr](), set[int]()
        for element in (terms[0] for terms in args):
            match element:
                case e.Ite(
                    cond=e.Eq(left=key, right=e.Const(value=value)),
                    then=e.Add(left=old, right=e.Const(value=n)),
                    other=other,
                ) if old is other and value == index.keys[len(before)]:
                    keys.add(key)
                    change.add(n)
                    before.append(other)
                case _:
                    return None
        whole = _changed_array(index, before)
        if whole is None or len(keys) > 1 or len(change) > 1:
            return None
        [key], [n] = keys, change
        new = f"@ + {n}" if n > 0 else f"@ - {-n}"
        return beside("[", self.text((whole,)), " EXCEPT ![", self.text((key,)), f"] = {new}]")

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
            return beside("[", self.text(base), " EXCEPT ", below(joined(",", changes)), "]")
        array, index, value = map(self.text, parts(terms))
        sort = terms[0].sort
        assert isinstance(sort, ArraySort)
        inside = beside(closed(index, Bind.COMPUTED), " \\in ", domain(sort.index), bind=Bind.COMPARED)
        return chosen(inside, beside("[", array, " EXCEPT ![", index, "] = ", value, "]"), array)

    def _change(self, terms: Terms) -> Text | None:
        """``!.f = v`` or ``![i] = v``, where the index is known to be inside."""
        match terms[0]:
            case e.WithField(record=whole, name=name):
                place, value = beside(f"!{_access(whole, name)}"), parts(terms)[1]
                old = tuple(b.field(t.record, t.name) for t in terms if isinstance(t, e.WithField))
            case e.Store(array=whole):
                _, index, value = parts(terms)
                sort = whole.sort
                assert isinstance(sort, ArraySort)
                if not self.sure(lambda t: b.in_domain(t, sort.index), index):
                    return None
                place = beside("![", self.text(index), "]")
                old = tuple(b.select(t.array, t.index) for t in terms if isinstance(t, e.Store))
            case _:
                return None
        deeper = self._inner_change(terms, value)
        return beside(place, *(deeper or (" = ", self._replacing(old, value))))

    def _replacing(self, old: Terms, value: Terms) -> Text:
        """The new value of an element, with ``@`` for the old one."""
        nested = any(isinstance(t, e.Store | e.WithField | e.MakeArray) for t in e.subterms(value[0]))
        if (
            nested
            or self.is_named(value)
            or self.writer.weight(value[0]) > SHORT
            or all(terms != old for terms, _ in walked([value]))
        ):
            return self.text(value)
        inner = self.inside(self.family, self.given)
        inner._done = {**{t: self._done[t] for t in self._named}, old: atom("@")}
        inner._named = {*self._named, old}
        inner._local = {}
        return inner.text(value)

    def _inner_change(self, terms: Terms, value: Terms) -> tuple[Text | str, ...] | None:
        """The rest of ``![i].f = v``, if the new element is the old one with a field replaced."""
        old, new = zip(*(_old_and_new(t) for t in terms), strict=True)
        if any(o is None or not isinstance(n, e.WithField) or n.record is not o for o, n in zip(old, new, strict=True)):
            return None
        if self._is_heavy(value):
            return None
        first = value[0]
        assert isinstance(first, e.WithField)
        within = tuple(b.field(t.record, t.name) for t in value if isinstance(t, e.WithField))
        return (f"{_access(first.record, first.name)} = ", self._replacing(within, parts(value)[1]))


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _access(whole: Expr, name: str) -> str:
    assert isinstance(whole.sort, RecordSort)
    return accesses(whole.sort)[whole.sort.index(name)]


def _old_and_new(term: Expr) -> tuple[Expr | None, Expr | None]:
    """The replaced part, and its replacement."""
    match term:
        case e.Store(array=whole, index=index, value=value):
            return b.select(whole, index), value
        case e.WithField(record=whole, name=name, value=value):
            return b.field(whole, name), value
        case _:
            return None, None


def _changed_array(index: Scalar, elements: Sequence[Expr]) -> Expr | None:
    """The array that most of the elements are selected from, with the others replaced."""
    sources = Counter(t.array for t in elements if isinstance(t, e.Select) and isinstance(t.index, e.Const))
    whole = max(sources, key=lambda source: sources[source], default=None)
    if whole is None:
        return None
    keys = [b.const(index, value) for value in values(index)]
    changed = [at for at, key in enumerate(keys) if elements[at] is not b.select(whole, key)]
    for at in changed:
        whole = b.store(whole, keys[at], elements[at])
    return whole if 2 * len(changed) < len(elements) else None
