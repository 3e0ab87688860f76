"""Reduced searches beside the full search: the bundled models to which `--symmetry` or `--por` applies.

    python benchmarks/reductions.py [--runs 3] [--sizes small,medium] [--only PART] [--most STATES]

A row is one model at one size, with the properties that the reduction supports. Printed are the states of both searches, the
least processor time of the whole process for each, in turn, and their quotient (above 1: the reduction is slower). A first
run of each fills the cache of compiled code and is not counted. *Not needed*: the full search finished first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamproof import model_registry
from streamproof.base.seals import CACHE_VARIABLE
from streamproof.explicit.reductions.renaming import symmetric_sorts
from streamproof.system.model import Kind

ENDLESS = {"--symmetry": (Kind.TERMINATION, Kind.TEMPORAL), "--por": (Kind.TEMPORAL,)}
"""The kinds of property to which a reduction does not apply."""


def check(words: Sequence[str], folder: str) -> tuple[float, dict[str, Any]]:
    """One check in a new process: its processor time in seconds, and its JSON; without a result an empty one."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment[CACHE_VARIABLE] = str(Path(folder) / "cache")
    command = [sys.executable, "-m", "streamproof", "check", *words, "-q", "--json", "-"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, json.loads(done.stdout) if done.stdout.startswith("{") else {}


def supported(name: str, option: str) -> list[str]:
    """The words that select the properties to which a reduction applies; none if there is no such property."""
    system = model_registry.find(name).spec.system()
    if option == "--symmetry" and not symmetric_sorts(system):
        return []
    chosen = [p.name for p in system.properties if p.kind not in ENDLESS[option]]
    everything = len(chosen) == len(system.properties)
    return ["--property=" + name for name in chosen] if chosen and not everything else [""] * bool(chosen)


def main() -> None:
    """Print a line for each model, size and reduction that applies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sizes", default="small,medium,")
    parser.add_argument("--only", default="")
    parser.add_argument("--option", default="")
    parser.add_argument("--most", type=int, default=4_000_000, help="states of the largest full search")
    given = parser.parse_args()
    print("model | size | option | states, full | reduced | s, full | reduced | reduced / full")
    with tempfile.TemporaryDirectory() as folder:
        for name in model_registry.bundled():
            for option in ENDLESS if given.only in name else ():
                words = supported(name, option)
                for size in given.sizes.split(",") if words and given.option in option else ():
                    row(name, size, option, [word for word in words if word], given, folder)


def row(name: str, size: str, option: str, words: Sequence[str], given: argparse.Namespace, folder: str) -> None:
    """Measure and print one line."""
    full = [name, *(["--size", size] if size else []), *words, "--max-states", str(given.most)]
    _, plain = check(full, folder)
    if not plain or plain["states"]["queue"]:
        print(f"{name} | {size} | {option} | {'above the limit' if plain else 'no such size'}", flush=True)
        return
    _, reduced = check([*full, option], folder)
    found = reduced["reductions"][0]
    if not found["applied"] and not found["not_needed"]:
        print(f"{name} | {size} | {option} | does not apply: {found['because']}", flush=True)
        return
    runs = [(check(full, folder)[0], check([*full, option], folder)[0]) for _ in range(given.runs)]
    one, other = (min(column) for column in zip(*runs, strict=True))
    left = f"{reduced['states']['distinct']:,}" if found["applied"] else "not needed"
    print(
        f"{name} | {size} | {option} | {plain['states']['distinct']:,} | {left} | {one:.2f} | {other:.2f} | "
        f"{other / one:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
