"""Messages between JobMaster and TaskExecutors: plain tuples, a word first, so that any library can carry them."""

from __future__ import annotations

from typing import Any, TypeAlias

Message: TypeAlias = tuple[Any, ...]

REGISTER = "register"
"""``(REGISTER, incarnation, slots, connection)``: a TaskExecutor offers its slots, by its connection of this number."""
HEARTBEAT, ALIVE = "heartbeat", "alive"
"""``(HEARTBEAT,)`` of the JobMaster, ``(ALIVE,)`` in answer."""
DEPLOY, DEPLOYED = "deploy", "deployed"
"""``(DEPLOY, region, attempt, placement, reads, snapshots)``: the TaskExecutor of each subtask, the attempt of each dataset
that the region reads, and the snapshots from which subtasks go on; ``(DEPLOYED, region, attempt)`` in answer."""
UPDATE = "update"
"""``(UPDATE, region, attempt, reads)``: these datasets, for which readers of a deployed region wait, are stored."""
START = "start"
"""``(START, region, attempt)``: all TaskExecutors have their subtasks."""
CANCEL, CANCELED = "cancel", "canceled"
"""``(CANCEL, region, attempt)``: stop the subtasks of this attempt and of earlier ones; ``(CANCELED, region, attempt)`` in
answer."""
FAILED = "failed"
"""``(FAILED, region, attempt, reason, fatal, missing)``: a subtask cannot go on. Fatal: a user function raised an error;
missing: the dataset that is not there, or nothing."""
FINISHED = "finished"
"""``(FINISHED, region, attempt, task, result)``: a subtask has terminated; a sink has its records."""
TRIGGER, SNAPSHOT = "trigger", "snapshot"
"""``(TRIGGER, region, attempt, checkpoint)``; ``(SNAPSHOT, region, attempt, task, checkpoint, snapshot)`` in answer."""
RELEASE = "release"
"""``(RELEASE, dataset, attempt)``: its partitions are not needed any more."""
DATA = "data"
"""``(DATA, region, attempt, channel, item, backlog)`` between TaskExecutors: an item, and how many wait behind it."""
BACKLOG = "backlog"
"""``(BACKLOG, region, attempt, channel, number)``: the number of items of the channel that wait for credit."""
CREDIT = "credit"
"""``(CREDIT, region, attempt, channel, number)``: the receiver of a channel has free buffers."""
