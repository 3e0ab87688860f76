"""What the log of Flink's `CheckpointCoordinator` shows of checkpoints: each one's beginning and end, and restores.

The rules by which checkpoints end are those of `checkpoints`. This is the machine that follows logs.

Plans, acknowledgements and notifications are not logged at INFO, and are left out. What the coordinator logs inside its
lock is one action; the line "Triggering checkpoint" is written after the lock is released, so that the line about the end
of the checkpoint may overtake it (`create` without a line, then `announce`).

Flink looks at the job in one critical section and adds the pending checkpoint in the next one (variant
`checks-then-creates` of `checkpoints`). So a checkpoint may be added just after a restart, or the end of the job, has
aborted all: it is *stray*, and its end is logged or not.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Model, Range, State, action, require
from streamproof_models.checkpoints.rules import CheckpointRules


class CheckpointViews(CheckpointRules, Model):
    """The checkpoints of one job. Each pending one has a place; ids are those of the log, 0 is no checkpoint."""

    name = "checkpoint_views"
    check_deadlock = False
    """Nothing has to happen."""
    sizes = {"small": {}, "medium": {"ids": 4, "places": 3}}

    ids: int = 3
    """Largest id."""
    places: int = 2
    """Largest number of checkpoints that are pending at a time."""
    late: bool = False
    """Whether the record may begin after the job."""
    silent: bool = False
    """Whether a checkpoint that a restart or the end of the job aborts has no line about it (Flink before 1.16)."""
    savepoints: bool = False
    """Whether a savepoint may be the latest checkpoint (Flink before 1.15)."""
    instance_bounds = ("ids", "places")
    limits = {"ids": (1, None), "places": (1, None)}

    # --- rules that variants change

    ids_are_new = True
    """A checkpoint gets an id after all earlier ones."""
    restores_last = True
    """A restart goes on from the latest completed checkpoint."""

    def setup(self):
        """Domains of actions."""
        self.every = range(1, self.ids + 1)
        self.any_or_none = range(self.ids + 1)
        self.keys = range(self.places)

    def state(self):
        """Nothing was triggered."""
        checkpoint = Range(0, self.ids)
        return State(
            pending=Array(self.places, checkpoint),
            checkpoint=Array(self.places, Enum("NONE", "PENDING", "ABORTED")),  # ABORTED: its line is still to come
            stray=Array(self.places, Bool()),  # aborted by a restart or the end of the job; it may have no line
            savepoint=Array(self.places, Bool()),
            first=checkpoint,  # the first one whose beginning is in the record
            last=checkpoint,
            latest=checkpoint,  # `getLatestCheckpoint`
            restored=checkpoint,  # from which the job goes on
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
        require(c > s.last or not self.ids_are_new)
        require(s.checkpoint[p] == "NONE" and all(s.checkpoint[q] != "NONE" for q in range(p)))
        s.checkpoint[p] = "PENDING"
        s.pending[p] = c
        s.last = c
        if s.first == 0:
            s.first = c

    # --- end

    @action(c="every", p="places", stored=(False, True))
    def complete(self, s, c, p, stored):
        """`completePendingCheckpoint`: it is the latest unless it is a savepoint; earlier pending ones will be aborted."""
        require(self.is_pending(s, p) and s.pending[p] == c and s.unannounced != c)
        require(stored != s.savepoint[p] or (stored and self.savepoints))
        if stored:
            s.latest = c
            self.drop_subsumed(s, p)
        self.free(s, p)

    def is_before(self, s, earlier, c):
        """Savepoints are not subsumed."""
        return s.pending[earlier] < s.pending[c] and not s.savepoint[earlier]

    @action(c="every", p="places")
    def abort(self, s, c, p):
        """`abortPendingCheckpoint`: it is pending, or was aborted before."""
        require(s.pending[p] == c)
        if s.checkpoint[p] != "ABORTED":
            self.expire(s, p)
        self.free(s, p)

    def free(self, s, p):
        """Nothing of the checkpoint remains."""
        s.fresh = 0
        s.checkpoint[p] = "NONE"
        s.stray[p] = False
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
        require((c == s.latest or not self.restores_last) and not s.over)
        self.all_over(s)
        s.restored = c
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
        s.restored = c
        s.last = max(s.last, c)

    @action
    def change_leader(self, s):
        """The JobMaster gives up its leadership, or another one begins: what it had pending is aborted, with lines or
        without."""
        self.lose_all(s)
        s.foreign = True
        s.over = False

    @action
    def end(self, s):
        """The job has ended, and its coordinator with it."""
        self.all_over(s)
        s.over = True

    def all_over(self, s):
        """No checkpoint is pending, but for one that the last line has triggered, which is stray from now on."""
        ended = all(s.checkpoint[p] == "NONE" or s.stray[p] or s.pending[p] == s.fresh for p in range(self.places))
        require(self.silent or ended)
        self.lose_all(s)

    def lose_all(self, s):
        """What is pending is aborted."""
        self.abort_pending(s)
        for p in range(self.places):
            s.stray[p] = s.checkpoint[p] != "NONE"
        s.fresh = 0
