"""That the baton with queues refines the baton with numbers: what each channel holds, as numbers.

streamproof check streamproof_specs.baton.counted:SPEC -p topology=nested -p work=2
streamproof sweep streamproof_specs.baton.counted:SPEC
"""

from __future__ import annotations

from typing import Any

from streamproof import Spec, refines
from streamproof_models.baton.counts import BatonCounts
from streamproof_models.baton.machine import Baton
from streamproof_specs.baton.scoped_sweep import every_graph


class CountedBaton(Baton):
    """The baton with queues; it has the places of the machine with numbers."""

    name = "counted_baton"

    def setup(self):
        """The same, and the places of the other machine."""
        super().setup()
        other = BatonCounts(topology=self.topology, work=self.work, ids=self.ids)
        self.places, self.stretches, self.waited = other.places, other.stretches, other.waited


def counted(m, s):
    """The state in numbers: variables of the same name and sort are the same."""
    shown: dict[str, Any] = {}
    if m.channels:
        shown["count"] = [records_behind(s, c, k) for c in m.channels for k in range(len(m.stretches[c]))]
        shown["end"] = [any(item.kind == "END" for item in s.channel[c]) for c in m.channels]
        shown["excess"] = any(number_of_batons(m, s, c) > len(m.places[c]) for c in m.channels)
    places = [(c, k) for c in m.channels for k in range(len(m.places[c]))]
    if len(places) > 0:
        batons = [baton_at(m, s, c, k) for c, k in places]
        shown["baton"] = [kind for kind, _, _ in batons]
        shown["status"] = [busy for _, busy, _ in batons]
        shown["attempt"] = [id for _, _, id in batons]
    if m.joins:
        shown["arrived"] = [c in s.arrived[join] for join in m.joins for c in m.waited[join]]
    return shown


def number_of_batons(m, s, c):
    """The number of batons in a channel."""
    return sum(item.kind in m.kinds for item in s.channel[c])


def records_behind(s, c, batons):
    """The number of records behind that many batons."""
    passed, found = 0, 0
    for item in s.channel[c]:
        if item.kind == "RECORD":
            found += int(passed == batons)
        elif item.kind != "END":
            passed += 1
    return found


def baton_at(m, s, c, place):
    """The kind, status and attempt of a baton of a channel."""
    kind, busy, id = "NONE", False, 0
    passed = 0
    for item in s.channel[c]:
        if item.kind in m.kinds:
            if passed == place:
                kind = named(m, item.kind)
                busy, id = item.busy, item.id
            passed += 1
    return kind, busy, id


def named(m, kind):
    """A kind of baton as a value of the other machine."""
    found = "NONE"
    for one in m.kinds:
        found = one if kind == one else found
    return found


SPEC = Spec(
    CountedBaton,
    properties=(refines(BatonCounts, counted, topology="topology", work="work", ids="ids"),),
    sweeps=every_graph("counted_start", "counted"),
)
