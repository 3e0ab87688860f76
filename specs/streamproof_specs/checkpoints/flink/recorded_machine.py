"""What the log of Flink's `CheckpointCoordinator` shows of `checkpoints`: each checkpoint's beginning and end, and restores.

Plans, acknowledgements and notifications are not logged at INFO, and are left out. What the coordinator logs inside its
lock is one action; the line "Triggering checkpoint" is written after the lock is released, so that the line about the end
of the checkpoint may overtake it (`create` without a line, then `announce`).

Flink looks at the job in one critical section and adds the pending checkpoint in the next one (variant
`checks-then-creates` of `checkpoints`). So a checkpoint may be added just after a restart, or the end of the job, has
aborted all: it is *stray*, and its end is logged or not.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Model, Range, State, action, require

_OPEN = ("PENDING", "SUBSUMED", "STRAY")


class RecordedCheckpoints(Model):
    """The checkpoints of one job. Each pending one has a place; ids are those of the log, 0 is no checkpoint."""

    name = "checkpoints"
    ids: int = 4
    """Largest id."""
    places: int = 2
    """Largest number of checkpoints that are pending at a time."""
    late: bool = False
    """Whether the record may begin after the job."""
    silent: bool = False
    """Whether a checkpoint that a restart or the end of the job aborts has no line about it (Flink before 1.16)."""
    savepoints: bool = False
    """Whether a savepoint may be the latest checkpoint (Flink before 1.15)."""

    def setup(self):
        """Domains of actions."""
        self.every = range(1, self.ids + 1)
        self.any_or_none = range(self.ids + 1)

    def state(self):
        """Nothing was triggered."""
        checkpoint = Range(0, self.ids)
        return State(
            pending=Array(self.places, checkpoint),
            status=Array(self.places, Enum("FREE", *_OPEN)),
            savepoint=Array(self.places, Bool()),
            first=checkpoint,  # the first one whose beginning is in the record
            last=checkpoint,
            latest=checkpoint,  # `getLatestCheckpoint`
            fresh=checkpoint,  # triggered by the last line, 0 if that was another line
            unannounced=checkpoint,  # whose line "Triggering checkpoint" is still to come
            from_savepoint=Bool(),  # the job starts from a savepoint, which is not loaded yet
            foreign=Bool(),  # another JobMaster may have completed checkpoints since the last line
            over=Bool(),  # the job has ended: nothing is restored
            settled=Bool(),  # tasks were restored: no checkpoint from before the record is pending
        )

    # --- beginning

    @action(c="every", p="places", savepoint=(False, True))
    def trigger(self, s, c, p, savepoint):
        """`createPendingCheckpoint`, with its line."""
        self.add(s, c, p)
        s.savepoint[p] = savepoint
        s.fresh = c

    @action(c="every", p="places")
    def create(self, s, c, p):
        """`createPendingCheckpoint`, whose line comes later."""
        require(s.unannounced == 0)
        self.add(s, c, p)
        s.unannounced = c

    @action(c="every")
    def announce(self, s, c):
        """The late line."""
        require(s.unannounced == c)
        s.unannounced = 0
        s.fresh = 0

    def add(self, s, c, p):
        """A pending checkpoint, in the first free place: ids rise."""
        require(c > s.last)
        require(s.status[p] == "FREE" and all(s.status[q] != "FREE" for q in range(p)))
        s.status[p] = "PENDING"
        s.pending[p] = c
        s.last = c
        if s.first == 0:
            s.first = c

    # --- end

    @action(c="every", p="places", stored=(False, True))
    def complete(self, s, c, p, stored):
        """`completePendingCheckpoint`: it is the latest unless it is a savepoint; earlier pending ones will be aborted."""
        require(s.status[p] == "PENDING" and s.pending[p] == c and s.unannounced != c)
        require(stored != s.savepoint[p] or (stored and self.savepoints))
        if stored:
            self.store(s, c)
        self.free(s, p)

    def store(self, s, c):
        """`addCheckpointAndSubsumeOldestOne`, `dropSubsumedCheckpoints`."""
        s.latest = c
        for p in range(self.places):
            if s.status[p] == "PENDING" and s.pending[p] < c and not s.savepoint[p]:
                s.status[p] = "SUBSUMED"

    @action(c="every", p="places")
    def abort(self, s, c, p):
        """`abortPendingCheckpoint`."""
        require(s.status[p] in _OPEN and s.pending[p] == c)
        self.free(s, p)

    def free(self, s, p):
        """Nothing of the checkpoint remains."""
        s.fresh = 0
        s.status[p] = "FREE"
        s.pending[p] = 0
        s.savepoint[p] = False

    @action(c="every", stored=(False, True))
    def complete_earlier(self, s, c, stored):
        """A checkpoint from before the record completes (`stored`: it is no savepoint)."""
        require(self.is_earlier(s, c) and not s.settled)
        s.fresh = 0
        if stored:
            s.latest = max(s.latest, c)

    @action(c="every")
    def abort_earlier(self, s, c):
        """A checkpoint from before the record is aborted; a stray one after tasks were restored, too."""
        require(self.is_earlier(s, c))
        s.fresh = 0

    def is_earlier(self, s, c):
        """Whether a checkpoint may have been triggered before the record began."""
        return self.late and (s.first == 0 or c < s.first)

    # --- restores

    @action
    def start_from_savepoint(self, s):
        """`restoreSavepoint` begins."""
        s.from_savepoint = True
        s.fresh = 0

    @action
    def change_job(self, s):
        """The job changes its state."""
        s.fresh = 0

    @action(c="any_or_none")
    def restore(self, s, c):
        """`restoreLatestCheckpointedStateInternal`: the latest completed checkpoint. All pending ones were aborted before."""
        require(c == s.latest and not s.over)
        self.all_over(s)
        s.foreign = False
        s.settled = True

    @action(c="every")
    def load(self, s, c):
        """The savepoint that the job starts from, or a checkpoint that the record does not have: now the latest."""
        require(c > s.latest and not s.over)
        earlier = self.is_earlier(s, c) and not s.settled
        starts = s.latest == 0 and ((s.from_savepoint and s.first == 0) or earlier)
        require(starts or s.foreign)
        self.all_over(s)
        s.from_savepoint = False
        s.foreign = False
        s.settled = True
        s.latest = c
        s.last = max(s.last, c)

    @action
    def change_leader(self, s):
        """The JobMaster gives up its leadership, or another one begins: what it had pending is aborted, with lines or
        without."""
        self.stray(s)
        s.foreign = True
        s.over = False

    @action
    def end(self, s):
        """The job has ended, and its coordinator with it."""
        self.all_over(s)
        s.over = True

    def all_over(self, s):
        """No checkpoint is pending, but for one that the last line has triggered, which is stray from now on."""
        require(
            self.silent or all(s.status[p] in ("FREE", "STRAY") or s.pending[p] == s.fresh for p in range(self.places))
        )
        self.stray(s)

    def stray(self, s):
        """What is pending is aborted, or will be."""
        for p in range(self.places):
            if s.status[p] != "FREE":
                s.status[p] = "STRAY"
        s.fresh = 0
