"""Leader election of Raft: terms, votes and the messages for them.

Diego Ongaro and John Ousterhout, "In search of an understandable consensus algorithm", USENIX ATC 2014. Logs are left out.
Messages are kept in sets and never removed: they may be lost, duplicated and reordered. Servers may crash.
"""

from streamproof import Array, Enum, Model, Option, Range, Record, Set, State, Symmetric
from streamproof import action, choose, constraint, invariant, reachable, require


class RaftElection(Model):
    """A server grants one vote in a term; a candidate with the votes of a majority is the leader of its term."""

    name = "reference.raft_election"
    servers: int = 3
    terms: int = 2
    sizes = {"small": {"terms": 1}, "medium": {"terms": 2}, "large": {"terms": 3}}

    def setup(self):
        self.server = Symmetric(self.servers, "server")

    def state(self):
        term = Range(0, self.terms + 1)
        return State(
            role=Array(self.server, Enum("follower", "candidate", "leader")),
            term=Array(self.server, term),
            voted_for=Array(self.server, Option(self.server)),
            votes=Array(self.server, Set(self.server)),
            requests=Set(Record(term=term, candidate=self.server)),
            grants=Set(Record(term=term, voter=self.server, candidate=self.server)),
            elected=Array(range(self.terms + 2), Set(self.server)),
        )

    @action(i="server")
    def time_out(self, s, i):
        """A server that hears of no leader becomes candidate in a new term, and votes for itself."""
        require(s.role[i] != "leader")
        s.term[i] += 1
        s.role[i], s.voted_for[i], s.votes[i] = "candidate", i, {i}
        s.requests.add({"term": s.term[i], "candidate": i})

    @action(i="server")
    def receive_request(self, s, i):
        """A server votes for the first candidate of a term that asks, in its own term or a later one."""
        request = choose(s.requests)
        require(request.candidate != i and request.term >= s.term[i])
        if request.term > s.term[i]:
            s.term[i], s.role[i], s.voted_for[i] = request.term, "follower", None
        if s.voted_for[i] in (None, request.candidate):
            s.voted_for[i] = request.candidate
            s.grants.add({"term": request.term, "voter": i, "candidate": request.candidate})

    @action(i="server")
    def receive_vote(self, s, i):
        """A candidate counts a vote; with a majority it is the leader."""
        grant = choose(s.grants)
        require(s.role[i] == "candidate" and grant.candidate == i and grant.term == s.term[i])
        s.votes[i].add(grant.voter)
        if 2 * len(s.votes[i]) > self.servers:
            s.role[i] = "leader"
            s.elected[s.term[i]].add(i)

    @action(i="server")
    def restart(self, s, i):
        """A server crashes and starts again with what is on disk: its term and its vote."""
        s.role[i] = "follower"
        s.votes[i] = set()

    @constraint
    def few_terms(self, s):
        return all(term <= self.terms for term in s.term)

    @invariant
    def election_safety(self, s):
        """At most one leader is elected in a term."""
        return all(len(leaders) <= 1 for leaders in s.elected)

    @reachable
    def led(self, s):
        """There is a leader in every term."""
        return all(len(s.elected[term]) > 0 for term in range(1, self.terms + 1))


class ForgetsItsVote(RaftElection, variant="forgets-its-vote"):
    """The vote is not on disk."""

    def restart(self, s, i):
        super().restart(s, i)
        s.voted_for[i] = None
