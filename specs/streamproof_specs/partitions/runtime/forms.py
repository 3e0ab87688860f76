"""The forms of the events of the runtime's JobMaster and TaskExecutors, with how `DatasetReading` reads each."""

from __future__ import annotations

from collections.abc import Mapping

from streamproof.conformance import NUMBER, TRUTH, EventForm, LogForm, by_name, up_to
from streamproof_specs.failover.runtime import JOB_STARTED, MISSING
from streamproof_specs.partitions.runtime.arguments import MOST
from streamproof_specs.partitions.runtime.reading import LET_GO, MASTER_LOST, REGISTERING, DatasetReading
from streamproof_specs.runtime.vocabulary import (
    ATTEMPTS_READ,
    BY_CAUSE,
    BY_NUMBER,
    COPIES,
    COPY,
    DATASET,
    DATASETS,
    EXECUTORS,
    LACKING,
    OF_EXECUTOR,
    OF_JOB,
    OPERATOR,
    OPERATORS,
    TASK_EXECUTOR,
    TITLE,
)

_ATTEMPT = up_to(MOST)("the attempt that makes the partitions")
_READER = up_to(MOST)("the attempt of the consumer")
_CONNECTION = up_to(MOST)("the number of the connection of this process")
_DELETED = COPIES("what is deleted with it")
_DESCRIPTORS = ATTEMPTS_READ("the attempts in the descriptors of its inputs")
MASTER: Mapping[str, EventForm] = {
    "job_started": EventForm(
        DatasetReading.replaced,
        OF_JOB,
        ("crash", "recover", "fail"),
        {
            **{name: JOB_STARTED[name] for name in ("operators", "exchanges")},
            "memory_only": DATASETS.or_none("no exchange is memory-only caching"),
            "promoted": DATASETS.or_none("nothing outlives the job"),
        },
        meaning="The job begins at a JobMaster. If another one was before it, that one has crashed.",
    ),
    "registered": EventForm(
        DatasetReading.registered,
        OF_JOB,
        ("register",),
        {
            "executor": TASK_EXECUTOR,
            "incarnation": up_to(MOST)("how many processes of the TaskExecutor were before"),
            "connection": _CONNECTION,
        },
    ),
    "executor_lost": EventForm(
        DatasetReading.executor_lost,
        OF_JOB,
        ("lose_executor", "close"),
        {"executor": TASK_EXECUTOR, "closed": TRUTH("whether the TaskExecutor closed the connection").or_none("false")},
    ),
    "region_scheduled": EventForm(
        DatasetReading.scheduled, OF_JOB, args={"tasks": OPERATORS, "attempt": up_to(MOST)("the attempt of the region")}
    ),
    "partitions_tracked": EventForm(
        DatasetReading.tracked,
        OF_JOB,
        ("deploy",),
        {"attempt": _ATTEMPT, "partitions": by_name(TASK_EXECUTOR, "TaskExecutors by partition")("of DATASET/0")},
    ),
    "region_deployed": EventForm(
        DatasetReading.described,
        OF_JOB,
        ("begin",),
        {
            "tasks": OPERATORS,
            "descriptors": _DESCRIPTORS,
            "cluster": ATTEMPTS_READ("the attempts of cluster partitions that it reads").or_none("it reads none"),
        },
    ),
    "region_updated": EventForm(
        DatasetReading.described, OF_JOB, ("begin",), {"tasks": OPERATORS, "descriptors": _DESCRIPTORS}
    ),
    "region_finished": EventForm(DatasetReading.finished, OF_JOB, ("receive_report", "consume"), {"tasks": OPERATORS}),
    "partition_lost": EventForm(DatasetReading.lost, OF_JOB, ("miss", "write_off"), {"partition": DATASET}),
    "region_failed": EventForm(
        DatasetReading.failed,
        OF_JOB,
        ("cancel_producer", "fail"),
        {"task": OPERATOR, "restarts": OPERATORS, "missing": MISSING},
    ),
    "job_failed": EventForm(DatasetReading.given_up, OF_JOB, ("abandon", "fail")),
    "promotion_requested": EventForm(
        DatasetReading.of_cluster,
        OF_JOB,
        ("promote",),
        {"datasets": DATASETS, "attempt": _ATTEMPT},
        meaning="Nothing else is left of the job: TaskExecutors are asked to promote what they have of these datasets.",
    ),
    "cluster_partition_located": EventForm(
        DatasetReading.of_cluster,
        OF_JOB,
        (),
        {"dataset": DATASET, "attempt": _ATTEMPT, "executors": EXECUTORS("where its partitions are")},
        meaning="The ResourceManager has said where a cluster partition is.",
    ),
    "job_finished": EventForm(
        DatasetReading.of_cluster,
        OF_JOB,
        ("end",),
        meaning="The job has finished; what it has promoted is the cluster's.",
    ),
    "partitions_released": EventForm(
        DatasetReading.released,
        OF_JOB,
        ("release", "discard"),
        {
            "dataset": DATASET,
            "attempt": _ATTEMPT,
            "executors": EXECUTORS("to whom the release is sent"),
            "needed": TRUTH("whether it is made again").or_none("false"),
        },
    ),
}
"""Events of the JobMaster."""
EXECUTOR: Mapping[str, EventForm] = {
    REGISTERING: EventForm(
        DatasetReading.registering, OF_EXECUTOR, ("lose_master", "crash_executor"), {"connection": _CONNECTION}
    ),
    MASTER_LOST: EventForm(
        DatasetReading.master_lost, OF_EXECUTOR, ("lose_master",), {"connection": _CONNECTION, "deleted": _DELETED}
    ),
    LET_GO: EventForm(DatasetReading.let_go, OF_EXECUTOR, ("report_empty", "release_executor"), {"deleted": _DELETED}),
    "partitions_created": EventForm(
        DatasetReading.created,
        OF_EXECUTOR,
        ("receive_order", "refuse_order"),
        {
            "datasets": DATASETS,
            "attempt": _ATTEMPT,
            "created": COPIES("what it makes of the partitions that were deployed here"),
            "deleted": _DELETED,
        },
    ),
    "partition_finished": EventForm(DatasetReading.producer_finished, OF_EXECUTOR, ("finish",), {"partition": COPY}),
    "partition_opened": EventForm(
        DatasetReading.opened, OF_EXECUTOR, ("open",), {"partition": COPY, "reader": _READER}
    ),
    "partition_consumed": EventForm(
        DatasetReading.consumed,
        OF_EXECUTOR,
        ("read_to_end",),
        {"partition": COPY, "reader": _READER, "consumptions": NUMBER("how often it has been read so far")},
    ),
    "partition_missing": EventForm(
        DatasetReading.missing, OF_EXECUTOR, ("find_missing",), {"partition": COPY, "reader": _READER}
    ),
    "release_received": EventForm(
        DatasetReading.release_received,
        OF_EXECUTOR,
        ("receive_order",),
        {"dataset": DATASET, "attempt": _ATTEMPT, "deleted": _DELETED},
    ),
    "partitions_canceled": EventForm(
        DatasetReading.canceled,
        OF_EXECUTOR,
        ("receive_order",),
        {"datasets": DATASETS, "attempt": _ATTEMPT, "deleted": _DELETED},
    ),
    "partitions_abandoned": EventForm(
        DatasetReading.abandoned,
        OF_EXECUTOR,
        ("abort", "fill_disk"),
        {
            "datasets": DATASETS,
            "attempt": _ATTEMPT,
            "deleted": _DELETED,
            "full": COPY.or_none("no disk was full"),
        },
    ),
    "partitions_promoted": EventForm(
        DatasetReading.of_cluster,
        OF_EXECUTOR,
        ("receive_order", "report_cluster_partition"),
        {"promoted": COPIES("what outlives its job")},
        meaning="A TaskExecutor promotes partitions, and says so to the JobMaster and the ResourceManager.",
    ),
    "promotion_failed": EventForm(
        DatasetReading.of_cluster,
        OF_EXECUTOR,
        ("refuse_order",),
        {"refused": COPIES("what was to be promoted"), "missing": COPIES("what of it is lost")},
        meaning="A TaskExecutor promotes nothing, as a partition is lost.",
    ),
    "manager_lost": EventForm(
        DatasetReading.of_cluster,
        OF_EXECUTOR,
        ("lose_manager",),
        {"deleted": _DELETED},
        meaning="A TaskExecutor loses the ResourceManager, and deletes its cluster partitions.",
    ),
    "cluster_partition_released": EventForm(
        DatasetReading.of_cluster,
        OF_EXECUTOR,
        ("release_cluster_partition",),
        {"dataset": DATASET, "attempt": _ATTEMPT, "deleted": _DELETED},
        meaning="The ResourceManager has released a cluster partition.",
    ),
    "partitions_lost": EventForm(DatasetReading.vanished, OF_EXECUTOR, ("vanish",), {"lost": COPIES("what is lost")}),
    "partitions_discarded": EventForm(
        DatasetReading.discarded,
        OF_EXECUTOR,
        ("vanish",),
        {
            "discarded": COPIES("what is discarded"),
            "stored": NUMBER("what is stored, in records"),
            "room": NUMBER("what there is room for, in records"),
        },
    ),
}
"""Events of TaskExecutors."""
FORM = LogForm(TITLE, {**MASTER, **EXECUTOR}, (BY_NUMBER, BY_CAUSE), LACKING)
