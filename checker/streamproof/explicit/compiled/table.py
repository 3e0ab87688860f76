"""The known states in memory: hash table, log, predecessors, and the control block of compiled code.

Several tables, each with its share of the states, can share one log. A `Worker` is the share of one thread: a table, and the
buffers and counters of its search.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from streamproof.explicit import kernel_compiler
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.memory import AHEAD_LEAST, AHEAD_MOST, Reserve, WordBlock
from streamproof.explicit.compiled.search_kernels import RECENT_STATES
from streamproof.explicit.compiled.steps import StepCounters
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.level_search import Budget
from streamproof.explicit.native_code import Module, build
from streamproof.system.errors import TooLarge

FIRST_CAPACITY = 1 << 20
"""Number of entries of the first table; doubled up to `DOUBLING`, then increased by half."""
DOUBLING = 1 << 24
LOAD = 0.75
"""Load factor above which the table grows."""
FRUGAL = ((1.25, LOAD), (1.125, LOAD), (1.0, 0.8), (1.125, 0.85), (1.0, 0.85), (1.0625, 0.9), (1.0, 0.9))
"""Growth and load factors that are tried if memory does not suffice, best first; higher load factors are slower."""
SLACK = 1 << 18
"""Number of slack slots behind the table's end: more than the overflow of one batch."""

_AT = {name: at for at, name in enumerate(search_kernels.CONTROL)}


class Fixed:
    """The kernels for states of `words` words in `shards` tables; a group is compiled on first use."""

    def __init__(self, words: int, shards: int) -> None:
        self._constants = search_kernels.constants(words, shards)
        self._modules: dict[str, Module] = {}

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """The kernel `name` with `arguments` words as parameters."""
        if name not in self._modules:
            group = next(g for g in search_kernels.GROUPS if name in g)
            inside = [k for k in search_kernels.KERNELS if k.__name__.startswith("_") or k.__name__ in group]
            key = f"{group} {self._constants} {_written()}"
            module = build(lambda: translate(inside, self._constants), group, optimise=True, key=key)
            self._modules |= dict.fromkeys(group, module)
        return self._modules[name].function(name, arguments)


@cache
def _written() -> str:
    """A digest of the source of the kernels and of their compiler: it identifies the compiled code."""
    found = sha256()
    for source in (search_kernels.__file__, kernel_compiler.__file__):
        found.update(Path(source).read_bytes())
    return found.hexdigest()


@cache
def fixed_code(words: int, shards: int = 1) -> Fixed:
    """The kernels for states of `words` words in `shards` tables."""
    return Fixed(words, shards)


class StateTable:
    """The known states: hash table, log, predecessors, and the control block of compiled code."""

    def __init__(self, words: int, budget: Budget, shares: int = 1, log_of: StateTable | None = None) -> None:
        self._words = words
        self._budget = budget
        self._shares = shares
        self._lent = log_of is not None
        most = budget.max_bytes or (1 << 36)
        self._entries = Reserve(most, huge=True)
        self._log: Reserve = Reserve(most, huge=True) if log_of is None else log_of._log
        self._parents: Reserve = Reserve(most // 2, huge=True) if log_of is None else log_of._parents
        self._scratch = Reserve(8 * (1 << 16))
        self.control = WordBlock([0] * len(search_kernels.CONTROL))
        self.set(
            TABLE=self._entries.address,
            LOG=self._log.address,
            PARENTS=self._parents.address,
            SCRATCH=self._scratch.address,
            CAPACITY=FIRST_CAPACITY,
            ROOM=int(FIRST_CAPACITY * LOAD),
        )

    def set(self, **values: int) -> None:
        """Write words of the control block, by name."""
        for name, value in values.items():
            self.control[_AT[name]] = value

    def value(self, name: str) -> int:
        """A word of the control block, by name."""
        return self.control[_AT[name]]

    @property
    def slots(self) -> int:
        """Number of slots, the slack included."""
        return self.value("CAPACITY") + SLACK

    @property
    def count(self) -> int:
        """Number of distinct states."""
        return self.value("COUNT")

    @property
    def next(self) -> int:
        """Number of the first unexpanded state."""
        return self.value("NEXT")

    @property
    def last(self) -> int:
        """End of the level that is being expanded."""
        return self.value("LAST")

    def stored_size(self, kind: int) -> int:
        """Bytes per state in the log (kind 0) or in the predecessors (kind 1)."""
        return 8 * self._words if kind == 0 else 4

    def stored(self, kind: int, first: int, last: int) -> memoryview:
        """The bytes of the states from `first` to `last` there; release the view before `close`."""
        size = self.stored_size(kind)
        return (self._log, self._parents)[kind].bytes(first * size, last * size)

    def reserve(self, states: int, fixed: Fixed) -> None:
        """Make room for `states` states in an empty table. Raises `TooLarge` if they exceed the memory limit."""
        if not self.make_room(states, fixed):
            raise TooLarge(f"{states:,} states exceed the memory limit of this run", remedy="raise --memory")

    def enter(self, states: int, expanded: int, fixed: Fixed) -> None:
        """Insert the first `states` states of the log, all distinct, and mark the first `expanded` as expanded."""
        fixed.function("index", 3)(self.control.address, 0, states)
        self.set(COUNT=states, NEXT=expanded)

    def forget_entries(self) -> None:
        """Free the memory of the entries; the log stays, and no state can be looked up."""
        self._entries.close()
        self.set(CAPACITY=0, ROOM=0)

    def enter_again(self, fixed: Fixed) -> None:
        """Rebuild the entries after `forget_entries`. Raises `TooLarge` if they exceed the memory limit."""
        states, expanded = self.count, self.next
        self._entries = Reserve(self._budget.max_bytes or (1 << 36), huge=True)
        self.set(TABLE=self._entries.address, CAPACITY=FIRST_CAPACITY, ROOM=int(FIRST_CAPACITY * LOAD), COUNT=0)
        self.reserve(states, fixed)
        self.enter(states, expanded, fixed)

    def address(self, number: int) -> int:
        """Address of a state in the log."""
        return self._log.address + 8 * self._words * number

    def words(self, number: int) -> tuple[int, ...]:
        """The words of a state."""
        return tuple(self.stored(0, number, number + 1).cast("Q"))

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""
        found = int.from_bytes(self._parents.bytes(4 * number, 4 * number + 4), "little")
        return -1 if found == 0xFFFFFFFF else found

    def coming(self, least: int = AHEAD_LEAST, most: int = AHEAD_MOST) -> list[tuple[int, int]]:
        """The memory that the search will write next: pairs of an address and a size in bytes.

        Twice the used part of the log, within limits; the whole table, and, when it is half full, its size after growing.
        """
        count, capacity, room = self.count, self.value("CAPACITY"), max(1, self.value("ROOM"))
        wanted = capacity * 2 if capacity < DOUBLING else capacity // 2 * 3
        entries = capacity + max(0, min(wanted - capacity, (wanted - capacity) * (2 * count - room) // room))
        found = [(self._entries.address, min(8 * entries, self._entries.size))]
        for reserve, size in ((self._log, self.stored_size(0)), (self._parents, self.stored_size(1))):
            used = count * size
            found.append((reserve.address, min(used + max(least, min(used, most)), reserve.size)))
        return found

    def make_room(self, more: int, fixed: Fixed) -> bool:
        """Grow until `more` further states fit; returns False at the memory limit."""
        needed, capacity = self.count + more, self.value("CAPACITY")
        if needed <= self.value("ROOM"):
            return True
        wanted = capacity
        while needed > wanted * LOAD:
            wanted = wanted * 2 if wanted < DOUBLING else wanted // 2 * 3
        for size, load in ((wanted, LOAD), *((int(capacity * factor), load) for factor, load in FRUGAL)):
            if needed <= int(size * load) and self._affordable(size, load, capacity):
                if size > capacity:
                    fixed.function("grow", 4)(self.control.address, capacity, size, SLACK)
                self.set(ROOM=int(size * load))
                return True
        return False

    def _affordable(self, wanted: int, load: float, capacity: int) -> bool:
        extra = 8 * (wanted - capacity) + int(wanted * load - self.count) * (8 * self._words + 4)
        fits = 8 * (wanted + SLACK) <= self._entries.size and 8 * self._words * wanted * self._shares <= self._log.size
        return fits and self._budget.allows(extra * self._shares)

    def close(self) -> None:
        """Free the memory."""
        self._entries.close()
        self._scratch.close()
        if not self._lent:
            self._log.close()
            self._parents.close()


OUT_SPACE = 1 << 16
"""Largest number of successors of one batch."""
BATCH = 1024
"""Largest number of states of one batch."""


class Worker:
    """A table and the buffers for expanding states: alone, or one of several that share the log of `lender`."""

    def __init__(
        self,
        words: int,
        budget: Budget,
        facts: StepCounters,
        expand: int,
        *,
        me: int = 0,
        of: int = 1,
        lender: StateTable | None = None,
    ) -> None:
        degree = max(1, facts.instances)
        self.table = StateTable(words, budget, of, lender)
        self.facts = WordBlock(facts.fresh())
        self.news = WordBlock([0] * facts.instances)
        self._parts = [
            Reserve((OUT_SPACE + degree) * 8 * words + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 2 + (1 << 16)),
            Reserve(BATCH * 4 + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 8 + (1 << 16)),
            Reserve((OUT_SPACE + degree) * 8 + (1 << 16)),
            Reserve(RECENT_STATES * 8 * words),
        ]
        out, actions, ends, hashes, kept, recent = self._parts
        self.table.set(
            OUT=out.address,
            ACTIONS=actions.address,
            ENDS=ends.address,
            HASHES=hashes.address,
            KEPT=kept.address,
            RECENT=recent.address,
            FACTS=self.facts.address,
            EXPAND=expand,
            NEWS=self.news.address,
            BATCH=max(1, min(BATCH, OUT_SPACE // degree)),
            DEGREE=degree,
            ME=me,
        )

    @property
    def control(self) -> int:
        """Address of the control block."""
        return self.table.control.address

    @property
    def batch_room(self) -> int:
        """Largest number of successors of one batch."""
        return self.table.value("BATCH") * self.table.value("DEGREE")

    def close(self) -> None:
        """Free the memory."""
        self.table.close()
        for part in self._parts:
            part.close()
