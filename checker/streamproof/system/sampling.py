"""Random values of sorts, for comparing two forms of a system."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import assert_never

from streamproof.system import sorts
from streamproof.system.model import State

WIDTH = 12
"""Maximum distance of a random number from the end of a half-bounded range, or from 0 in an unbounded one."""


def random_state(given: Sequence[sorts.Sort], chance: Random) -> State:
    """One random value for each of the given sorts."""
    return tuple(random_value(sort, chance) for sort in given)


def random_value(sort: sorts.Sort, chance: Random) -> sorts.Value:
    """A random value of a sort: ends of ranges, absent options and short queues are over-represented."""
    match sort:
        case sorts.BoolSort():
            return chance.random() < 0.5
        case sorts.RangeSort(lo, hi):
            low = max(lo, min(hi, 0) - WIDTH)
            high = min(hi, max(low, 0) + WIDTH if lo < low or hi - lo > 4 * WIDTH else hi)
            return chance.choice([low, high, chance.randint(low, high)])
        case sorts.EnumSort(members):
            return chance.choice(members)
        case sorts.RecordSort(fields):
            return tuple(random_value(s, chance) for _, s in fields)
        case sorts.UnionSort(cases):
            name, payload = chance.choice(cases)
            return (name, random_value(payload, chance))
        case sorts.OptionSort(element):
            none = sorts.is_empty(element) or chance.random() < 0.4
            return None if none else random_value(element, chance)
        case sorts.BagSort(index, capacity=capacity):
            counts = [0] * (size := sorts.cardinality(index))
            for _ in range(chance.randint(0, capacity) if size else 0):
                counts[chance.randrange(size)] += 1
            return tuple(counts)
        case sorts.ArraySort(index, element):
            return tuple(random_value(element, chance) for _ in range(sorts.cardinality(index)))
        case sorts.QueueSort(element, capacity):
            most = 0 if sorts.is_empty(element) else capacity
            return tuple(random_value(element, chance) for _ in range(chance.randint(0, most)))
        case sorts.SetSort(element):
            return frozenset(v for v in sorts.values(element) if chance.random() < 0.5)
        case _:
            assert_never(sort)
