"""Two-phase commit: resource managers and a transaction manager agree to commit or to abort.

Jim Gray and Leslie Lamport, "Consensus on Transaction Commit", ACM TODS 31(1), 2006. Messages are never lost or
consumed: a message that was sent once can be received any number of times. Published: 288 states, 1,146 generated,
depth 11 with three resource managers; 61,515,776 states with ten. Resource managers are interchangeable.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Model, Set, State, Symmetric, action, invariant, require


class TwoPhaseCommit(Model):
    """The transaction manager commits when every resource manager is prepared; any of them may abort before."""

    name = "reference.two_phase_commit"
    resource_managers: int = 3
    sizes = {
        "small": {"resource_managers": 3},
        "medium": {"resource_managers": 6},
        "large": {"resource_managers": 10},
    }

    def setup(self):
        self.managers = Symmetric(self.resource_managers, "rm")

    def state(self):
        return State(
            manager=Array(self.managers, Enum("working", "prepared", "committed", "aborted")),
            transaction=Enum("undecided", "committed", "aborted"),
            heard=Set(self.managers),
            prepared_sent=Set(self.managers),
            commit_sent=Bool(),
            abort_sent=Bool(),
        )

    @action(r="managers")
    def hear_prepared(self, s, r):
        """The transaction manager notes that `r` is prepared."""
        require(s.transaction == "undecided")
        require(r in s.prepared_sent)
        s.heard.add(r)

    @action
    def decide_commit(self, s):
        """Everyone is prepared: commit."""
        require(s.transaction == "undecided")
        require(len(s.heard) == self.resource_managers)
        s.transaction = "committed"
        s.commit_sent = True

    @action
    def decide_abort(self, s):
        """The transaction manager may abort on its own."""
        require(s.transaction == "undecided")
        s.transaction = "aborted"
        s.abort_sent = True

    @action(r="managers")
    def prepare(self, s, r):
        """Resource manager `r` can commit, and says so."""
        require(s.manager[r] == "working")
        s.manager[r] = "prepared"
        s.prepared_sent.add(r)

    @action(r="managers")
    def refuse(self, s, r):
        """Resource manager `r` aborts on its own; it need not notify anyone."""
        require(s.manager[r] == "working")
        s.manager[r] = "aborted"

    @action(r="managers")
    def obey_commit(self, s, r):
        """The decision reaches `r`."""
        require(s.commit_sent)
        s.manager[r] = "committed"

    @action(r="managers")
    def obey_abort(self, s, r):
        """The decision reaches `r`."""
        require(s.abort_sent)
        s.manager[r] = "aborted"

    @invariant
    def consistent(self, s):
        """No resource manager has aborted while another has committed."""
        return not (any(m == "committed" for m in s.manager) and any(m == "aborted" for m in s.manager))
