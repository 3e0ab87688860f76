"""Messages between JobMaster, ResourceManager and TaskExecutors: plain tuples, a word first, which any library can carry."""

from __future__ import annotations

from typing import Any, TypeAlias

Message: TypeAlias = tuple[Any, ...]

REGISTER = "register"
"""``(REGISTER, incarnation, slots, connection)``: a TaskExecutor registers: its number of slots, and the number of its
connection. It offers the slots that are allocated."""
HEARTBEAT, ALIVE = "heartbeat", "alive"
"""``(HEARTBEAT,)`` of the JobMaster, ``(ALIVE,)`` in answer."""
DEPLOY, DEPLOYED = "deploy", "deployed"
"""``(DEPLOY, region, attempt, descriptor, slots, stamp, snapshots, stops)``: the descriptor, or the key of its blob; the slot
of each subtask of the receiver that needs one, the snapshots from which its subtasks go on, and where unbounded sources end
that have been stopped. A descriptor has the TaskExecutor of each subtask (`placement`) and the attempt of each dataset that
the region reads (`reads`). ``(DEPLOYED, region, attempt)`` in answer."""
FETCH, BLOB = "fetch", "blob"
"""``(FETCH, region, attempt, key)``: a TaskExecutor needs a blob to deploy an attempt; in answer
``(BLOB, region, attempt, key, content)``, without content if there is no such blob."""
UPDATE = "update"
"""``(UPDATE, region, attempt, reads)``: these datasets, for which readers of a deployed region wait, are stored."""
START = "start"
"""``(START, region, attempt)``: all TaskExecutors have their subtasks."""
CANCEL, CANCELED = "cancel", "canceled"
"""``(CANCEL, region, attempt)``: stop the subtasks of this attempt and of earlier ones; ``(CANCELED, region, attempt)`` in
answer."""
FAILED = "failed"
"""``(FAILED, region, attempt, reason, fatal, missing, subtask)``: a subtask cannot go on. Fatal: a user function raised an
error; missing: the dataset that is not there, or nothing; the subtask is empty if any of the TaskExecutor's has failed."""
FINISHED = "finished"
"""``(FINISHED, region, attempt, task, result)``: a subtask has terminated; a sink has its records."""
TRIGGER, SNAPSHOT = "trigger", "snapshot"
"""``(TRIGGER, region, attempt, checkpoint)``; ``(SNAPSHOT, region, attempt, task, checkpoint, snapshot)`` in answer."""
END_SOURCES, SOURCE_ENDS = "end sources", "source ends"
"""``(END_SOURCES, region, attempt)``: unbounded sources end where they are; ``(SOURCE_ENDS, region, attempt, subtask,
position)`` in answer: how many records the source makes."""
RELEASE = "release"
"""``(RELEASE, dataset, attempt)``: its partitions are not needed any more."""
PROMOTE, PROMOTED = "promote", "promoted"
"""``(PROMOTE, region, attempt)``: what the attempt has stored for the cluster outlives the job; ``(PROMOTED, region,
attempt)`` in answer."""
DATA = "data"
"""``(DATA, region, attempt, channel, item, backlog)`` between TaskExecutors: an item, and how many wait behind it."""
BACKLOG = "backlog"
"""``(BACKLOG, region, attempt, channel, number)``: the number of items of the channel that wait for credit."""
CREDIT = "credit"
"""``(CREDIT, region, attempt, channel, number)``: the receiver of a channel has free buffers."""

# --- cluster partitions

CLUSTER = "cluster"
"""``(CLUSTER, partitions)`` to the ResourceManager: the cluster partitions that a TaskExecutor has got: dataset, attempt,
number of the partition, and how many there are of the dataset."""
LOCATE, LOCATED = "locate", "located"
"""``(LOCATE, dataset, attempt)`` of the JobMaster to the ResourceManager; ``(LOCATED, dataset, attempt, executors)`` in
answer, the TaskExecutor of each partition, if all are known."""
DISCARD = "discard"
"""``(DISCARD, dataset, attempt)`` of the ResourceManager: a cluster partition is not needed any more."""

# --- slots: each message but the answers to heartbeats ends with the stamp of the event that sends it (`slot_events`)

JOIN = "join"
"""``(JOIN, process, slots, report, stamp)``: a TaskExecutor registers at the ResourceManager; its allocations."""
POLL, REPORT = "poll", "report"
"""``(POLL,)``, a heartbeat of the ResourceManager; ``(REPORT,)`` in answer, or ``(REPORT, report, stamp)`` after a change."""
VACANT, DISMISS = "vacant", "dismiss"
"""``(VACANT,)``: the ResourceManager asks an idle TaskExecutor whether it stores nothing; ``(VACANT, empty)`` in answer;
``(DISMISS,)``: the TaskExecutor is released."""
DECLARE = "declare"
"""``(DECLARE, number, stamp)``: the slots that the JobMaster requires of the ResourceManager."""
REQUEST, GRANT = "request", "grant"
"""``(REQUEST, allocation, stamp)``: the ResourceManager wants a slot; ``(GRANT, allocation, done, stamp)`` in answer."""
AVAILABLE = "available"
"""``(AVAILABLE, allocation, stamp)``: the slot is free, for the ResourceManager."""
OFFER, ANSWER = "offer", "answer"
"""``(OFFER, allocation, stamp)`` to the JobMaster; ``(ANSWER, allocation, accepted, offer, stamp)``: with its number."""
FREE = "free"
"""``(FREE, allocation, stamp)``: the JobMaster returns a slot."""
HELD, LISTED = "held", "listed"
"""``(HELD, allocations, stamp)``: what the JobMaster holds of a TaskExecutor; ``(LISTED,)`` in answer."""
SLOT_FAILED = "slot_failed"
"""``(SLOT_FAILED, allocation, stamp)``: a TaskExecutor does not have a slot that the JobMaster holds."""
OF_TABLE = frozenset({REQUEST, POLL, ANSWER, FREE, HELD})
"""Messages to the slot table of a TaskExecutor."""
