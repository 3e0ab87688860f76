"""Variants of the life cycle of partitions, to be switched on for demonstration, by the names of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.region_runs import Run
from streamproof_runtime.taskexecutor.ledger import Ledger
from streamproof_runtime.taskexecutor.partitions import Key, Missing


class ReleaseOnConsumption(Ledger):
    """The behaviour that FLIP-1 replaces: a partition is deleted when it has been read once."""

    def consumed(self, key: Key, reader: int) -> None:
        """The first reader is the last."""
        super().consumed(key, reader)
        self.store.remove(key)


class NoHeartbeatCleanup(Ledger):
    """A TaskExecutor that loses its JobMaster keeps what it has stored."""

    cleans_up = False

    def master_lost(self, connection: int, deleted: Sequence[Key]) -> None:
        """Nothing is deleted."""
        self.lost(connection, deleted)


class UnnoticedLoss(Ledger):
    """A reader takes a missing partition for an empty one."""

    def open(self, key: Key, reader: int) -> tuple[Iterator[Any], int]:
        """Perhaps nothing."""
        try:
            found = self.store.open(key)
        except Missing:
            found = iter(()), 0
        self.opened(key, reader)
        return found


class ClearsClusterPartitions(Ledger):
    """A TaskExecutor that loses its JobMaster deletes cluster partitions, too."""

    def cleared(self) -> list[Key]:
        """Everything."""
        self.cluster = set()
        return self.store.clear()


class OutlivesManager(Ledger):
    """Cluster partitions survive the loss of the ResourceManager, which will not hear of them again."""

    def manager_lost(self) -> None:
        """Nothing is deleted."""
        if self.cluster:
            self.manager_is_lost([])


class PromotesNothing(Ledger):
    """What a job has stored is kept and read by later ones, and was not promoted."""

    def promoted(self, keys: Sequence[Key]) -> None:
        """The TaskExecutor does not promote it."""


class AwaitsNoPromotion(JobMaster):
    """The job ends when the promotion has been sent."""

    def promote(self, settled: Sequence[Run]) -> None:
        """Without an answer."""
        super().promote(settled)
        for run in settled:
            for peer in [*(run.promoting or ())]:
                self.on_promoted(run, peer)


ASKS_NOTHING = "rm-ignores-partitions"
"""The variant whose ResourceManager releases every idle TaskExecutor, whatever it stores."""


class CloseConnectionEarly(JobMaster):
    """The JobMaster closes the connection to a TaskExecutor as soon as it has no slot in use there."""

    def finish(self, run: Run) -> None:
        """The TaskExecutors of a region that has finished may have none any more."""
        super().finish(run)
        used = {peer for each in self.runs if each.is_active for peer in each.placement.values()}
        for peer in sorted({*run.placement.values()} & self.executors.slots.keys() - used):
            if not self.is_over:
                self.host.close(peer)
                self.on_lost(peer, closed=True)


CLUSTER_LEDGERS: dict[str, type[Ledger]] = {
    "released-with-job": ClearsClusterPartitions,
    "reported-once": OutlivesManager,
    "unpromoted-read": PromotesNothing,
}
"""Variants of what TaskExecutors do with cluster partitions, by name."""
CLUSTER_MASTERS: dict[str, type[JobMaster]] = {"unanswered-promotion": AwaitsNoPromotion}
"""Variants of their promotion by the JobMaster, by name."""
LEDGERS: dict[str, type[Ledger]] = {
    "release-on-consumption": ReleaseOnConsumption,
    "no-heartbeat-cleanup": NoHeartbeatCleanup,
    "unnoticed-loss": UnnoticedLoss,
}
"""Variants of TaskExecutors by name."""
MASTERS: dict[str, type[JobMaster]] = {"close-connection-early": CloseConnectionEarly}
"""Variants of the JobMaster by name."""
