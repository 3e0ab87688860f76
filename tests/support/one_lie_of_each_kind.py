"""One edit of each kind that a tool for tampered logs makes in a recorded run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any


def outcomes(lies: ModuleType, run: Path) -> list[Any]:
    """The outcome of the middle edit of each kind that fits the run; `lies` is a module of `tools/tampering`."""
    kinds = defaultdict(list)
    for edit in lies.edits(run):
        kinds[edit.kind].append(edit)
    return [lies.outcome(run, edits[len(edits) // 2]) for edits in kinds.values()]
