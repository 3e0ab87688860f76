"""Records that span buffers: each is delivered whole, none is lost without a failure, and no more than must be with one."""

from __future__ import annotations

from streamproof import Spec, invariant, reachable
from streamproof_models.credit.spans import RecordSpans


@invariant
def whole_records(m, s):
    """A deserialiser gathers the units of one record, from its first to its last."""
    return not s.garbled


@invariant
def nothing_lost(m, s):
    """In the end every record of a channel without a failure was delivered."""
    return not m.over(s) or all(s.lost[c] or s.delivered[c] == len(m.length_of) for c in m.every)


@invariant
def only_rest_skipped(m, s):
    """After a failure a sender leaves out the rest of a record, and nothing that begins after it."""
    return not s.left_out


@reachable
def goes_on_after_failure(m, s):
    """A channel delivers records after a failure."""
    return m.over(s) and any(s.lost[c] and s.delivered[c] > 0 for c in m.every)


SPEC = Spec(
    RecordSpans,
    properties=(whole_records, nothing_lost, only_rest_skipped, goes_on_after_failure),
    expected={
        "shared-deserialiser": {"whole_records": "violated"},
        "partial-kept": {"whole_records": "violated"},
        "rest-not-skipped": {"whole_records": "violated"},
        "buffer-skipped": {"only_rest_skipped": "violated"},
        "dropped-when-full": {"whole_records": "violated", "nothing_lost": "violated"},
        "no-spanning": {"deadlock": "violated", "goes_on_after_failure": "violated"},
    },
)
