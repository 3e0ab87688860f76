"""Quantifiers and cardinalities in TLA+ for conjunctions, disjunctions and sums of ground terms (anti-unification).

Operands of one shape that differ in an index become ``\\A i \\in S : ...``, ``\\E i \\in S : ...``, or, in a sum of
truth values, ``Cardinality({i \\in S : ...})``. Every constant of the body must be the same function of the bound names
for all operands, so that expanding the text gives back the ground terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from streamproof.exchange.tla.families import Family, Known, Terms, known, parts, walked
from streamproof.exchange.tla.layout import Bind, Text, beside, closed, listed, separated
from streamproof.exchange.tla.passage import LONG, Passage
from streamproof.exchange.tla.values import literal
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr, children
from streamproof.system.sorts import EnumSort, RangeSort

ATTEMPTS = 2
"""Number of operands of one shape that may differ from those that follow."""
Keys = tuple[tuple[str, Known], ...]
"""The values of a bound name as text, each with its number if it is one."""


def connected(at: Passage, args: Sequence[Terms], operator: str) -> Text:
    """A conjunction or disjunction. Each operand is written where the ones before it are known."""
    found = _one_of(at, args, operator)
    if found is not None:
        return found
    same = [arg for arg in args if _kept(arg, operator) is not None]
    if len(same) > 1:
        names = ", ".join(at.writer.variables[name] for name in (_kept(arg, operator) for arg in same) if name)
        last = ("" if operator == "/\\" else "~") + f"UNCHANGED {at.writer.tuples.get(names, f'<<{names}>>')}"
        args = [arg for arg in args if arg not in same]
        if not args:
            return Text((last,), Bind.COMPARED)
    items: list[Text] = []
    done: set[int] = set()
    unlike: Counter[int] = Counter()
    careful = any(at.writer.is_partial(arg[0]) for arg in args[1:])
    with at.deeper():
        for number, arg in enumerate(args):
            if number in done:
                continue
            shape = at.writer.shapes(arg[0])
            chosen, text = [[number]], None
            if unlike[shape] < ATTEMPTS:
                folded = _folded(at, args, number, done, operator)
                chosen, text = folded if folded is not None else (chosen, None)
                if folded is None:
                    unlike[shape] += 1
            items.append(at.text(arg) if text is None else text)
            done.update(n for several in chosen for n in several)
            for several in chosen if careful else ():
                for n in several:
                    at.note(args[n], operator == "/\\")
    if len(same) > 1:
        items.append(Text((last,), Bind.COMPARED))
    return listed(operator, items)


def _kept(terms: Terms, operator: str) -> str | None:
    """The variable that keeps its value, if the operand of a conjunction says this, or that of a disjunction its opposite."""
    names = set()
    for term in terms:
        one = term if operator == "/\\" else term.arg if isinstance(term, e.Not) else None
        match one:
            case e.Eq(left=e.Next(name=name), right=e.Var(name=other)) if name == other:
                names.add(name)
            case e.Eq(left=e.Var(name=other), right=e.Next(name=name)) if name == other:
                names.add(name)
            case _:
                return None
    return names.pop() if len(names) == 1 else None


def _folded(
    at: Passage, args: Sequence[Terms], number: int, done: set[int], operator: str
) -> tuple[list[list[int]], Text] | None:
    """The operands of one shape as a quantifier, with those of other shapes that run through the same values."""
    left = [n for n in range(number, len(args)) if n not in done]
    classes: dict[int, list[int]] = {}
    for n in left:
        classes.setdefault(at.writer.shapes(args[n][0]), []).append(n)
    first, *others = classes.values()
    for keys in running(at, [args[n] for n in first]):
        chosen = [first]
        for other in others:
            if len(other) == len(first) and keys in running(at, [args[n] for n in other]):
                moved = [n for n in left if n < other[-1] and all(n not in one for one in (*chosen, other))]
                if not moved or not at.writer.is_partial(args[other[0]][0]):
                    chosen.append(other)
        for several in [chosen, [first]] if len(chosen) > 1 else [chosen]:
            name = at.fresh("i")
            body = bounded(at, [[args[n] for n in one] for one in several], name, keys, operator)
            if body is not None:
                sign = "\\A" if operator == "/\\" else "\\E"
                return several, beside(f"{sign} {name} \\in {among(keys)} : ", body, bind=Bind.LOOSE)
    return None


def for_all(at: Passage, several: Sequence[Sequence[Terms]]) -> tuple[str, list[Text]] | None:
    """The quantifier over several rows of terms that differ in one constant, and the text of each column."""
    if len({tuple(at.writer.shapes(t) for terms in row for t in terms) for row in several}) > 1:
        return None
    columns = list(zip(*several, strict=True))
    for keys in dict.fromkeys(keys for column in columns for keys in running(at, column)):
        name = at.fresh("i")
        texts = [bounded(at, [column], name, keys, "/\\") for column in columns]
        if all(text is not None for text in texts):
            return f"\\A {name} \\in {among(keys)} : ", [text for text in texts if text is not None]
    return None


def summed(at: Passage, terms: Terms) -> list[Text]:
    """The operands of a sum; truth values that are counted become cardinalities."""
    addends = list(_addends(at, terms, top=True))
    items: list[Text] = []
    classes: dict[tuple[int, ...], list[int]] = {}
    conditions: dict[int, Terms] = {}
    for n, one in enumerate(addends):
        found = [c for c in map(indicated, one) if c is not None]
        if len(found) == len(one):
            conditions[n] = tuple(found)
            classes.setdefault(tuple(map(at.writer.shapes, found)), []).append(n)
    counted: dict[int, Text] = {}
    for shapes, several in classes.items():
        known = [conditions[n] for n in several]
        for keys in running(at, known) if len(set(shapes)) == 1 else ():
            name = at.fresh("i")
            body = bounded(at, [known], name, keys, "/\\")
            if body is not None:
                counted[several[0]] = beside(f"Cardinality({{{name} \\in {among(keys)} : ", body, "})")
                counted.update(dict.fromkeys(several[1:], Text(())))
                break
    for n, one in enumerate(addends):
        text = counted.get(n)
        if text is None:
            items.append(at.text(one))
        elif text.lines:
            items.append(text)
    return items


def _addends(at: Passage, terms: Terms, *, top: bool = False) -> Iterator[Terms]:
    if isinstance(terms[0], e.Add) and (top or not at.is_named(terms)):
        for part in parts(terms):
            yield from _addends(at, part)
    else:
        yield terms


def indicated(term: Expr) -> Expr | None:
    """The condition of a term that is 1 where it is true and 0 elsewhere."""
    match term:
        case e.Ite(cond=condition, then=e.Const(value=1), other=e.Const(value=0)):
            return condition
        case e.Ite(cond=condition, then=e.Const(value=0), other=e.Const(value=1)):
            return b.not_(condition)
        case e.Ite(cond=condition, then=then, other=e.Const(value=0)):
            inner = indicated(then)
            return None if inner is None else b.and_((condition, inner))
        case e.Ite(cond=condition, then=e.Const(value=0), other=other):
            inner = indicated(other)
            return None if inner is None else b.and_((b.not_(condition), inner))
        case _:
            return None


def _one_of(at: Passage, args: Sequence[Terms], operator: str) -> Text | None:
    """Several comparisons of one term with constants, as membership in a set."""
    denied = operator == "/\\"
    pairs = [parts(parts(a)[0]) if denied and isinstance(a[0], e.Not) else parts(a) for a in args]
    kinds = {(type(a[0]), type(a[0].arg)) if isinstance(a[0], e.Not) else (type(a[0]), None) for a in args}
    if len(args) < 2 or kinds != {(e.Not, e.Eq) if denied else (e.Eq, None)}:
        return None
    if len({left for left, _ in pairs}) > 1 or not all(isinstance(right[0], e.Const) for _, right in pairs):
        return None
    members = separated("{", [at.text(right) for _, right in pairs], "}")
    term = closed(at.text(pairs[0][0]), Bind.COMPUTED)
    return beside(term, " \\notin " if denied else " \\in ", members, bind=Bind.COMPARED)


def running(at: Passage, args: Sequence[Terms]) -> list[Keys]:
    """Candidates for the values of a bound name: constants that differ between operands of one shape."""
    if len(args) < 2 or isinstance(args[0][0], e.Const | e.Var) or at.writer.weight(args[0][0]) > LONG:
        return []
    found: dict[Keys, None] = {}
    for column in zip(*(list(_constants(terms[0])) for terms in args), strict=True):
        if not all(isinstance(c.sort, RangeSort | EnumSort) for c in column):
            continue
        keys = tuple((literal(c.sort, c.value).lines[0], known(c.sort, c.value)) for c in column)
        if len(set(keys)) == len(keys):
            found.setdefault(keys)
    return list(found)


def among(keys: Sequence[tuple[str, Known]]) -> str:
    """The set of the values."""
    numbers = [number for _, number in keys if isinstance(number, int)]
    if len(numbers) == len(keys) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{keys[0][0]}..{keys[-1][0]}"
    return f"{{{', '.join(key for key, _ in keys)}}}"


def bounded(
    at: Passage, classes: Sequence[Sequence[Terms]], name: str, keys: Sequence[tuple[str, Known]], operator: str
) -> Text | None:
    """The body under a bound name: one operand for each class of terms; None if some constant is no function of the
    names. Two operands must differ in the name itself."""
    family = at.family.widened(name, keys)
    rows = range(len(at.family.rows))
    wide: list[Terms] = [tuple(terms[row] for row in rows for terms in several) for several in classes]
    if not all(
        _follows(at, column, family, strict=len(keys) == 2)
        for column, _ in walked(wide)
        if isinstance(column[0], e.Const)
    ):
        return None
    inner = at.inside(family, [here for here in at.given for _ in keys])
    inner.count(wide)
    items = []
    with inner.deeper():
        for terms in wide:
            items.append(inner.text(terms))
            if len(wide) > 1:
                inner.note(terms, operator == "/\\")
    return inner.after_names(listed(operator, items))


def _follows(at: Passage, column: Terms, family: Family, *, strict: bool) -> bool:
    text = at.writer.tables.simple(column, family)
    return text is not None and (not strict or len(set(column)) == 1 or text.lines[0] in family.names)


def _constants(term: Expr) -> Iterable[e.Const]:
    """The constants of a term, from left to right in its text."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, e.Const):
            yield part
        else:
            stack += reversed(list(children(part)))
