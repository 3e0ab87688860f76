"""Independence of instances, and the instances that can make a condition true.

Two instances *accord* if, wherever both are enabled without evaluation error, each stays enabled after the other and both
orders lead to the same state. Read and write sets decide most pairs; the others are decided by composing their updates. Pairs
that are not proved to accord count as dependent.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.explicit.reductions.equivalence import EffortSpent, Equivalence, TermEffort
from streamproof.explicit.successors import Rule
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import System
from streamproof.system.sorts import Sort
from streamproof.transform.assume import Assuming, Substitution

EFFORT = 150_000
"""Limit on the terms visited for all pairs, and for all instances with atoms: some seconds."""
PAIR_EFFORT = 5_000
"""Limit on the terms visited for one pair."""


class Independence:
    """Dependence relation between the instances of a simplified scalar system, given as `rules`."""

    def __init__(self, system: System, rules: tuple[Rule, ...], equal: Equivalence, limit: int | None = None) -> None:
        """`limit`: a smaller limit on the terms visited; beyond it, `EffortSpent` is raised."""
        self.system, self.rules, self.equal = system, rules, equal
        self.updates = [dict(instance.updates) for instance in system.instances]
        self._place = system.index
        terms = [(*rule.guard, *updates.values()) for rule, updates in zip(rules, self.updates, strict=True)]
        self._writes = [self._bits(updates) for updates in self.updates]
        """Per instance, a bit for each variable it writes."""
        self._reads = [self._bits(e.variables(*some)) for some in terms]
        self._writers = self._by_variable(self._writes)
        """Per variable, a bit for each instance that writes it."""
        self._after = [
            Substitution({b.var(name, self._sort(name)): term for name, term in updates.items()})
            for updates in self.updates
        ]
        """Per instance, the substitution of next-state terms by current-state terms."""
        self._enabled = [Assuming(rule.guard) for rule in rules]
        """Per instance, the simplification of terms under its guard."""
        self._sizes = [sum(1 for _ in e.subterms(*some)) for some in terms]
        """Per instance, the number of terms of its guard and updates."""
        effort = EFFORT if limit is None else min(EFFORT, limit)
        self._ends = effort < EFFORT
        self._pairs, self._enabling = TermEffort(effort), TermEffort(effort)

    def _bits(self, names: Iterable[str]) -> int:
        return sum(1 << self._place[name] for name in names)

    def _by_variable(self, masks: list[int]) -> list[int]:
        found = [0] * len(self._place)
        for number, mask in enumerate(masks):
            for variable in bits(mask):
                found[variable] |= 1 << number
        return found

    def dependent(self) -> tuple[int, ...]:
        """Per instance, a bit for each dependent instance (not proved to accord)."""
        touched = self._by_variable([r | w for r, w in zip(self._reads, self._writes, strict=True)])
        found = [0] * len(self.rules)
        for one in range(len(self.rules)):
            near = 0
            for variable in bits(self._writes[one]):
                near |= touched[variable]
            for variable in bits(self._reads[one]):
                near |= self._writers[variable]
            for other in bits(near >> (one + 1) << (one + 1)):
                if self._is_spent(self._pairs) or not self._accord(one, other):
                    found[one] |= 1 << other
                    found[other] |= 1 << one
        self._is_spent(self._pairs)
        return tuple(found)

    def _is_spent(self, effort: TermEffort) -> bool:
        if effort.left <= 0 and self._ends:
            raise EffortSpent
        return effort.left <= 0

    def enablers(self, term: Expr, positive: bool) -> int:
        """A bit for each instance that may make a term true (`positive`) or false."""
        writers = 0
        for name in e.variables(term):
            writers |= self._writers[self._place[name]]
        wanted = term if positive else b.not_(term)
        size = sum(1 for _ in e.subterms(wanted))
        return sum(1 << number for number in bits(writers) if self._may_make(number, wanted, size))

    def _may_make(self, number: int, wanted: Expr, size: int) -> bool:
        if self._is_spent(self._enabling):
            return True
        self._enabling.left -= size + self._sizes[number]
        after = self._after[number](wanted)
        here = self._enabled[number].fork()
        return here.assume(b.not_(wanted)) is not b.FALSE and here(after) is not b.FALSE

    def _sort(self, name: str) -> Sort:
        return self.system.variables[self._place[name]].sort

    def _accord(self, one: int, other: int) -> bool:
        try:
            self._pairs.spend(self._sizes[one] + self._sizes[other])
            return self._compose(one, other)
        except EffortSpent:
            return False

    def _compose(self, one: int, other: int) -> bool:
        """Whether two instances accord, by composing their updates. Raises `EffortSpent`."""
        rules, updates = (self.rules[one], self.rules[other]), (self.updates[one], self.updates[other])
        after, here = (self._after[one], self._after[other]), self._enabled[one].fork()
        correct = (b.not_(rules[0].faults), b.not_(rules[1].faults))
        for condition in (*rules[1].guard, *correct):
            if here.assume(condition) is b.FALSE:
                return True
        both = b.and_((*rules[0].guard, *rules[1].guard, *correct))
        pairs = [(after[1](b.and_(rules[0].guard)), b.TRUE), (after[0](b.and_(rules[1].guard)), b.TRUE)]
        for name in {**updates[0], **updates[1]}:
            stays = b.var(name, self._sort(name))
            pairs.append((after[0](updates[1].get(name, stays)), after[1](updates[0].get(name, stays))))
        simple = [(here(x), here(y)) for x, y in pairs]
        if any(isinstance(x, e.Const) and isinstance(y, e.Const) and x.value != y.value for x, y in simple):
            return False
        effort = TermEffort(min(PAIR_EFFORT, self._pairs.left))
        given = effort.left
        try:
            return self.equal.difference(simple, both, effort) is None
        finally:
            self._pairs.left -= given - max(0, effort.left)


def bits(mask: int) -> Iterable[int]:
    """The positions of the set bits, from the lowest."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
