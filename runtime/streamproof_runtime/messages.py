"""Messages between JobMaster and TaskExecutors: plain tuples, a word first, so that any library can carry them."""

from __future__ import annotations

from typing import Any, TypeAlias

Message: TypeAlias = tuple[Any, ...]

REGISTER = "register"
"""``(REGISTER, incarnation, slots)``: a TaskExecutor offers its slots."""
HEARTBEAT, ALIVE = "heartbeat", "alive"
"""``(HEARTBEAT,)`` of the JobMaster, ``(ALIVE,)`` in answer."""
DEPLOY, DEPLOYED = "deploy", "deployed"
"""``(DEPLOY, attempt, placement)``: the TaskExecutor of each subtask; ``(DEPLOYED, attempt)`` in answer."""
START = "start"
"""``(START, attempt)``: all TaskExecutors have their subtasks."""
CANCEL = "cancel"
"""``(CANCEL, attempt)``: stop the subtasks of this attempt and of earlier ones."""
FAILED = "failed"
"""``(FAILED, attempt, reason, fatal)``: a subtask cannot go on; fatal: a user function raised an error."""
FINISHED = "finished"
"""``(FINISHED, attempt, task, result)``: a subtask has terminated; a sink has its records."""
DATA = "data"
"""``(DATA, attempt, channel, item)`` between TaskExecutors."""
CREDIT = "credit"
"""``(CREDIT, attempt, channel, number)``: the receiver of a channel has free buffers."""
