"""Safety of the baton for any number of records on a given graph: the argument of docs/protocols/baton.md as lemmas."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, temporal
from streamproof_models.baton import counts_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.baton.counts import BatonCounts
from streamproof_specs.baton.attempts import all_ways, ways_away
from streamproof_specs.baton.properties import SPEC as BATON
from streamproof_specs.baton.properties import (
    completed_once,
    heads_agree,
    no_early_end,
    nothing_lost,
    outer_first,
)
from streamproof_specs.baton.scoped_sweep import every_graph


@invariant
def batons_bounded(m, s):
    """A channel has one baton at a time, two where several heads of a scope meet."""
    return not s.excess


@invariant
def only_current(m, s):
    """Every baton on its way belongs to the current attempt of a head of its scope."""
    return all(
        s.baton[p] != kind
        or any(s.phase[h] == "ATTEMPTING" and s.id[h] == s.attempt[p] for h in m.routes.heads_of(baton.origin))
        for c in m.channels
        for kind, baton in m.batons[c].items()
        for p in m.places[c]
    )


@temporal
def ends_after_work(m, s):
    """When there is no record and every source has ended, every operator terminates."""
    return leads_to(
        s.records == 0 and all(s.phase[t] == "TERMINATED" for t in m.sources),
        all(s.phase[t] == "TERMINATED" for t in m.tasks),
    )


# --- batons and records at a place


def on(m, s, place):
    """Number of batons at a place: in the channel, or waiting behind it."""
    c, baton = place
    waits = arrived(m, s, place)
    return int(waits) + sum(int(s.baton[p] == str(baton)) for p in m.places[c])


def arrived(m, s, place):
    """Whether the receiver has the baton and waits for it on other inputs."""
    c, baton = place
    join = f"{baton} at {m.target[c]}"
    return s.arrived[m.waited[join][c]] if join in m.joins else False


def on_way(m, s, way):
    """Number of batons on a way."""
    return sum(on(m, s, p) for p in way)


def is_first(m, s, w, head, place):
    """Whether no baton is in front of a place, on the ways to a head: one at the place is of the attempt that it decides."""
    return len(w.heads) == 1 or all(on(m, s, p) == 0 for p in w.after[place] if p in w.leading[head])


def is_past(m, s, w, head, place):
    """Whether the baton of a head's attempt has left a place: it is in front."""
    return any(on(m, s, p) > 0 for p in w.after[place] if p in w.leading[head])


def is_idle(m, s, w, head):
    """Whether an attempt that a head will decide has found nothing so far: no baton is BUSY, no head noted a record."""
    return all(
        not is_first(m, s, w, head, p)
        or (
            all(s.baton[q] != str(p[1]) or not s.status[q] for q in m.places[p[0]])
            and all(not s.busy[join] for join in m.joins if join == f"{p[1]} at {m.target[p[0]]}")
        )
        for p in w.leading[head]
    ) and all(
        s.since_baton[k] != "DIRTY" or (k in w.heads and s.id[k] != s.id[head])
        for k in m.heads
        if any(w.receiver(p) == k for p in w.leading[head])
    )


def is_empty(m, s, c, behind=0):
    """Whether a channel has no record behind that many batons."""
    return all(s.count[q] == 0 for q in m.stretches[c][behind:])


# --- what every step keeps


@lemma
def conserved(m, s):
    """Each record is held, or in a channel."""
    return s.records == sum(s.held[o] for o in m.operators) + sum(
        s.count[q] for c in m.channels for q in m.stretches[c]
    )


@lemma
def ordered(m, s):
    """Channels are FIFO: batons have the first places, and no record is behind a baton that is not there."""
    return all(
        any(s.baton[p] == kind for kind in m.batons[c])
        or (s.baton[p] == "NONE" and not s.status[p] and s.attempt[p] == 0 and s.count[m.stretches[c][k + 1]] == 0)
        for c in m.channels
        for k, p in enumerate(m.places[c])
    ) and all(
        s.baton[p] != "NONE" or s.baton[q] == "NONE"
        for c in m.channels
        for p, q in zip(m.places[c], m.places[c][1:], strict=False)
    )


@lemma
def ended(m, s):
    """END is in a channel from the end of its sender to the start of its receiver's end, which has received all before it."""
    return all(
        s.end[c] == (s.phase[m.source[c]] == "TERMINATED" and s.phase[m.target[c]] == "RUNNING")
        and (s.phase[m.target[c]] == "RUNNING" or (s.phase[m.source[c]] == "TERMINATED" and s.count[c] == 0))
        if c in m.routes.inputs[m.target[c]]
        else not s.end[c]
        for c in m.channels
    ) and all(s.phase[t] != "ATTEMPTING" for t in m.tasks if t not in m.heads)


@lemma
def one_baton(m, s):
    """On each way around a loop there is one baton while its head attempts, else none. Between two heads of a loop there are
    as many as the first has started attempts more than the second has decided."""
    return all(
        on_way(m, s, w.ways[i, j][0]) + on_way(m, s, w.ways[j, k][0])
        == on_way(m, s, w.ways[i, k][0]) + int(s.phase[j] == "ATTEMPTING")
        for w in all_ways(m.routes)
        for i, j in w.ways
        for k in w.heads
        if (j, k) in w.ways and (i, k) in w.ways
    ) and all(
        on_way(m, s, way) == on_way(m, s, ways[0])
        for w in all_ways(m.routes)
        for ways in w.ways.values()
        for way in ways[1:]
    )


@lemma
def numbered(m, s):
    """A baton has the id of the attempt that its head decides next, and a later one if others are in front; a head that
    makes no attempt has the first id."""
    return all(
        s.baton[q] != str(p[1])
        or s.attempt[q]
        == (s.id[j] if len(w.heads) == 1 else (s.id[j] + sum(on(m, s, r) for r in way[at + 1 :])) % m.ids)
        for w in all_ways(m.routes)
        for (_, j), ways in w.ways.items()
        for way in ways
        for at, p in enumerate(way)
        for q in m.places[p[0]]
    ) and all(s.phase[h] == "ATTEMPTING" or s.id[h] == 0 for h in m.heads)


@lemma
def waiting(m, s):
    """An operator that waits for a baton has not all of its copies, and no status without a copy."""
    return all(
        not all(s.arrived[p] for p in m.waited[j].values())
        and (not s.busy[j] or any(s.arrived[p] for p in m.waited[j].values()))
        for j in m.joins
    )


@lemma
def marked(m, s):
    """A head has a mark exactly while a baton that it sent is away."""
    return all(
        (s.since_baton[h] != "NONE")
        == (
            (s.phase[h] == "ATTEMPTING" and m.routes.is_only_head(h))
            or any(on(m, s, p) > 0 for p in ways_away(m.routes)[h])
        )
        for h in m.heads
    )


@lemma
def cut(m, s):
    """While an attempt has found nothing, records are before its cut only: no head that has started it and no operator that
    has sent its baton on holds one, and none is behind the baton in a channel."""
    return all(
        s.phase[j] == "TERMINATED"
        or not is_idle(m, s, w, j)
        or (
            all(s.held[h] == 0 or not has_started(m, s, w, j, h) for h in w.heads)
            and all(s.held[o] == 0 or not is_past(m, s, w, j, p) for o, p in w.entries.items() if p in w.leading[j])
            and all(
                (is_empty(m, s, p[0]) or not (is_past(m, s, w, j, p) or arrived(m, s, p)))
                and all(
                    s.baton[q] != str(p[1]) or is_empty(m, s, p[0], k + 1) or not is_first(m, s, w, j, p)
                    for k, q in enumerate(m.places[p[0]])
                )
                for p in w.cut
                if p in w.leading[j]
            )
        )
        for w in all_ways(m.routes)
        for j in w.heads
    )


def has_started(m, s, w, head, other):
    """Whether another head has started the attempt that a head decides next: its baton is on a way to that head."""
    return any(on(m, s, q) > 0 for p in w.starts[other] for q in (p, *w.after[p]) if q in w.leading[head])


# --- where several heads of a scope meet


@lemma
def together(m, s):
    """Heads of a scope are in one attempt or in successive ones. Before a head has started none decides, and when one has
    terminated none starts another."""
    return all(
        on_way(m, s, w.ways[i, j][0]) <= 2
        and (s.phase[j] != "TERMINATED" or on_way(m, s, w.ways[i, j][0]) == 0)
        and (
            s.phase[i] != "RUNNING"
            or (on_way(m, s, w.ways[i, j][0]) == 0 and s.phase[j] != "TERMINATED" and s.id[j] == 0)
        )
        and (
            s.phase[i] != "ATTEMPTING"
            or s.phase[j] != "ATTEMPTING"
            or (on_way(m, s, w.ways[i, j][0]) == 1) == (s.id[i] == s.id[j])
        )
        for w in all_ways(m.routes)
        for i, j in w.pairs
    )


@lemma
def agreed(m, s):
    """Heads of a scope find the same: one that is ahead has found something, one that has terminated nothing."""
    return all(
        (s.phase[i] != "TERMINATED" or s.phase[j] == "TERMINATED" or is_idle(m, s, w, j))
        and (on_way(m, s, w.ways[i, j][0]) != 2 or not is_idle(m, s, w, j))
        and (
            s.phase[i] == "TERMINATED"
            or s.phase[j] == "TERMINATED"
            or s.id[i] != s.id[j]
            or is_idle(m, s, w, i) == is_idle(m, s, w, j)
        )
        for w in all_ways(m.routes)
        for i, j in w.pairs
    )


_ENDS_EARLY = {"nothing_lost": "violated", "no_early_end": "violated"}
_STUCK = {"ends_after_work": "violated", "deadlock": "violated"}
_CROWDED = {"batons_bounded": "violated", "only_current": "violated", "ends_after_work": "violated"}
_DISAGREE = {**_ENDS_EARLY, **_STUCK, "heads_agree": "violated"}

SPEC = Spec(
    BatonCounts,
    properties=(
        nothing_lost,
        no_early_end,
        outer_first,
        completed_once,
        heads_agree,
        batons_bounded,
        only_current,
        ends_after_work,
        conserved,
        ordered,
        ended,
        one_baton,
        numbered,
        waiting,
        marked,
        cut,
        together,
        agreed,
    ),
    expected={
        "first-end": _ENDS_EARLY,
        "first-entry": _ENDS_EARLY,
        "no-alignment": {**_ENDS_EARLY, **_CROWDED, "deadlock": "violated"},
        "first-status": _ENDS_EARLY,
        "status-dropped": _ENDS_EARLY,
        "head-unasked": {**_ENDS_EARLY, "step_4_1_is_enough": "violated"},
        "inner-forward": _ENDS_EARLY,
        "second-pass-unchecked": _ENDS_EARLY,
        "not-absorbed": _CROWDED,
        "no-second-wait": {**_ENDS_EARLY, **_CROWDED, "deadlock": "violated"},
        "no-dirty-check": _ENDS_EARLY,
        "timeout": {**_ENDS_EARLY, "only_current": "violated"},
        "reopened": {
            **_ENDS_EARLY,
            "completed_once": "violated",
            "only_current": "violated",
            "ends_after_work": "violated",
        },
        "stale-attempt": {},
        "uncoordinated-heads": _DISAGREE,
        "mark-reset": _DISAGREE,
        "inner-first": {**_ENDS_EARLY, **_STUCK, "outer_first": "violated"},
        "completed-together": _ENDS_EARLY,
        "unscoped": _ENDS_EARLY,
        "literal": _ENDS_EARLY,
    },
    variant_parameters={v: BATON.variant_parameters[v] for v in BatonCounts.variants if v in BATON.variant_parameters},
    sweeps=every_graph("nothing_lost", "no_early_end", "batons_bounded", "only_current", "deadlock"),
)
