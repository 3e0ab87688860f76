"""The election of Raft with what a real server has beside it: a log, for which it may withhold its vote."""

from streamproof import action, choose, require
from streamproof_models.reference.raft_election import RaftElection


class ElectionWithLogs(RaftElection):
    """`reference.raft_election`, in which a server need not vote for a candidate whose log is behind its own."""

    name = "election_with_logs"
    instance_bounds = ("terms",)

    @action(i="server")
    def receive_request(self, s, i):
        """A server learns of a later term, and votes for the first candidate of its term whose log is not behind its own."""
        request = choose(s.requests)
        behind = choose([False, True])
        require(request.candidate != i and request.term >= s.term[i])
        if request.term > s.term[i]:
            s.term[i], s.role[i], s.voted_for[i] = request.term, "follower", None
        if s.voted_for[i] in (None, request.candidate) and not behind:
            s.voted_for[i] = request.candidate
            s.grants.add({"term": request.term, "voter": i, "candidate": request.candidate})
