"""Variants of `loop_checkpoints`: other readings of "upstream logging", and rules left out."""

from __future__ import annotations

from streamproof import WEAK, Bool, Enum, Range, State, action, require
from streamproof_models.checkpoints.loops import LoopCheckpoints

# --- the log


class NotReplayed(LoopCheckpoints, variant="not-replayed"):
    """The log is in the checkpoint, but a restart does not replay it."""

    def replay(self, s):
        """The feedback edge is empty."""
        s.back.clear()


class LogNotStored(LoopCheckpoints, variant="log-not-stored"):
    """The head acknowledges with its own snapshot; the log is not part of the checkpoint."""

    def depart(self, s, c):
        """The head does not wait for the return of the barrier."""
        super().depart(s, c)
        if s.pending == c:
            s.acknowledged["HEAD"] = True

    def arrive(self, s, c):
        """The log is not sent."""
        if s.logging == c:
            self.end_log(s)


class NoLog(LoopCheckpoints, variant="snapshot-at-return"):
    """The head takes its snapshot when the barrier returns, and needs no log, as it seems."""

    def depart(self, s, c):
        """The barrier is sent on."""
        s.logging = c

    def log_read(self, s):
        """Nothing."""

    def arrive(self, s, c):
        """The snapshot."""
        if s.pending == c:
            s.taken.read_odd = s.read_odd
        super().arrive(s, c)


class BeginsEarly(LoopCheckpoints, variant="begins-early"):
    """The log begins when the checkpoint is triggered, before the barrier departs."""

    copies = 2

    @action
    def trigger(self, s):
        """The head is told at once."""
        super().trigger(s)
        super().begin_log(s, s.last_id)

    def begin_log(self, s, c):
        """It has begun."""

    def log_read(self, s):
        """A record that goes around before the barrier departs would be logged each time; once is enough."""
        if all(i.of != s.back.head.of for i in s.log):
            super().log_read(s)


class BeginsLate(LoopCheckpoints, variant="begins-late"):
    """The log begins when the body has taken its snapshot."""

    def begin_log(self, s, c):
        """Not yet."""

    def send_barrier(self, s, c):
        """The barrier is on the feedback edge."""
        super().send_barrier(s, c)
        super().begin_log(s, c)


class EndsEarly(LoopCheckpoints, variant="ends-early"):
    """The log ends when the body has taken its snapshot, before the barrier has returned."""

    def send_barrier(self, s, c):
        """The head is told at once."""
        super().arrive(s, c)
        super().send_barrier(s, c)

    def arrive(self, s, c):
        """It has ended."""


class LogsEdge(LoopCheckpoints, variant="logs-edge"):
    """Another reading of upstream logging: the sender logs. The log has what is on the feedback edge when the barrier
    departs, and what the body sends back until it has taken its snapshot."""

    def begin_log(self, s, c):
        """What is on the edge; a barrier or a baton there belongs to an earlier checkpoint or attempt."""
        s.logging = c
        s.log = [i for i in s.back if i.kind == "RECORD"]

    def log_read(self, s):
        """Not by the reader."""

    def send_record(self, s, r):
        """What is sent is logged, until the barrier is sent."""
        if s.logging != 0:
            s.log.push({"kind": "RECORD", "of": r, "odd": s.sent_odd})
        super().send_record(s, r)

    def send_barrier(self, s, c):
        """The log is complete."""
        super().arrive(s, c)
        super().send_barrier(s, c)

    def arrive(self, s, c):
        """Nothing depends on the return of the barrier."""


class LogsWrites(LogsEdge, variant="logs-writes"):
    """The same, without what is on the edge when the barrier departs."""

    def begin_log(self, s, c):
        """An empty log."""
        s.logging = c
        s.log.clear()


class AbortedLogKept(LoopCheckpoints, variant="aborted-log-kept"):
    """The log of an aborted checkpoint is kept when the next barrier departs."""

    copies = 2

    def begin_log(self, s, c):
        """It is not emptied."""
        s.logging = c


class BarrierOvertakes(LoopCheckpoints, variant="barrier-overtakes"):
    """The barrier overtakes the records on the feedback edge."""

    def send_barrier(self, s, c):
        """It is the first to be read."""
        s.back.insert(0, {"kind": "BARRIER", "of": c, "odd": False})


# --- the replay


class ReplayedTwice(LoopCheckpoints, variant="replayed-twice"):
    """The log is replayed by the head and by the feedback channel."""

    copies = 2

    def replay(self, s):
        """Twice."""
        s.back = list(s.stored.log) + list(s.stored.log)


class ReplayUnlogged(LoopCheckpoints, variant="replay-unlogged"):
    """Records that are replayed are not logged again while a barrier is away."""

    def state(self):
        """Also: how many items of the log are still to be read."""
        return State(**dict(super().state().items()), unread=Range(0, self.room))

    def replay(self, s):
        """All of the log."""
        super().replay(s)
        s.unread = len(s.stored.log)

    def log_read(self, s):
        """Only what the body has sent since the restart."""
        if s.unread > 0:
            s.unread -= 1
        else:
            super().log_read(s)


class ReplayedBehind(ReplayUnlogged, variant="replayed-behind"):
    """What the body sends after a restart is read before the log."""

    def send_back(self, s, item):
        """In front of the log."""
        s.back.insert(len(s.back) - s.unread, item)

    def log_read(self, s):
        """The log is the last to be read; it is logged again."""
        LoopCheckpoints.log_read(self, s)
        if s.unread == len(s.back):
            s.unread -= 1


# --- the barrier


class Aligned(LoopCheckpoints, variant="aligned"):
    """The head aligns barriers on all its inputs, the feedback edge included."""

    def may_depart(self, s):
        """Not before the barrier has come on the feedback edge."""
        return len(s.back) > 0 and s.back.head.kind == "BARRIER"


class WaitsUntilEmpty(LoopCheckpoints, variant="waits-until-empty"):
    """The head lets the barrier in when the loop contains no record: then nothing has to be logged."""

    def may_depart(self, s):
        """Nothing is in the loop."""
        return len(s.inner) == 0 and len(s.back) == 0


class FeedbackFirst(LoopCheckpoints, variant="feedback-first"):
    """The head reads its forward input only if nothing waits on the feedback edge."""

    def take_forward(self, s, kind):
        """The feedback edge goes first."""
        super().take_forward(s, kind)
        require(len(s.back) == 0)


class PublishedAtSnapshot(LoopCheckpoints, variant="published-at-snapshot"):
    """The body publishes its output with its snapshot."""

    def prepare(self, s):
        """The checkpoint is not complete."""
        self.publish(s, s.out)


# --- attempts to end the loop


class AttemptResumed(LoopCheckpoints, variant="attempt-resumed"):
    """Another reading: an attempt is part of the snapshots, and its baton of the log; a restart goes on with it."""

    def state(self):
        """Also: what the snapshots have of an attempt."""
        phase = Enum("RUNNING", "ATTEMPTING", "TERMINATED")
        return State(
            **dict(super().state().items()),
            taken_ended=Bool(),
            taken_phase=phase,
            taken_dirty=Bool(),
            stored_ended=Bool(),
            stored_phase=phase,
            stored_dirty=Bool(),
        )

    @action
    def trigger(self, s):
        """The source's part."""
        super().trigger(s)
        s.taken_ended = s.ended

    def depart(self, s, c):
        """The head's part."""
        if s.pending == c:
            s.taken_phase = s.phase
            s.taken_dirty = s.dirty
        super().depart(s, c)

    @action(fairness=WEAK)
    def complete(self, s):
        """With the rest of the checkpoint."""
        s.stored_ended = s.taken_ended
        s.stored_phase = s.taken_phase
        s.stored_dirty = s.taken_dirty
        super().complete(s)

    def drop(self, s):
        """No checkpoint is pending."""
        super().drop(s)
        s.taken_ended = False
        s.taken_phase = "RUNNING"
        s.taken_dirty = False

    @action(fairness=WEAK)
    def return_baton(self, s):
        """A baton is logged like a record."""
        self.take_back(s, "BATON")
        self.log_read(s)
        super().return_baton(s)

    def restart_attempt(self, s):
        """The attempt goes on."""
        s.ended = s.stored_ended
        s.phase = s.stored_phase
        s.dirty = s.stored_dirty


class BatonNotLogged(AttemptResumed, variant="baton-not-logged"):
    """A restart goes on with an attempt whose baton is not in the log."""

    def replay(self, s):
        """The records only."""
        s.back = [i for i in s.stored.log if i.kind == "RECORD"]


class MarkForgotten(AttemptResumed, variant="mark-forgotten"):
    """A restart goes on with an attempt, but forgets that the head has read a record in between."""

    def restart_attempt(self, s):
        """Not dirty."""
        super().restart_attempt(s)
        s.dirty = False


class ReplayUnmarked(AttemptResumed, variant="replay-unmarked"):
    """A record that is replayed does not count as read in between."""

    def state(self):
        """Also: how many items of the log are still to be read."""
        return State(**dict(super().state().items()), unread=Range(0, self.room))

    def replay(self, s):
        """All of the log."""
        super().replay(s)
        s.unread = len(s.stored.log)

    def log_read(self, s):
        """One item less."""
        super().log_read(s)
        s.unread = max(s.unread - 1, 0)

    def note_record(self, s):
        """What is replayed has been in the loop before."""
        if s.unread == 0:
            super().note_record(s)


class EndRemembered(LoopCheckpoints, variant="end-remembered"):
    """The head remembers END across a restart, and sends a new baton at once."""

    def restart_attempt(self, s):
        """The attempt does not wait for the source, which sends its records again."""
        attempting = s.phase == "ATTEMPTING"
        super().restart_attempt(s)
        if attempting:
            s.ended = True
            s.phase = "ATTEMPTING"
            self.attempt(s)
