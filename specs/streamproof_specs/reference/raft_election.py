"""Raft without a vote on disk, which elects two leaders in one term."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference.raft_election import RaftElection

SPEC = Spec(
    RaftElection,
    expected={"forgets-its-vote": {"election_safety": "violated"}},
    variant_parameters={"forgets-its-vote": {"terms": 1}},
)
