"""The state graph in files: arrays mapped from files without names."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from streamproof.base.errors import TooLarge
from streamproof.base.records import dataclass
from streamproof.system.expr import Expr

Array = npt.NDArray[Any]


class MappedFiles:
    """Arrays in files without names in one folder. Their pages are given back whenever the memory limit is reached."""

    def __init__(self, folder: Path, fits: Callable[[], bool], others: MappedFiles | None = None) -> None:
        """`fits`: whether the process is within its memory limit."""
        self._folder, self._fits, self._others = folder, fits, others
        self._maps: list[mmap.mmap] = []

    def array(self, kind: Any, count: int) -> Array:
        """A new array of zeros. Raises `TooLarge` if the disk has no room for it."""
        size = max(1, count) * np.dtype(kind).itemsize
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                # The room is taken now: a full disk would end the process when a page is written.
                os.posix_fallocate(file.fileno(), 0, size)
                self._maps.append(mmap.mmap(file.fileno(), size))
        except OSError as error:
            raise TooLarge(
                f"the state graph needs {size / 2**30:.1f} GiB more in {self._folder}: {error.strerror or error}",
                remedy="name a folder with free space with --spill DIR",
            ) from None
        return np.frombuffer(self._maps[-1], dtype=kind, count=count)

    def more(self) -> MappedFiles:
        """Further arrays of another lifetime, which are given back with these."""
        return MappedFiles(self._folder, self._fits, self)

    def pulse(self) -> None:
        """Called repeatedly: keeps the memory of the process within its limit."""
        if not self._fits():
            self._give_back()

    def _give_back(self) -> None:
        for one in self._maps:
            one.madvise(mmap.MADV_DONTNEED)
        if self._others is not None:
            self._others._give_back()


@contextmanager
def cycle_beyond_reach(kind: str) -> Iterator[None]:
    """Inside, one process looks for a cycle that several have found; a `TooLarge` says so."""
    try:
        yield
    except TooLarge as limit:
        message = f"there is a {kind}, but no counterexample, which one process looks for: {limit.message}"
        raise TooLarge(message, remedy=limit.remedy) from None


@dataclass(frozen=True)
class StoredGraph:
    """As `StateGraph`, in files: all reachable states, numbered in the order of discovery, and all steps between them."""

    files: MappedFiles
    initial: int
    """Number of initial states; they come first."""
    offsets: Array
    targets: Array
    labels: Array
    """Per step, the position of its instance in `System.instances`."""
    valuations: Callable[[Sequence[Expr]], Array]
    """Per state, a number whose bits are the values of up to 16 conditions on one state."""
    changes: Callable[[Sequence[Expr]], Array]
    """Per step, a number whose bits are the values of up to 16 conditions on it; 0 for steps that change nothing."""

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """Number of steps, self-loops and parallel steps included."""
        return len(self.targets)


@dataclass(frozen=True)
class Readers:
    """The readers of the nodes, and what a fair cycle owes. Tables have a column for each valuation of a state."""

    after: Array
    """Shape (readers, readers): which reader may follow which."""
    reads: Array
    """Whether a reader reads states of a valuation."""
    accepts: Array
    """Which acceptance sets, one bit each, are met there."""
    valuations: Array
    """Shape (states,)."""
    sets: int
    """Number of acceptance sets."""
    stays: bool = True
    """Whether every state may stutter; if so, the steps that change nothing are no others."""


@dataclass(frozen=True)
class Constraints:
    """Fairness constraints: of each the numbers of its instances, and whether it is weak."""

    instances: int
    """Number of instances of actions."""
    numbers: Sequence[Array]
    weak: Sequence[bool]

    def taken(self, labels: Array, constraint: int) -> Array:
        """Which steps of instances take a constraint."""
        return np.isin(labels, self.numbers[constraint])


class CycleFinder(Protocol):
    """Several processes that find out whether there are cycles."""

    def has_cycle(self, instances: int) -> bool:
        """Whether there is a cycle of steps."""

    def accepts(
        self,
        members: Readers,
        constraints: Constraints,
        every: Readers,
        places: Sequence[int],
        starts: Sequence[int],
        conditions: Sequence[Expr],
    ) -> bool:
        """Whether a fair cycle that `members` read can be reached. `every` reads the behaviours up to it, from one of
        `starts` on; `places` has for each of them its place in `members`, or -1. `conditions`: those of valuations."""
