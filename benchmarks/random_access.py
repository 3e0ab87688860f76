"""Rate of random reads of this machine with prefetching: the upper limit of any hash table."""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from streamproof.explicit.compiled.memory import Reserve
from streamproof.explicit.compiled.search_kernels import _mix
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.native_code import build

if TYPE_CHECKING:
    from streamproof.explicit.kernel_builtins import mulhi, prefetch, word, words


def probe(table: words, capacity: word, first: word, last: word) -> word:
    """Read ``last - first`` words at positions from a hashed counter; returns their sum."""
    total = 0
    for i in range(first, last):
        prefetch(table, mulhi(_mix(i + 33), capacity))
        total += table[mulhi(_mix(i + 1), capacity)]
    return total


def rates(mebibytes: int, *, runs: int = 3, reads: int = 1 << 25) -> float:
    """Reads per second in a table of this size, on one thread: the median of `runs` runs."""
    capacity = mebibytes << 17
    memory = Reserve(mebibytes << 20, huge=True)
    memory.bytes(0, mebibytes << 20)[:] = bytes(mebibytes << 20)
    module = build(translate([_mix, probe], {}), ["probe"], optimise=True)
    function = module.function("probe", 4)
    found = []
    for run in range(runs):
        begun = time.perf_counter()
        function(memory.address, capacity, run * reads, (run + 1) * reads)
        found.append(reads / (time.perf_counter() - begun))
    memory.close()
    return statistics.median(found)


def main() -> None:
    """Print one line per size."""
    for mebibytes in (int(a) for a in sys.argv[1:] or ("16", "64", "256", "1024")):
        print(f"{mebibytes:6} MiB: {rates(mebibytes) / 1e6:6.1f} M reads/s")


if __name__ == "__main__":
    main()
