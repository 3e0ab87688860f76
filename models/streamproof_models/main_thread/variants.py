"""Variants of `main_thread`: the work of Flink 1.12, and cures, of which some are none."""

from __future__ import annotations

from streamproof_models.main_thread.machine import MainThread


class EdgeByEdge(MainThread, variant="edge-by-edge"):
    """Descriptors are made for each task alone, and the restart set looks at each pair of tasks (Flink 1.12)."""

    def deployment_work(self):
        """A descriptor for each pair of a producer and a consumer."""
        return self.parallelism * self.parallelism

    def restart_work(self):
        """A visit for each pair."""
        return self.parallelism * self.parallelism


class Uncached(EdgeByEdge, variant="uncached"):
    """Restart sets by groups, descriptors without a cache."""

    def restart_work(self):
        """By groups."""
        return 2 * self.parallelism


class Ungrouped(EdgeByEdge, variant="ungrouped"):
    """Cached descriptors, restart sets pair by pair."""

    def deployment_work(self):
        """Cached."""
        return self.parallelism


class LongestRunnable(MainThread, variant="longest-runnable"):
    """The heartbeat time-out is made for the longest runnable alone."""

    def least_timeout(self):
        """An interval and a restart set."""
        return self.interval + 2 * self.parallelism


class OneRunnable(MainThread, variant="one-runnable"):
    """A failover computes the restart set and deploys in one runnable."""

    def after_restart(self, s):
        """At once, if there are enough executors."""
        super().after_restart(s)
        if sum(int(r) for r in s.registered) >= self.needed:
            self.begin_deployment(s)


class NotCancelled(MainThread, variant="not-cancelled"):
    """An answer does not cancel a time-out that waits behind it."""

    def wait_for_answer(self, s, x):
        """The time-out comes while the answer waits."""
        s.silent[x] = min(s.silent[x] + 1, self.timeout)


class Forgiving(EdgeByEdge, variant="forgiving"):
    """The JobMaster does not count the time in which it is busy itself."""

    def wait_for_answer(self, s, x):
        """Only while it is free."""
        if s.doing == "NOTHING":
            super().wait_for_answer(s, x)


class NoTimeouts(EdgeByEdge, variant="no-timeouts"):
    """Nobody is ever taken for dead."""

    def has_missed(self, s, x):
        """Never."""
        return False

    def has_timed_out(self, s, x):
        """Never."""
        return False


class HeartbeatThread(EdgeByEdge, variant="heartbeat-thread"):
    """A thread of its own sends requests and receives answers."""

    undisturbed = True

    def hears(self, s):
        """Always."""
        return True


class Offloaded(EdgeByEdge, variant="offloaded"):
    """Another thread makes descriptors and restart sets; the main thread takes the result, if it is still current."""

    undisturbed = True

    def is_free(self, s):
        """Also meanwhile."""
        return not s.hung


class OffloadedUnchecked(Offloaded, variant="offloaded-unchecked"):
    """The same, and the main thread does not ask whether the result is current."""

    def forget_choice(self, s, x):
        """The executor stays chosen."""

    def is_current(self, s):
        """Not asked."""
        return True


class OneByOne(EdgeByEdge, variant="one-by-one"):
    """The work for each task is a message of its own, which goes to the end of the mailbox."""

    def is_free(self, s):
        """Also between two tasks."""
        return not s.hung and (s.doing == "NOTHING" or s.work % self.parallelism == 0)
