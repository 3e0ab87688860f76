"""Families of Flink's log lines that no machine judges, or not everywhere, with the reasons, for the report of coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CLOCK = "sent at fixed times; depends on a clock alone"
_SHARED = "follows from the removal of its logical slots"
_REQUIREMENTS = "numbers and profiles of required slots are in no machine"
_BEGINNING = "shows the scheduler and that the log is complete"
_OTHER_LOGS = "the other end, or the beginning of the log, is in no log"
_PARTITIONS = "in jobs whose TaskManagers' logs are not complete, or with hybrid exchanges"
_FOLLOWED = "in jobs that the machine does not follow; the verdict has the reason"

UNJUDGED: Final[Mapping[str, str]] = {
    "buf.pool": "sizes of buffer pools are in no machine of logs",
    "ckpt.none": "in jobs without checkpoints",
    "exec.": _FOLLOWED,
    "failover.": _FOLLOWED,
    "failover.archive": "repeats the cause of a failure, which the line about the task has",
    "failover.global.archive": "repeats the cause of a failure",
    "failover.strategy": _BEGINNING,
    "gate.": "in jobs whose TaskManagers' logs are not complete",
    "graph.": "the job graph is read from them",
    "hb.recv": "on TaskManagers: nothing says whose identifier the sender has",
    "hb.timeout": "on TaskManagers: nothing says whose identifier the sender has",
    "hb.trigger": _CLOCK,
    "jm.disconnect": _OTHER_LOGS,
    "job.graph": _BEGINNING,
    "job.terminal": "in jobs without checkpoints; the JobMaster's line about the job is judged",
    "job.transition": _FOLLOWED,
    "loop.": "loops of the APIs that Flink 2 no longer has",
    "net.connfail": "a failure of the network, whose cause has no line",
    "net.partreq.client": "judged where the line shows the reading task",
    "part.file": "the line has no partition; judged where it shows the task's only one",
    "net.partreq": _PARTITIONS,
    "part.": _PARTITIONS,
    "part.sub": "the line has no dataset; judged where its task writes one partition",
    "part.reqremote": "judged where the line shows the reading task",
    "region.built": _FOLLOWED,
    "rm.": _OTHER_LOGS,
    "sched.": _BEGINNING,
    "slot.": _OTHER_LOGS,
    "slot.clear": _REQUIREMENTS,
    "slot.jm.newreq": _REQUIREMENTS,
    "slot.jm.notenough": _REQUIREMENTS,
    "slot.require": _REQUIREMENTS,
    "slot.shared.": _SHARED,
    "slot.unfulfilled": _REQUIREMENTS,
    "tm.": _OTHER_LOGS,
    "tm.closerm": "connections to the ResourceManager are judged on its side",
    "tm.fatal": "why a TaskManager ends itself is in no machine",
    "tm.estjm": "the JobMaster's side of a registration has no line",
}
"""Beginning of a family's name -> why; the longest one counts."""
