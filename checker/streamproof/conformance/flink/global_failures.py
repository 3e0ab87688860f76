"""Failures: their causes, from stack traces, and the jobs of global failures, whose log lines name no job.

The JobMaster's main thread logs the decision and then, if the job is RUNNING, its switch to RESTARTING, with no line of
this job between them. So a switch without a preceding decision about a task needs a decision about a global failure;
and the job of a decision is RESTARTING already, or its next line is the switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from streamproof.base.records import dataclass
from streamproof.conformance.flink.identifiers import PARTITION_TEXT
from streamproof.conformance.flink.run import Draft

# The first line of a trace needs a package or a typical name; otherwise any text before a colon would match.
_THROWABLE: Final = re.compile(
    r"(?:Caused by: (?P<cause>[\w$.]+)|(?P<first>(?:[\w$]+\.)+[\w$]+|[\w$]+(?:Exception|Error)))(?:: (?P<text>.*))?"
)
_NAMES_PARTITION: Final = ("PartitionNotFoundException", "PartitionConnectionException", "DataConsumptionException")
_PARTITION: Final = re.compile(PARTITION_TEXT)


def read_causes(head: str | None, detail: Sequence[str]) -> dict[str, Any]:
    """Arguments of a failure event from its stack trace.

    `head` is the exception named in the message itself, if any; `detail` are the lines that follow. The result has
    `cause` (first exception with its text), `causes` (the classes of the chain, outermost first) and, if an exception
    names a partition, `partition`, `dataset`, `pnum` and `producer`. It is empty without an exception.
    """
    lines = ([head] if head else []) + [line for line in detail if not line.startswith(("\t", " "))]
    causes: list[str] = []
    args: dict[str, Any] = {}
    for line in lines:
        found = _THROWABLE.fullmatch(line)
        if found is None or (causes and not found["cause"]):
            continue
        if not causes:
            args["cause"] = line
        name = found["cause"] or found["first"]
        causes.append(name)
        if "partition" not in args and name.rpartition(".")[2] in _NAMES_PARTITION:
            named = _PARTITION.search(found["text"] or "")
            if named:
                dataset, _, rest = named[0].partition("#")
                number, _, producer = rest.partition("@")
                args |= {"partition": named[0], "dataset": dataset, "pnum": int(number), "producer": producer}
    if causes:
        args["causes"] = causes
    return args


_DECISION: Final = "failover.global.restart"
_REPORT: Final = "failover.global"
_STEPS: Final = ("exec.transition", "job.transition", "failover.restart")
_ENDED: Final = ("FINISHED", "FAILED", "CANCELED", "SUSPENDED")


def place_global_failures(
    drafts: Sequence[Draft], jobs: list[str], submitted: Mapping[tuple[str, str], int] = MappingProxyType({})
) -> dict[str, str]:
    """Assigns the jobs of global failures. Returns the jobs for which an assignment is ambiguous, each with the reason.

    `submitted`: for processes and jobs, the number of events before the submission of the job."""
    masters: dict[str, _Master] = {}
    for at, draft in enumerate(drafts):
        if not jobs[at] and draft.family in (_DECISION, _REPORT):
            masters.setdefault(draft.process, _Master(drafts, jobs, submitted)).globally.append(at)
        elif jobs[at] and draft.family in _STEPS:
            master = masters.setdefault(draft.process, _Master(drafts, jobs, submitted))
            master.steps.setdefault(jobs[at], []).append(at)
    open_: dict[str, str] = {}
    for master in masters.values():
        for at, possible in master.place():
            draft = drafts[at]
            reason = f"the global failure in line {draft.line} of {draft.file} may be that of {len(possible)} jobs"
            for job in possible:
                open_.setdefault(job, reason)
    return open_


@dataclass(slots=True)
class _Master:
    """Assigns the global failures of one JobManager: positions of the lines about them, and of each job's own steps."""

    drafts: Sequence[Draft]
    jobs: list[str]
    submitted: Mapping[tuple[str, str], int]
    globally: list[int] = field(default_factory=list)
    steps: dict[str, list[int]] = field(default_factory=dict)

    def place(self) -> list[tuple[int, set[str]]]:
        """Assigns the unambiguous ones and returns the rest, each with its possible jobs."""
        decisions = [at for at in self.globally if self.drafts[at].family == _DECISION]
        self._settle({at: self._deciding(at) for at in decisions}, self._needing(decisions))
        reports = {at: self._reporting(at) for at in self.globally if self.drafts[at].family == _REPORT}
        self._settle(reports, [])
        return [(at, self._deciding(at) or self._alive(at)) for at in self.globally if not self.jobs[at]]

    def _settle(self, possible: dict[int, set[str]], needing: list[tuple[str, set[int]]]) -> None:
        """Assigns each line its only possible job. `needing`: jobs that need one of some lines."""
        progress = True
        while progress:
            progress = False
            for job, lines in needing:
                left = {at for at in lines if not self.jobs[at]}
                if len(left) == 1 and not any(self.jobs[at] == job for at in lines):
                    self.jobs[left.pop()] = job
                    progress = True
        for at, found in possible.items():
            if not self.jobs[at] and len(found) == 1:
                self.jobs[at] = next(iter(found))

    def _state(self, job: str, before: int) -> str | None:
        """The state of a job before a position; None if the log has no line of it."""
        lines = [at for at in self.steps[job] if self.drafts[at].family == "job.transition"]
        earlier = [at for at in lines if at < before]
        if earlier:
            return str(self.drafts[earlier[-1]].args["new"])
        return str(self.drafts[lines[0]].args["old"]) if lines else None

    def _alive(self, at: int) -> set[str]:
        draft = self.drafts[at]
        begun = (job for job in self.steps if self.submitted.get((draft.process, job), 0) <= draft.seq)
        return {job for job in begun if self._state(job, at) not in (*_ENDED, "INITIALIZING")}

    def _next(self, job: str, at: int) -> Draft | None:
        return next((self.drafts[n] for n in self.steps[job] if n > at), None)

    def _deciding(self, at: int) -> set[str]:
        """The possible jobs of a decision."""
        found = set()
        for job in self._alive(at):
            then = self._next(job, at)
            switches = then is None or (then.family == "job.transition" and then.args["new"] == "RESTARTING")
            if switches or self._state(job, at) != "RUNNING":
                found.add(job)
        return found or self._alive(at)

    def _needing(self, decisions: Sequence[int]) -> list[tuple[str, set[int]]]:
        """The switches to RESTARTING without a decision about a task, with the decisions between them and the job's
        line before."""
        found: list[tuple[str, set[int]]] = []
        for job, steps in self.steps.items():
            for before, at in zip([-1, *steps], steps, strict=False):
                draft = self.drafts[at]
                if draft.family != "job.transition" or draft.args["new"] != "RESTARTING":
                    continue
                if before < 0 or self.drafts[before].family != "failover.restart":
                    found.append((job, {d for d in decisions if before < d < at}))
        return found

    def _reporting(self, at: int) -> set[str]:
        """The possible jobs of a report of a global failure: that of the decision after it, unless another report comes
        first, or one that the failure ends."""
        following = next((n for n in self.globally if n > at), None)
        decided = following is not None and self.drafts[following].family == _DECISION
        ended = set()
        for job in self._alive(at):
            then = self._next(job, at)
            if then is not None and then.family == "job.transition" and then.args["new"] == "FAILING":
                ended.add(job)
        if decided and following is not None and self.jobs[following]:
            return ended | {self.jobs[following]}
        return ended if ended and not decided else self._alive(at)
