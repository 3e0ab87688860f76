"""``check --watch``: the check again whenever a Python file beside the model is saved."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from streamproof.base.errors import UsageError
from streamproof.base.text import visible

PAUSE = 0.2
"""Interval between two looks at the files, in seconds."""
Seen = dict[str, tuple[int, int]]
"""The time of the last change and the size of files by name."""


def watch(model: str, words: list[str]) -> NoReturn:
    """Runs the program with `words` now, and after each change of a Python file in the folder of the model, until Ctrl-C.

    Each run is a process of its own, which reads the files again. Raises `UsageError` for a model without a file.
    """
    place = model if model.endswith(".py") else model.rpartition(":")[0]
    if not place.endswith(".py"):
        raise UsageError("--watch needs the file of a model", remedy="give file.py, or file.py:Name")
    folder, run = Path(place).parent, [sys.executable, "-P", "-m", "streamproof", *words]
    while True:
        seen = _seen(folder)
        if not (folder / Path(place).name).is_file():
            raise UsageError(f"{place} does not exist", remedy="check the path")
        subprocess.run(run, check=False)
        sys.stderr.write(f"streamproof: watching {visible(str(folder))}; Ctrl-C ends\n")
        sys.stderr.flush()
        while _seen(folder) == seen:
            time.sleep(PAUSE)


def _seen(folder: Path) -> Seen:
    """The Python files of a folder."""
    found: Seen = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                about = entry.stat()
                found[entry.name] = about.st_mtime_ns, about.st_size
    return found
