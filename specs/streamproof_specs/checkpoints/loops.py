"""Properties of the checkpoints of a loop: nothing is lost or doubled by a restart, checkpoints complete, the loop ends."""

from __future__ import annotations

from streamproof import Spec, always, eventually, invariant, leads_to, temporal
from streamproof_models.checkpoints import loops_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.checkpoints.loops import LoopCheckpoints


def in_loop(s, r):
    """How often a record is on an edge."""
    return sum(int(i.kind == "RECORD" and i.of == r) for edge in (s.forward, s.inner, s.back) for i in edge)


@invariant
def exactly_once(m, s):
    """A record that the source has sent is on one edge, or has left the loop once; no other record is anywhere."""
    return all(in_loop(s, r) + s.out[r] == int(r <= s.emitted) for r in m.every)


@invariant
def in_order(m, s):
    """The head reads the records of the feedback edge in the order in which the body has sent them, without a gap."""
    odd = s.read_odd
    for i in s.back:
        if i.kind == "RECORD":
            if i.odd != odd:
                return False
            odd = not odd
    return odd == s.sent_odd


@invariant
def consistent(m, s):
    """In a completed checkpoint a record that the source has sent is in the log, or has left the loop once."""
    return all(
        sum(int(i.of == r) for i in s.stored.log) + s.stored.out[r] == int(r <= s.stored.emitted) for r in m.every
    )


@invariant
def published_once(m, s):
    """No output is published twice."""
    return all(s.published[r] <= 1 for r in m.every)


@invariant
def published_kept(m, s):
    """No restart undoes what is published."""
    return all(s.published[r] <= s.out[r] for r in m.every)


@invariant
def ends_empty(m, s):
    """A loop that has ended contains no record, and all output is published."""
    return s.phase != "TERMINATED" or all(in_loop(s, r) == 0 and s.published[r] == 1 for r in m.every)


@temporal
def completes(m, s):
    """A pending checkpoint completes, unless it is aborted, the job restarts or the loop ends."""
    return leads_to(s.pending != 0, s.pending == 0)


@temporal
def ends(m, s):
    """If all records leave the loop for good, the loop ends."""
    return always(eventually(not all(s.out[r] == 1 for r in m.every))) or eventually(s.phase == "TERMINATED")


ONE_RECORD = (
    *(
        "not-replayed",
        "log-not-stored",
        "snapshot-at-return",
        "begins-early",
        "begins-late",
        "ends-early",
        "logs-writes",
    ),
    *("aborted-log-kept", "barrier-overtakes", "replayed-twice", "replay-unlogged"),
)
"""Variants that are refuted with one record, of which some double it again and again."""
LOST = ("exactly_once", "in_order", "consistent", "ends_empty")
DOUBLED = (*LOST, "published_once", "ends")

SPEC = Spec(
    LoopCheckpoints,
    properties=(exactly_once, in_order, consistent, published_once, published_kept, ends_empty, completes, ends),
    expected={
        "not-replayed": dict.fromkeys(LOST, "violated"),
        "log-not-stored": dict.fromkeys(LOST, "violated"),
        "snapshot-at-return": dict.fromkeys(("exactly_once", "consistent", "ends_empty"), "violated"),
        "begins-early": dict.fromkeys(DOUBLED, "violated"),
        "begins-late": dict.fromkeys(LOST, "violated"),
        "ends-early": dict.fromkeys(LOST, "violated"),
        "logs-writes": dict.fromkeys(LOST, "violated"),
        "aborted-log-kept": dict.fromkeys(DOUBLED, "violated"),
        "barrier-overtakes": dict.fromkeys(LOST, "violated"),
        "replayed-twice": dict.fromkeys(DOUBLED, "violated"),
        "replay-unlogged": {"consistent": "violated"},
        "replayed-behind": dict.fromkeys(("in_order", "consistent", "ends_empty"), "violated"),
        "aligned": dict.fromkeys(("completes", "ends", "deadlock"), "violated"),
        "waits-until-empty": {"completes": "violated"},
        "feedback-first": {"completes": "violated"},
        "published-at-snapshot": {"published_kept": "violated"},
        "baton-not-logged": dict.fromkeys(("ends", "deadlock"), "violated"),
        "mark-forgotten": {"ends_empty": "violated"},
        "replay-unmarked": {"ends_empty": "violated"},
        "end-remembered": {"ends_empty": "violated"},
    },
    variant_parameters={variant: {"records": 1} for variant in ONE_RECORD},
)
