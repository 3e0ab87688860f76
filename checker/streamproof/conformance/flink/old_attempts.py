"""Attempts of Flink before 1.16, whose identifiers are plain: they are given the form of later ones.

A plain identifier does not show vertex, subtask and number. The subtask is in the name of the task ("2/4"), the number in
the lines of the deployment and of TaskManagers from 1.12 on, else it follows from the order of the attempts of a task. The
execution graph is the one that the log names for the job, else the job takes its place; the vertex is the name of the task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from streamproof.base.records import dataclass
from streamproof.conformance.flink.run import Draft

OLD: Final = (
    "its attempts have the identifiers of Flink before 1.16, whose rules may be others: what contradicts the rules of 1.16"
    " to 2.3 proves nothing"
)


@dataclass(slots=True)
class _Attempt:
    """What the lines show of an attempt."""

    task: str
    place: int
    parallelism: int
    alloc: str | None = None
    number: int | None = None
    process: str = ""
    job: str = ""


@dataclass(slots=True)
class _OldAttempts:
    drafts: Sequence[Draft]
    jobs: set[str] = field(default_factory=set)
    allocations: dict[str, str] = field(default_factory=dict)
    graphs: dict[str, set[str]] = field(default_factory=dict)
    attempts: dict[str, _Attempt] = field(default_factory=dict)

    def read(self) -> None:
        """Collects the attempts, and what names their jobs."""
        for draft in self.drafts:
            args = draft.args
            if "job" in args:
                self.jobs.add(args["job"])
                if "alloc" in args:
                    self.allocations[args["alloc"]] = args["job"]
                if draft.family == "job.graph":
                    self.graphs.setdefault(args["job"], set()).add(args["graph"])
            if is_old(draft):
                one = self.attempts.setdefault(
                    args["attempt"], _Attempt(args["task"], args["subtask"], args["parallelism"])
                )
                one.alloc = args.get("alloc", one.alloc)
                one.number = args.get("number", one.number)
                if draft.family.startswith("exec."):
                    one.process = draft.process

    def place(self) -> Iterator[str]:
        """Gives each attempt its job and number; yields the jobs of which two attempts cannot be told apart."""
        only = next(iter(self.jobs)) if len(self.jobs) == 1 else ""
        rows: dict[tuple[str, str, int, int], list[_Attempt]] = {}
        for one in self.attempts.values():
            one.job = self.allocations.get(one.alloc or "", only)
            rows.setdefault((one.job, one.task, one.parallelism, one.place), []).append(one)
        for (job, *_), row in rows.items():
            known = next((at for at, one in enumerate(row) if one.number is not None), None)
            first = (row[known].number or 0) - known if known is not None else 0
            for at, one in enumerate(row):
                one.number = max(0, first + at) if one.number is None else one.number
            if len({one.number for one in row}) < len(row):
                yield job

    def rename(self) -> None:
        """Writes the identifiers into the events."""
        for draft in self.drafts:
            if is_old(draft):
                one = self.attempts[draft.args["attempt"]]
                graphs = self.graphs.get(one.job, set())
                graph = next(iter(graphs)) if len(graphs) == 1 else one.job or _name(one.process or draft.process)
                vertex = _name(f"{one.task} {one.parallelism}")
                identifier = f"{graph}_{vertex}_{one.place}_{one.number}"
                draft.args |= {"plain": draft.args["attempt"], "attempt": identifier, "graph": graph, "vertex": vertex,
                               "subtask": one.place, "number": one.number}  # fmt: skip


def is_old(draft: Draft) -> bool:
    """Whether an event is about an attempt with a plain identifier."""
    return "attempt" in draft.args and "vertex" not in draft.args


def complete_old_attempts(drafts: Sequence[Draft]) -> tuple[dict[str, str], dict[str, str]]:
    """Gives plain identifiers the form of later ones; by job why conclusions are uncertain, and by process why a
    contradiction proves nothing."""
    old = {draft.process for draft in drafts if is_old(draft)}
    if not old:
        return {}, {}
    found = _OldAttempts(drafts)
    found.read()
    why = "two attempts of a task have one number: tasks of equal names are not told apart in logs of Flink before 1.16"
    unsure = dict.fromkeys(found.place(), why)
    found.rename()
    return unsure, {process: f"{process}: {OLD}" for process in sorted(old)}


def _name(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
