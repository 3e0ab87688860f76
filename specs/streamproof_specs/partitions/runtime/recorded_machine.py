"""The machine for the partitions of a recorded dataset: the variant `runtime` of `partition_lifecycle`."""

from __future__ import annotations

from streamproof_models.partitions.cluster_rules import ClusterPartitions
from streamproof_models.partitions.runtime_rules import ReplacedProcesses


class RecordedPartitions(ReplacedProcesses):
    """The machine for a recorded dataset with one consuming region."""

    name = "partition_lifecycle"


class RecordedCluster(ClusterPartitions):
    """The machine for a recorded cluster partition: the variant `runtime-cluster`."""

    name = "partition_lifecycle"
