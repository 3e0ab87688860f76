"""The words of the runtime's event log: who writes events, in which order they are, what arguments and states mean.

Each binding declares the events that it reads in a `LogForm` made of these.
"""

from __future__ import annotations

from streamproof.conformance import NUMBER, TEXT, TEXTS, LogWriter, by_name, list_of, matching, up_to

TITLE = "the event log of the reference runtime"
LACKING = "a log of an older version: trace the job again with this one"

# --- who writes

_REPLACED = "(@[0-9]+)?$"
_IN_ATTEMPT = "#[0-9]+$"
_IN_SLOTS = "/slots$"
SUBTASK = LogWriter("a subtask, in the trace JOB#ATTEMPT", "^(?!jobmaster$)", _IN_ATTEMPT)
OF_ATTEMPT = LogWriter("the JobMaster, in the trace JOB#ATTEMPT", "^jobmaster$", _IN_ATTEMPT)
OF_JOB = LogWriter("the JobMaster, in the trace JOB, or JOB@K if K were before it", "^jobmaster$", "^[^#]*$")
OF_EXECUTOR = LogWriter(
    "a TaskExecutor, tm-N.K, in the trace JOB; K of its processes were before it", "[.][0-9]+$", "^[^#]*$"
)
POOL = LogWriter(
    "the slot pool of the JobMaster, pool or pool@K, in the trace JOB/slots", f"^pool{_REPLACED}", _IN_SLOTS
)
OF_MANAGER = LogWriter("the ResourceManager, rm or rm@K, in the trace JOB/slots", f"^rm{_REPLACED}", _IN_SLOTS)
TABLE = LogWriter("a TaskExecutor, tm-N or tm-N@K, in the trace JOB/slots", f"^(?!(pool|rm){_REPLACED})", _IN_SLOTS)

# --- in which order

BY_NUMBER = (
    "The events of one process in one trace have rising numbers, in the order in which they took effect. An event is written"
    " before anything that follows from it leaves its process."
)
BY_CLOCK = (
    "Each event of a subtask that has a vector clock counts in it the events with a clock of each subtask, from 1, that had"
    " happened: it knows what the event before it knew, and what the sender of its buffer knew."
)
BY_CHANNEL = (
    "A channel keeps its order: the first buffer, credit or announcement that arrives is the first that was sent."
)
BY_CAUSE = "Events of different processes have any order in which each has its cause before it."

# --- what arguments and states are

NO_CONTENT = "a log without contents has none at all"
CHANNEL = TEXT("a channel: SENDER>RECEIVER, or SENDER~RECEIVER of feedback")
CHANNELS = TEXTS("a channel for each buffer")
CONTENT = TEXT("the number of records in the buffer and a checksum").or_none(NO_CONTENT)
CONTENTS = TEXTS("for each buffer its number of records and a checksum")
CHECKPOINT = NUMBER("the number of the checkpoint")
ATTEMPT = NUMBER("the attempt")
OPERATOR = TEXT("an operator of the job")
OPERATORS = TEXTS("operators of the job")
DATASET = TEXT("a stored dataset: PRODUCER>CONSUMER")
DATASETS = TEXTS("stored datasets: PRODUCER>CONSUMER")
ATTEMPTS_READ = by_name(NUMBER, "attempts by partition")
TASK_EXECUTOR = TEXT("a TaskExecutor")
EXECUTORS = TEXTS("TaskExecutors")
NUMBERS_BY_CHANNEL = by_name(NUMBER, "numbers by channel")
SLOT = TEXT("a slot, by its allocation")
SLOTS = TEXTS("slots, by their allocations")
BUFFERS = up_to(10_000)
GRAPH = TEXT("the subtasks and their channels, as scoped graphs are written").or_none(
    "nothing of the attempt is judged"
)
COPY = matching(".+/[0-9]+@[0-9]+", "partitions, as DATASET/0@0")("a copy: what an attempt stores of a partition")
COPIES = list_of(COPY, "partitions, as DATASET/0@0")
DONE = up_to(100_000)("the number of buffers that are done with it")
"""Arguments of several events."""
