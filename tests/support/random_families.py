"""Random systems whose rules say the same of several elements, as quantifiers of a model are lowered: with gaps, offsets,
rings, sums and positions of a queue. The exports write quantifiers for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from streamproof.system import (
    BOOL,
    Action,
    ArraySort,
    Conjunct,
    EnumSort,
    Expr,
    Fairness,
    Instance,
    Kind,
    Property,
    QueueSort,
    RangeSort,
    SetSort,
    Sort,
    System,
    Variable,
)
from streamproof.system import build as b
from streamproof.system.formula import Always, AndF, Atom, Eventually, Formula, LeadsTo, Recurs

Rule = Callable[[int], Expr]
"""A term for each index."""
MOST = 3
"""Capacity of the queue."""


class Family:
    """Draws terms over some arrays, a set and a queue of `size` elements."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.size = random.choice((2, 3, 3, 4))
        self.index = RangeSort(0, self.size - 1)
        small = RangeSort(0, 2)
        self.letters = EnumSort(("X", "Y"))
        self.sorts: dict[str, Sort] = {
            "a": ArraySort(self.index, small),
            "f": ArraySort(self.index, BOOL),
            "s": SetSort(self.index),
            "q": QueueSort(self.index, MOST),
            "e": ArraySort(self.letters, small),
        }
        for name in random.sample(["a", "f", "s", "q", "e"], random.choice((1, 2, 2))):
            if len(self.sorts) > 2:
                del self.sorts[name]
        self.sorts.setdefault("a", ArraySort(self.index, RangeSort(0, 1 if self.size > 3 else 2)))

    def var(self, name: str, *, after: bool = False) -> Expr:
        """A variable, or its next value."""
        return (b.next_ if after else b.var)(name, self.sorts[name])

    def chosen(self) -> Sequence[int]:
        """Some indices: all, all but one, an interval, or any."""
        whole = range(self.size)
        lost = self.random.randrange(self.size)
        return self.random.choice(
            (whole, whole, whole, [i for i in whole if i != lost], whole[lost:], whole[:lost], whole[::-1])
        )

    def place(self) -> Rule:
        """An index that depends on another."""
        r, n = self.random, self.size
        distance = r.randrange(n)
        return r.choice(
            (
                lambda i: b.num(i),
                lambda i: b.num(i),
                lambda i: b.num((i + distance) % n),
                lambda i: b.num(distance),
                lambda i: b.num(max(0, i - 1)),
            )
        )

    def number(self, *, after: bool = False) -> Rule:
        """A small number."""
        r, at = self.random, self.place()
        options: list[Rule] = [at, lambda i: b.select(self.var("a", after=after), at(i))]
        if "q" in self.sorts:
            q = self.var("q", after=after)
            options += [lambda i: b.length(q), lambda i: b.ite(b.less(at(i), b.length(q)), b.peek(q, at(i)), b.num(0))]
        if "e" in self.sorts:
            e = self.var("e", after=after)
            options.append(lambda i: b.select(e, b.const(self.letters, self.letters.members[i % 2])))
        if "s" in self.sorts:
            options.append(lambda i: b.size(self.var("s", after=after)))
        return r.choice(options)

    def condition(self, depth: int = 2, *, after: bool = False) -> Rule:
        """A condition on an element."""
        r = self.random
        if depth and r.random() < 0.5:
            one, two = self.condition(depth - 1, after=after), self.condition(depth - 1, after=after)
            match r.randrange(5):
                case 0:
                    return lambda i: b.and_((one(i), two(i)))
                case 1:
                    return lambda i: b.or_((one(i), two(i)))
                case 2:
                    return lambda i: b.implies(one(i), two(i))
                case 3:
                    whole = self.every(depth - 1, after=after)
                    return lambda i: whole
                case _:
                    return lambda i: b.not_(one(i))
        x, y, at = self.number(after=after), self.number(after=after), self.place()
        options: list[Rule] = [
            lambda i: b.eq(x(i), y(i)),
            lambda i: b.less(x(i), y(i)),
            lambda i: b.less_eq(x(i), y(i)),
        ]
        if "f" in self.sorts:
            options.append(lambda i: b.select(self.var("f", after=after), at(i)))
        if "s" in self.sorts:
            options.append(lambda i: b.member(self.var("s", after=after), at(i)))
        if "q" in self.sorts:
            q = self.var("q", after=after)
            options.append(lambda i: b.and_((b.less(at(i), b.length(q)), b.eq(b.peek(q, at(i)), x(i)))))
        return r.choice(options)

    def every(self, depth: int = 2, *, after: bool = False) -> Expr:
        """A condition on several elements: of all, of some, or on how many there are."""
        r, one, among = self.random, self.condition(depth, after=after), self.chosen()
        match r.randrange(4):
            case 0:
                return b.and_(one(i) for i in among)
            case 1:
                return b.or_(one(i) for i in among)
            case 2:
                two = self.condition(1, after=after)
                return b.and_(c for i in among for c in (one(i), two(i)))
            case _:
                total: Expr = b.num(0)
                for i in among:
                    total = b.add(total, b.ite(one(i), b.num(1), b.num(0)))
                return b.less_eq(total, b.num(r.randrange(3)))

    def update(self, p: int, name: str) -> Rule:
        """A new value of a variable, by the parameter, which `p` numbers."""
        old = self.var(name)
        one, x, at = self.condition(1), self.number(), self.place()
        match name:
            case "a" | "e":
                assert isinstance(old.sort, ArraySort)
                top = old.sort.element.hi + 1 if isinstance(old.sort.element, RangeSort) else 0
                key: Rule = at if name == "a" else lambda i: b.const(self.letters, self.letters.members[i % 2])
                kept = self.random.random() < 0.5
                return lambda i: b.store(
                    old,
                    key(i),
                    b.mod(
                        b.add(b.select(old, key(i)) if kept else x(i), b.ite(one(i), b.num(1), b.num(0))), b.num(top)
                    ),
                )
            case "f":
                if self.random.random() < 0.3:
                    assert isinstance(old.sort, ArraySort)
                    sort = old.sort
                    return lambda i: b.make_array(sort, [one(k) for k in range(self.size)])
                return lambda i: b.store(old, at(i), one(i))
            case "s":
                return lambda i: b.ite(one(i), b.insert(old, at(i)), b.remove(old, at(i)))
            case _:
                return lambda i: b.ite(b.less(b.length(old), b.num(MOST)), b.push(old, at(i)), b.pop(old))

    def action(self, name: str) -> Action:
        """An action with a parameter, or two."""
        r = self.random
        guards = [self.condition() if r.random() < 0.7 else _same(self.every()) for _ in range(r.choice((1, 1, 2)))]
        written = r.sample(list(self.sorts), r.choice((1, 1, 2)))
        shared = self.condition(1) if r.random() < 0.5 else None
        updates = []
        for variable in written:
            rule = self.update(0, variable)
            if shared is not None:
                rule = _under(shared, rule, self.var(variable))
            updates.append((variable, rule))
        pairs = r.random() < 0.3
        whole = range(self.size)
        keys: list[tuple[int, ...]] = [(i, j) for i in whole for j in whole if i != j]
        made = []
        for key in keys if pairs else [(i,) for i in self.chosen()]:
            i = key[-1]
            args = tuple(zip(("p", "o"), key, strict=False))
            guard = tuple(Conjunct(g(i), "", None) for g in guards)
            picks = (("k", key[1]),) if pairs and len(name) > 1 else ()
            terms = tuple((v, rule(i)) for v, rule in updates)
            made.append(Instance(name, args[:1] if picks else args, picks, guard, terms))
        parameters = tuple(n for n, _ in made[0].args) if made else ()
        return Action(name, parameters, r.choice(list(Fairness)), tuple(made))

    def formula(self) -> Formula:
        """A temporal formula for several elements."""
        one, two, among = self.condition(1), self.condition(1), self.chosen()
        kind = self.random.randrange(4)

        def of(i: int) -> Formula:
            match kind:
                case 0:
                    return LeadsTo(Atom(one(i)), Atom(two(i)))
                case 1:
                    return Always(Eventually(Atom(one(i))))
                case 2:
                    return Eventually(Always(Atom(two(i))))
                case _:
                    return Recurs(one(i))

        return AndF(tuple(of(i) for i in among)) if len(among) > 1 else of(0)


def _same(term: Expr) -> Rule:
    return lambda i: term


def _under(condition: Rule, rule: Rule, old: Expr) -> Rule:
    return lambda i: b.ite(condition(i), rule(i), old)


def family_system(random: Random, *, temporal: bool = False) -> System:
    """A system of families, with a property of each kind."""
    draw = Family(random)
    first = {"a": (0,) * draw.size, "f": (False,) * draw.size, "s": frozenset(), "q": (), "e": (0, 0)}
    variables = tuple(Variable(n, sort, (first[n],)) for n, sort in draw.sorts.items())
    actions = tuple(draw.action(n) for n in ("u", "v", "ww")[: random.choice((2, 3))])
    properties = [
        Property("inv", Kind.INVARIANT, draw.every()),
        Property("met", Kind.REACHABLE, draw.every()),
        Property("step", Kind.STEP, b.implies(draw.every(1), draw.every(1, after=True))),
        Property("stuck", Kind.DEADLOCK, b.TRUE),
    ]
    if temporal:
        properties = [Property("live", Kind.TEMPORAL, b.TRUE, formula=draw.formula())]
    return System("random", variables, actions, tuple(properties))
