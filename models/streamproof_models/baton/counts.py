"""The baton with numbers of records in place of queues, for proofs about any number of records.

A channel is its batons in order, the numbers of records before, between and behind them, and whether END is behind all.
That is what a queue of `baton` holds, as long as nothing follows END and no channel has more batons than the rules allow,
which are proved; a baton more is dropped, and noted in `excess`. `streamproof_specs.baton.counted` has the refinement.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Range, State, require
from streamproof_models.baton.machine import Baton


class BatonCounts(Baton):
    """Termination by a baton, with numbers of records in place of queues."""

    name = "baton_counts"

    def setup(self):
        """The places of a channel for batons, and the stretches of records before, between and behind them."""
        super().setup()
        number = {c: self.most_on(c) for c in self.channels}
        self.places = {c: (c, f"{c} second")[: number[c]] for c in self.channels}
        self.stretches = {c: (c, f"{c} behind", f"{c} behind second")[: number[c] + 1] for c in self.channels}
        self.waited = {join: {c: f"{join} by {c}" for c in self.joins[join]} for join in self.joins}

    def most_on(self, c):
        """The largest number of batons in a channel: two where several heads of a scope meet."""
        meet = [
            any(len(self.routes.peers(h)) > 0 for h in self.routes.heads_of(b.origin)) for b in self.batons[c].values()
        ]
        return 0 if len(meet) == 0 else 1 + int(any(meet))

    def state(self):
        """The same, with a truth value for each input that is waited for."""
        declared = dict(super().state().items())
        if self.joins:
            declared["arrived"] = Array([p for j in self.joins for p in self.waited[j].values()], Bool())
        return State(**declared)

    def contents(self):
        """The variables of channels: numbers of records, batons, and whether END is behind them."""
        declared = {
            "count": Array([p for c in self.channels for p in self.stretches[c]], Range(0, self.work)),
            "end": Array(self.channels, Bool()),
            "excess": Bool(),
        }
        places = [p for c in self.channels for p in self.places[c]]
        if len(places) > 0:
            declared["baton"] = Array(places, Enum("NONE", *self.kinds))
            declared["status"] = Array(places, Bool())
            declared["attempt"] = Array(places, Range(0, self.ids - 1))
        return declared

    def push(self, s, c, kind, busy=False, id=0):
        """Appends a record, END or a baton."""
        places, stretches = self.places[c], self.stretches[c]
        if kind == "END":
            s.end[c] = True
        elif kind == "RECORD":
            if len(places) == 0 or s.baton[places[0]] == "NONE":
                s.count[stretches[0]] += 1
            elif len(places) == 1 or s.baton[places[1]] == "NONE":
                s.count[stretches[1]] += 1
            else:
                s.count[stretches[2]] += 1
        elif s.baton[places[0]] == "NONE":
            self.put_baton(s, places[0], kind, busy, id)
        elif len(places) > 1 and s.baton[places[-1]] == "NONE":
            self.put_baton(s, places[-1], kind, busy, id)
        else:
            s.excess = True

    def put_baton(self, s, place, kind, busy, id):
        """Puts a baton, or none, into a place of a channel."""
        s.baton[place] = kind
        s.status[place] = busy
        s.attempt[place] = id

    def is_next(self, s, c, kind):
        """Whether the first item of a channel is of that kind."""
        if kind == "RECORD":
            return s.count[c] > 0
        if s.count[c] > 0:
            return False
        if kind == "END":
            return s.end[c] and all(s.baton[p] == "NONE" for p in self.places[c][:1])
        return s.baton[self.places[c][0]] == kind

    def is_empty(self, s, c):
        """Whether a channel has no item."""
        return s.count[c] == 0 and not s.end[c] and all(s.baton[p] == "NONE" for p in self.places[c][:1])

    def has_no_record(self, s, c):
        """Whether a channel has no record."""
        return all(s.count[p] == 0 for p in self.stretches[c])

    def take(self, s, c, kind):
        """Removes the first item of a channel, a record or END."""
        require(self.is_next(s, c, kind))
        if kind == "END":
            s.end[c] = False
        else:
            s.count[c] -= 1

    def take_baton(self, s, c, baton):
        """Removes the first item of a channel, which is that baton, and returns its status and attempt."""
        require(self.is_next(s, c, baton))
        places, stretches = self.places[c], self.stretches[c]
        busy, id = s.status[places[0]], s.attempt[places[0]]
        if len(places) == 1:
            self.put_baton(s, places[0], "NONE", False, 0)
            s.count[stretches[0]] = s.count[stretches[1]]
        else:
            self.put_baton(s, places[0], s.baton[places[1]], s.status[places[1]], s.attempt[places[1]])
            self.put_baton(s, places[1], "NONE", False, 0)
            s.count[stretches[0]], s.count[stretches[1]] = s.count[stretches[1]], s.count[stretches[2]]
        s.count[stretches[-1]] = 0
        return busy, id

    def align(self, s, c, baton, busy, id):
        """Rule 5, with a truth value for each input that is waited for."""
        join = f"{baton} at {self.target[c]}"
        if join not in self.joins:
            self.handle(s, c, baton, busy, id)
        else:
            inputs = self.waited[join]
            require(not s.arrived[inputs[c]])
            s.arrived[inputs[c]] = True
            s.busy[join] = self.collective_status(s.busy[join], busy)
            if all(s.arrived[p] for p in inputs.values()):
                together = s.busy[join]
                for p in inputs.values():
                    s.arrived[p] = False
                s.busy[join] = False
                self.handle(s, c, baton, together, id)
