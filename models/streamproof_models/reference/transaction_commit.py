"""What committing a transaction means, apart from any protocol: resource managers commit all together, or abort.

Jim Gray and Leslie Lamport, "Consensus on Transaction Commit", ACM TODS 31(1), 2006: the specification that two-phase
commit refines. Published: 34 states with three resource managers. Resource managers are interchangeable.
"""

from __future__ import annotations

from streamproof import Array, Enum, Model, State, Symmetric, action, invariant, require, terminal


class TransactionCommit(Model):
    """A resource manager may prepare; it commits once all are prepared or committed, and aborts while none has committed."""

    name = "reference.transaction_commit"
    resource_managers: int = 3
    sizes = {
        "small": {"resource_managers": 3},
        "medium": {"resource_managers": 6},
        "large": {"resource_managers": 10},
    }

    def setup(self):
        self.managers = Symmetric(self.resource_managers, "rm")

    def state(self):
        return State(manager=Array(self.managers, Enum("working", "prepared", "committed", "aborted")))

    @action(r="managers")
    def prepare(self, s, r):
        """Resource manager `r` can commit from now on."""
        require(s.manager[r] == "working")
        s.manager[r] = "prepared"

    @action(r="managers")
    def commit(self, s, r):
        """Everyone is prepared, or has committed already."""
        require(s.manager[r] == "prepared")
        require(all(m in ("prepared", "committed") for m in s.manager))
        s.manager[r] = "committed"

    @action(r="managers")
    def abort(self, s, r):
        """Nobody has committed."""
        require(s.manager[r] in ("working", "prepared"))
        require(all(m != "committed" for m in s.manager))
        s.manager[r] = "aborted"

    @terminal
    def decided(self, s):
        """Everyone has committed or aborted."""
        return all(m in ("committed", "aborted") for m in s.manager)

    @invariant
    def consistent(self, s):
        """No resource manager has aborted while another has committed."""
        return not (any(m == "committed" for m in s.manager) and any(m == "aborted" for m in s.manager))
