"""How long tiny models take from the start of the process to their verdict: bundled models of less than 5,000 states.

Each is checked several times, at its defaults, in a process of its own; the median counts. ``start_up.py MODEL ...`` measures
these only, ``start_up.py --variants`` also the variants of all. A verdict is to be there within 0.3 s, within
0.5 s where there are temporal properties.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from streamproof import registry

TINY = 5_000
"""States that a tiny model has less of."""
RUNS = 9


def check(words: Sequence[str], folder: str) -> tuple[float, int, bool]:
    """One check: its seconds from the start of the process, the states found, and whether those are all."""
    command = [
        sys.executable,
        "-m",
        "streamproof",
        "check",
        *words,
        "--max-states",
        str(TINY),
        "--quiet",
        "--json",
        "-",
    ]
    # As installed: with the byte code of the program at hand.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    states = json.loads(done.stdout)["states"]
    return seconds, states["distinct"], states["queue"] == 0


def every(variants: bool) -> Iterator[tuple[str, ...]]:
    """The words that choose each bundled model, and its variants."""
    for name in registry.bundled():
        yield (name,)
        for variant in registry.find(name).spec.model.variants if variants else ():
            yield (name, "--variant", variant)


def main() -> None:
    """Print a line for each tiny model."""
    given = [(name,) for name in sys.argv[1:] if name != "--variants"]
    with tempfile.TemporaryDirectory() as folder:
        for words in given or every("--variants" in sys.argv):
            _, states, complete = check(words, folder)  # which also leaves byte code behind
            if complete and states < TINY:
                seconds = statistics.median(check(words, folder)[0] for _ in range(RUNS))
                print(f"{seconds * 1000:6.0f} ms {states:6,} states  {' '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
