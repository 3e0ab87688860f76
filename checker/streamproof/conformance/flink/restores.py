"""Restores from checkpoints: which attempts need one, and to which job a line without a job belongs.

"No checkpoint found during restore." names no job. The JobMaster writes it, or "Restoring job ...", when it has built an
execution graph, and when it restarts tasks after the last one of them has ended, before it schedules them in the same step
(`SchedulerBase.restoreState`). So an attempt that is scheduled needs one of these lines since then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from streamproof.conformance.flink.drafts import Draft

NONE: Final = "ckpt.none"
RESTORES: Final = ("ckpt.restore", NONE)
_ENDED: Final = ("FINISHED", "CANCELED", "FAILED")

Line = tuple[int, str, Mapping[str, Any]]
"""A line about a job in the log of one process: its position, its family, its arguments."""


def missing_restores(lines: Iterable[Line]) -> Iterator[tuple[int, int]]:
    """The attempts of a job with checkpoints that are scheduled without a restore: the positions between which it is missing.

    `lines` are those of one job in one process, in their order. Tasks with several attempts at a time are not supported.
    """
    built: dict[str, int] = {}
    ended: dict[tuple[str, str, int], int] = {}
    restored = -1
    for at, family, args in lines:
        if family in RESTORES:
            restored = at
        elif family == "job.graph":
            built[args["graph"]] = at
        elif family == "exec.transition":
            task = (args["graph"], args["vertex"], args["subtask"])
            if args["new"] in _ENDED:
                ended[task] = at
            elif args["new"] == "SCHEDULED":
                since = ended.get(task, built.get(args["graph"]))
                if since is not None and restored < since:
                    yield since, at
                    restored = at  # the others of the same step lack the same line


def place_restores(drafts: Sequence[Draft], jobs: list[str]) -> None:
    """Assigns lines without a job to the only job that lacks one there."""
    unplaced: dict[str, list[int]] = {}
    own: dict[tuple[str, str], list[Line]] = {}
    checkpointed: set[str] = set()
    for at, draft in enumerate(drafts):
        if draft.family == NONE and not jobs[at]:
            unplaced.setdefault(draft.process, []).append(at)
        elif jobs[at]:
            own.setdefault((draft.process, jobs[at]), []).append((at, draft.family, draft.args))
            if draft.family.startswith("ckpt."):
                checkpointed.add(jobs[at])
    if not unplaced:
        return
    lacking = [
        (process, job, since, until)
        for (process, job), lines in own.items()
        if process in unplaced and job in checkpointed
        for since, until in missing_restores(lines)
    ]
    for process, places in unplaced.items():
        for at in places:
            possible = {job for where, job, since, until in lacking if where == process and since < at < until}
            if len(possible) == 1:
                jobs[at] = possible.pop()
