"""Safety of the baton in one loop of any form: the cut argument of docs/protocols/baton.md as lemmas about every graph."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma
from streamproof_models.baton.any_loop import HEAD, BatonAnyLoop


@invariant
def nothing_lost(m, s):
    """When the loop has terminated there is no record in it."""
    return all(s.phase != "TERMINATED" or s.held[o] == 0 for o in range(m.operators)) and all(
        s.phase != "TERMINATED" or (s.before[c] == 0 and s.behind[c] == 0) for c in range(m.channels)
    )


@lemma
def conserved(m, s):
    """Each record is held, or in a channel."""
    return s.records == sum(s.held[o] for o in range(m.operators)) + sum(s.before[c] for c in range(m.channels)) + sum(
        s.behind[c] for c in range(m.channels)
    )


@lemma
def one_baton(m, s):
    """A channel has the baton from when its source has passed it on until its target takes it; nothing is behind none."""
    return all(
        s.round[s.source[c]] == s.taken[c] + (1 if s.baton[c] else 0)
        and s.round[s.source[c]] <= s.round[HEAD]
        and s.taken[c] <= s.round[HEAD]
        and (s.target[c] == HEAD or (s.round[s.target[c]] <= s.taken[c] and s.taken[c] <= s.round[s.target[c]] + 1))
        and (s.baton[c] or s.behind[c] == 0)
        for c in range(m.channels)
    ) and all(s.round[o] <= s.round[HEAD] and s.round[o] + 1 >= s.round[HEAD] for o in range(m.operators))


@lemma
def in_order(m, s):
    """Nobody passes the baton on before those from whom a way leads to it."""
    return all(
        m.is_way(s, a, z) and (not s.reaches[a][z] or s.round[a] >= s.round[z])
        for a in range(m.operators)
        for z in range(m.operators)
    )


@lemma
def in_step(m, s):
    """When the head has decided, everybody has passed the last baton on."""
    return all(
        m.is_led(s, o) and (s.phase == "ATTEMPTING" or s.round[o] == s.round[HEAD]) for o in range(m.operators)
    ) and all(
        m.is_led(s, s.target[c])
        and s.taken[c] + 1 >= s.round[HEAD]
        and (s.phase == "ATTEMPTING" or s.taken[c] == s.round[HEAD])
        for c in range(m.channels)
    )


@lemma
def cut(m, s):
    """While nothing was found, records are before the baton only: nobody who has passed it on holds one, and none is behind
    it in a channel."""
    return all(
        not s.clean or s.round[HEAD] == 0 or s.round[o] != s.round[HEAD] or s.held[o] == 0 for o in range(m.operators)
    ) and all(
        not s.clean
        or s.round[HEAD] == 0
        or s.round[s.source[c]] != s.round[HEAD]
        or (s.behind[c] if s.baton[c] else s.before[c]) == 0
        for c in range(m.channels)
    )


@lemma
def reported(m, s):
    """What was found is known to the head, or the status BUSY is on its way to it."""
    return (
        (
            s.phase != "ATTEMPTING"
            or s.clean
            or s.dirty
            or (s.blame == "CHANNEL" and s.baton[s.channel] and s.status[s.channel])
            or (
                s.blame == "OPERATOR"
                and s.busy[s.operator]
                and (s.operator == HEAD or s.round[s.operator] < s.round[HEAD])
            )
        )
        and (s.phase != "TERMINATED" or s.clean)
        and (s.phase == "RUNNING" or s.round[HEAD] > 0)
        and (not s.dirty or not s.clean)
        and m.is_led(s, s.operator)
        and m.is_led(s, s.target[s.channel])
    )


SPEC = Spec(
    BatonAnyLoop,
    properties=(nothing_lost, conserved, one_baton, in_order, in_step, cut, reported),
    expected={
        "no-alignment": {"nothing_lost": "violated"},
        "status-dropped": {"nothing_lost": "violated"},
        "no-dirty-check": {"nothing_lost": "violated"},
    },
    variant_parameters={"no-alignment": {"channels": 3}},
)
