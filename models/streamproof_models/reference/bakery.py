"""Mutual exclusion by tickets, as in a bakery, with memory that need not be atomic.

Leslie Lamport, "A new solution of Dijkstra's concurrent programming problem", CACM 17(8), 1974. A process reads one variable
of another at a time, in any order; while one is written, any value may be read (safe registers). `choosing[i]` follows from
the stage: true at `reads` and `writes`, being written at `raises` and `lowers`. The constraint bounds the tickets.
"""

from streamproof import WEAK, Array, Enum, Model, Range, Set, State
from streamproof import action, always, choose, constraint, invariant, leads_to, require, temporal, until

STAGES = ("idle", "raises", "reads", "writes", "lowers", "waits", "critical", "leaves")
NEXT = dict(zip(STAGES, (*STAGES[1:], "idle"), strict=True))


class Bakery(Model):
    """A process takes a ticket higher than all that it reads, and waits for every process with a lower one."""

    name = "reference.bakery"
    n: int = 2
    tickets: int = 4
    choosing: bool = True
    sizes = {"small": {"tickets": 2}, "medium": {"tickets": 10}, "large": {"n": 3, "tickets": 3}}

    def state(self):
        process, some = range(self.n), Set(Range(0, self.n - 1))
        return State(
            at=Array(process, Enum(*STAGES)),
            number=Array(process, Range(0, self.tickets + 1)),
            highest=Array(process, Range(0, self.tickets)),
            unasked=Array(process, some),
            unread=Array(process, some),
        )

    def busy(self, s, i):
        return s.at[i] != "idle"

    @action(i="n", fairness=WEAK.where("busy"))
    def proceed(self, s, i):
        """A process with nothing left to read begins or ends a write, or enters the critical section."""
        require(len(s.unread[i]) == 0)
        if s.at[i] in ("raises", "lowers"):
            s.unread[i] = {j for j in range(self.n) if j != i}
            s.unasked[i] = s.unread[i] if s.at[i] == "lowers" and self.choosing else set()
        elif s.at[i] in ("writes", "leaves"):
            s.number[i] = s.highest[i] + 1 if s.at[i] == "writes" else 0
            s.highest[i] = 0
        s.at[i] = NEXT[s.at[i]]

    @action(i="n", j="n", fairness=WEAK)
    def read(self, s, i, j):
        """Process `i` reads the ticket of `j`, when it waits after `choosing[j]`; it goes on if it need not wait for `j`."""
        require(j in s.unread[i])
        if j in s.unasked[i]:
            require(s.at[j] not in ("reads", "writes"))
            s.unasked[i].remove(j)
        else:
            ticket = choose(range(self.tickets + 1)) if s.at[j] in ("writes", "leaves") else s.number[j]
            if s.at[i] == "reads":
                s.highest[i] = max(s.highest[i], ticket)
            require(s.at[i] == "reads" or ticket == 0 or s.number[i] < ticket + (i < j))
            s.unread[i].remove(j)

    @constraint
    def few_tickets(self, s):
        return all(number <= self.tickets for number in s.number)

    @invariant
    def mutual_exclusion(self, s):
        """At most one process is in the critical section."""
        return sum(stage == "critical" for stage in s.at) <= 1

    @temporal
    def served(self, s):
        """Every process that wants to enters the critical section."""
        return all(leads_to(s.at[i] == "raises", s.at[i] == "critical") for i in range(self.n))

    @temporal
    def in_order(self, s):
        """First come, first served: a process that is idle while another waits does not enter before it."""
        return all(
            always((s.at[i], s.at[j]) != ("waits", "idle") or until(s.at[j] != "critical", s.at[i] == "critical"))
            for i in range(self.n)
            for j in range(self.n)
        )


class NobodyChooses(Bakery, variant="nobody-chooses"):
    """A waiting process does not ask whether another is about to take a ticket."""

    choosing: bool = False
