"""Variants of `partition_lifecycle` with the rules of Flink 2.3 repaired, and with one of the repairs missing."""

from __future__ import annotations

from typing import ClassVar

from streamproof import action
from streamproof_models.partitions.flink import Flink
from streamproof_models.partitions.machine import PartitionLifecycle


class FlinkRepaired(Flink, variant="flink-repaired"):
    """Flink 2.3 with repairs: a registration ends timers, clean-ups and membership of the clean-up set."""

    def meet_again(self, s, j, e):
        """A registration closes the earlier connection on both sides; a JobMaster that recovers has had none."""
        if s.registered[j, e]:
            self.forget(s, j, e)

    def cancel_timer(self, s, j, e):
        """The disconnection is over: what is there and not asked for is deleted at once."""
        s.timer[j, e] = 0
        self.end_cleanup(s, j, e)

    def end_cleanup(self, s, j, e):
        """What a clean-up would delete later is deleted before new partitions come."""
        if s.cleaning[j, e] or not s.recovering[j]:
            self.delete_some(s, j, e, "DELETED", "STORED")
        s.in_cleanup_set[j, e], s.cleaning[j, e] = False, False


class FlinkDefaultRepaired(FlinkRepaired, variant="flink-default-repaired"):
    """The same repairs, as Flink 2.3 is configured."""

    retains: ClassVar[bool] = False


class FlinkTimer(FlinkRepaired, variant="flink-timer"):
    """Of the repairs, the timer is missing: it is never cancelled."""

    def cancel_timer(self, s, j, e):
        """The job is off the clean-up set."""
        self.end_cleanup(s, j, e)


class FlinkCleanupSet(FlinkRepaired, variant="flink-cleanup-set"):
    """Of the repairs, one is missing: a registration leaves the job on the clean-up set; only `Retain` takes it off."""

    def cancel_timer(self, s, j, e):
        """The timer goes on."""

    def retain(self, s, j, e):
        """The disconnection is over."""
        super().retain(s, j, e)
        s.timer[j, e] = 0


class FlinkLostRequest(FlinkRepaired, variant="flink-lost-request"):
    """Of the repairs, one is missing: at a JobMaster that recovers, only `Retain` takes the job off the clean-up set."""

    def cancel_timer(self, s, j, e):
        """A JobMaster that recovers is expected to ask."""
        if not s.recovering[j]:
            s.timer[j, e] = 0
            self.end_cleanup(s, j, e)

    def retain(self, s, j, e):
        """The disconnection is over."""
        super().retain(s, j, e)
        s.timer[j, e] = 0


class FlinkAllRepairs(FlinkRepaired, variant="flink-all-repairs"):
    """Also: heartbeats list the partitions that the JobMaster tracks, from the end of its recovery on."""

    def synchronise(self, s, j, e):
        """A JobMaster that recovers lists tasks only."""
        if s.recovering[j]:
            super().synchronise(s, j, e)
        else:
            PartitionLifecycle.synchronise(self, s, j, e)


class FlinkDefaultAllRepairs(FlinkAllRepairs, variant="flink-default-all-repairs"):
    """The same repairs, as Flink 2.3 is configured."""

    retains: ClassVar[bool] = False


class FlinkListedEarly(FlinkAllRepairs, variant="flink-listed-early"):
    """Heartbeats list partitions at once: a JobMaster that recovers does not list what it is about to ask for."""

    def synchronise(self, s, j, e):
        """Whether or not it recovers."""
        PartitionLifecycle.synchronise(self, s, j, e)


class FlinkEndlessRecovery(FlinkAllRepairs, variant="flink-endless-recovery"):
    """The recovery of the JobMaster has no time-out: it may wait for reports for ever."""

    @action(j="jobs")
    def stop_recovering(self, s, j):
        """Enough reports."""
        super().stop_recovering(s, j)
