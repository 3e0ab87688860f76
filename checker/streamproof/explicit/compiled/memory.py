"""The known states in memory: hash table, log, predecessors, and the control block of compiled code.

Several tables, each with its share of the states, can share one log. A `Worker` is the share of one thread: a table, and the
buffers and counters of its search. Memory grows without moving: it is reserved address space, with pages allocated on first
touch (`Reserve`). A helper thread (`Prefault`) touches pages ahead of a search with one worker: the operating system clears a
page when it is first touched, which takes up to a third of the time of a search, and another processor can do that.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from streamproof.base.errors import SystemFailure, TooLarge
from streamproof.base.options import either
from streamproof.explicit import kernel_compiler
from streamproof.explicit.compiled import search_kernels
from streamproof.explicit.compiled.search_kernels import RECENT_STATES
from streamproof.explicit.compiled.steps import StepCounters
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.level_search import Budget
from streamproof.explicit.native_code import Module, build
from streamproof.interrupts import abruptly

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
LEAST = 1 << 24
"""Smallest useful reservation, in bytes."""
APART = 128
"""Size of two adjacent cache lines in bytes; processors fetch them together."""


class Reserve:
    """Zeroed memory of up to `size` bytes; untouched pages are not allocated. Raises `SystemFailure` if none is available."""

    def __init__(self, size: int, *, huge: bool = False) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        while True:
            try:
                self._map = mmap.mmap(-1, size, flags=flags)
                break
            except OSError as error:
                # Under a limit on address space (ulimit -v), try smaller sizes.
                size //= 2
                if size < LEAST:
                    raise SystemFailure(
                        f"no memory: {error}", remedy="raise the limit on address space (ulimit -v)"
                    ) from None
        self.size = size
        if huge:
            with suppress(OSError, AttributeError):
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self._anchor: Any = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)

    def bytes(self, start: int, end: int) -> memoryview:
        """The bytes from `start` to `end`; release the view before `close`."""
        return memoryview(self._map)[start:end]

    def array(self, kind: Any, count: int) -> Any:
        """The first `count` elements as a NumPy array of type `kind`, which keeps the memory alive."""
        import numpy as np

        return np.frombuffer(self._map, dtype=kind, count=count)

    def close(self) -> None:
        """Free the memory."""
        self._anchor = None
        with suppress(BufferError):
            self._map.close()


class FileReserve(Reserve):
    """The same in a file without a name in a folder: its pages can be given back, and are read again when they are used."""

    def __init__(self, folder: Path, size: int) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
            self._file = os.dup(file.fileno())
        self.size = size
        self._anchor = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)

    def ensure(self, size: int) -> bool:
        """Take room on the disk for the first `size` bytes: a page that cannot be written would end the process."""
        with suppress(OSError):
            os.posix_fallocate(self._file, 0, size)
            return size <= self.size
        return False

    def drop(self) -> None:
        """Give the pages back."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Free the memory and the room on the disk."""
        super().close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def give_back() -> None:
    """Return freed memory from the C library to the operating system (`malloc_trim`), where supported."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class WordBlock:
    """A fixed array of 64-bit words shared by compiled code and Python.

    Aligned to its own cache lines, against false sharing between threads.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._memory = (ctypes.c_char * (8 * len(values) + 2 * APART))()
        begin = -ctypes.addressof(self._memory) % APART
        self._words = (ctypes.c_uint64 * max(len(values), 1)).from_buffer(self._memory, begin)
        self._words[: len(values)] = list(values)
        self.address = ctypes.addressof(self._words)

    def __getitem__(self, at: int) -> int:
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        self._words[at] = value

    def all(self) -> list[int]:
        """All words."""
        return list(self._words)

    def fill(self, values: Sequence[int]) -> None:
        """Replace all words."""
        self._words[: len(values)] = list(values)

    def slice(self, start: int, end: int) -> list[int]:
        """The words from `start` to `end`."""
        return self._words[start:end]


PIECE = 1 << 21
"""Bytes faulted in at a time: a large page."""
AHEAD_LEAST, AHEAD_MOST = PIECE, 1 << 25
"""Least and largest number of bytes faulted in ahead of sequential writes."""
SHARE = 2
"""Share of the memory limit above which no memory is faulted in."""
_POPULATE_WRITE = 23
"""``MADV_POPULATE_WRITE`` of Linux 5.14 and later."""


class Prefault:
    """Repeatedly faults in the memory returned by `coming`: pairs of an address and a size in bytes. Call `stop` before that
    memory is freed."""

    def __init__(self, coming: Callable[[], Iterable[tuple[int, int]]], budget: Budget) -> None:
        self._coming = coming
        self._budget = budget
        self._over = threading.Event()
        self._ready: dict[int, int] = {}
        self._thread: threading.Thread | None = None
        if sys.platform == "linux":
            self._advise = ctypes.CDLL(None).madvise
            self._advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            self._thread = threading.Thread(target=self._run, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                self._thread = None  # thread limit reached: the search faults in its memory itself

    def stop(self) -> None:
        """Ends the thread."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while True:
                for address, end in self._coming():
                    self._touch(address, end)
                if self._over.wait(self._budget.tuning.prefault_pause):
                    return
        except SystemFailure:
            return  # harmless: pages are then allocated on first touch

    def _touch(self, address: int, end: int) -> None:
        """Fault in the memory at `address` up to byte `end`, beginning after the bytes already done."""
        at = self._ready.get(address, 0)
        while at + PIECE <= end and not self._over.is_set():
            if not self._budget.allows((self._budget.max_bytes or 0) // SHARE):
                raise SystemFailure("no memory to spare")
            if self._advise(address + at, PIECE, _POPULATE_WRITE):
                raise SystemFailure("the system does not support MADV_POPULATE_WRITE")
            at = self._ready[address] = at + PIECE


DOUBLING = 1 << 24
"""Number of entries up to which the table is doubled; then it is increased by half."""
LOAD = 0.75
"""Load factor above which the table grows."""
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
            with abruptly():
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
            **self._first(),
        )

    def _first(self) -> dict[str, int]:
        """The size of the first table."""
        capacity = self._budget.tuning.first_capacity
        return {"CAPACITY": capacity, "ROOM": int(capacity * LOAD)}

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
            remedy = either("raise --memory", "choose smaller parameters")
            raise TooLarge(f"{states:,} states exceed the memory limit of this run", remedy=remedy)

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
        self.set(TABLE=self._entries.address, COUNT=0, **self._first())
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

    def coming(self) -> list[tuple[int, int]]:
        """The memory that the search will write next: pairs of an address and a size in bytes.

        Twice the used part of the log, within limits; the whole table, and, when it is half full, its size after growing.
        """
        count, capacity, room = self.count, self.value("CAPACITY"), max(1, self.value("ROOM"))
        wanted = capacity * 2 if capacity < DOUBLING else capacity // 2 * 3
        entries = capacity + max(0, min(wanted - capacity, (wanted - capacity) * (2 * count - room) // room))
        found = [(self._entries.address, min(8 * entries, self._entries.size))]
        for reserve, size in ((self._log, self.stored_size(0)), (self._parents, self.stored_size(1))):
            used = count * size
            found.append((reserve.address, min(used + max(AHEAD_LEAST, min(used, AHEAD_MOST)), reserve.size)))
        return found

    def make_room(self, more: int, fixed: Fixed) -> bool:
        """Grow until `more` further states fit; returns False at the memory limit."""
        needed, capacity = self.count + more, self.value("CAPACITY")
        if needed <= self.value("ROOM"):
            return True
        if self.in_files:
            self.shed()
        wanted = capacity
        while needed > wanted * LOAD:
            wanted = wanted * 2 if wanted < DOUBLING else wanted // 2 * 3
        for size, load in (
            (wanted, LOAD),
            *((int(capacity * factor), load) for factor, load in self._budget.tuning.frugal),
        ):
            if needed <= int(size * load) and self._affordable(size, load, capacity):
                if not self._room_in((self._log, self._parents), int(size * load)):
                    return False
                if size > capacity:
                    fixed.function("grow", 4)(self.control.address, capacity, size, SLACK)
                self.set(ROOM=int(size * load))
                return True
        return not self.in_files and self.shed() and self.make_room(more, fixed)

    @property
    def in_files(self) -> bool:
        """Whether the log and the predecessors are in files."""
        return isinstance(self._log, FileReserve)

    @property
    def held(self) -> int:
        """Memory of the states, in bytes."""
        return 8 * self.slots + (0 if self.in_files else (8 * self._words + 4) * self.count)

    def shed(self) -> bool:
        """Move the log and the predecessors to files in the folder of the options, or give back their pages: no lookup of a
        state of one word reads them. Returns False if that is not possible."""
        folder = self._budget.options.spill
        if folder is None or self._words > 1 or self._lent:
            return False
        if not self.in_files:
            try:
                files = (self._log, self._parents)
                moved = tuple(FileReserve(Path(folder), reserve.size) for reserve in files)
            except OSError:
                return False
            if not self._room_in(moved, self.value("ROOM")):
                for reserve in moved:
                    reserve.close()
                return False
            for kind, (reserve, old) in enumerate(zip(moved, files, strict=True)):
                used = self.count * self.stored_size(kind)
                for first in range(0, used, PIECE):
                    last = min(first + PIECE, used)
                    with reserve.bytes(first, last) as to, old.bytes(first, last) as source:
                        to[:] = source
                    reserve.drop()
                old.close()
            self._log, self._parents = moved
            self.set(LOG=self._log.address, PARENTS=self._parents.address)
        for kept in (self._log, self._parents):
            assert isinstance(kept, FileReserve)
            kept.drop()
        return True

    def _room_in(self, files: Sequence[Reserve], states: int) -> bool:
        """Whether the disk has room for this number of states, if they are in files."""
        sizes = [self.stored_size(kind) * states for kind in range(len(files))]
        return all(not isinstance(f, FileReserve) or f.ensure(size) for f, size in zip(files, sizes, strict=True))

    def _affordable(self, wanted: int, load: float, capacity: int) -> bool:
        stored = 0 if self.in_files else 8 * self._words + 4
        extra = 8 * (wanted - capacity) + int(wanted * load - self.count) * stored
        extra += AHEAD_MOST if self.in_files else 0  # for pages of the files in use
        fits = 8 * (wanted + SLACK) <= self._entries.size and 8 * self._words * wanted * self._shares <= self._log.size
        return fits and self._budget.allows(extra * self._shares)

    def close(self) -> None:
        """Free the memory."""
        self._entries.close()
        self._scratch.close()
        if not self._lent:
            self._log.close()
            self._parents.close()


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
        tuning = budget.tuning
        room = tuning.batch_successors + degree
        sizes = {
            "OUT": 8 * words * room,
            "ACTIONS": 2 * room,
            "ENDS": 4 * tuning.batch_states,
            "HASHES": 8 * room,
            "KEPT": 8 * room,
        }
        sizes["RECENT"] = 8 * words * RECENT_STATES
        self._buffers = {name: Reserve(size + (1 << 16)) for name, size in sizes.items()}
        self.table.set(
            **{name: buffer.address for name, buffer in self._buffers.items()},
            FACTS=self.facts.address,
            EXPAND=expand,
            NEWS=self.news.address,
            BATCH=max(1, min(tuning.batch_states, tuning.batch_successors // degree)),
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
        for buffer in self._buffers.values():
            buffer.close()
