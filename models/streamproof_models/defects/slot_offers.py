"""Slots of one allocation that TaskExecutors offer to a JobMaster, and that it releases, when calls time out.

Sources: the descriptions of FLINK-9932 (apache/flink#6780), FLINK-9293 (#5951) and FLINK-11059 (#7227). A TaskExecutor
marks a slot active before it offers it, since a task may arrive before the answer (FLINK-5836). The ResourceManager may
request a second slot for one allocation if the first request seems to be lost.

Abstraction: one allocation; a call or its answer may be lost, which its caller sees as a time-out; no heartbeats.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, Option, Range, State, action, require


class SlotOffers(Model):
    """The slots of TaskExecutors for one allocation, and the slot pool of a JobMaster."""

    name = "slot_offers"

    slots: int = 2
    """Number of slots, each of another TaskExecutor."""
    faults: int = 2
    """Maximum number of calls and answers that are lost."""

    limits = {"slots": (1, None), "faults": (0, None)}
    offers_again = True
    """After a time-out the slot is inactive, so that it is offered again; with FLINK-9932."""
    compares_slots = True
    """An offer of another slot under a known allocation is rejected; with FLINK-9293."""
    drops_unreleased = True
    """A slot whose release timed out is not used again; with FLINK-11059."""

    def state(self):
        """The comments name Flink's fields."""
        return State(
            slot=Array(self.slots, Enum("FREE", "ALLOCATED", "ACTIVE")),  # TaskSlotTable
            offer=Array(self.slots, Enum("NONE", "SENT", "ACCEPTED", "REJECTED", "TIMEOUT")),  # offerSlots, its answer
            release=Array(self.slots, Enum("NONE", "SENT", "RELEASED", "TIMEOUT")),  # freeSlot, its answer
            owned=Option(Range(0, self.slots - 1)),  # SlotPool: the slot of the allocation
            faults_left=Range(0, self.faults, init=self.faults),
        )

    def spend_fault(self, s):
        """A call or an answer is lost."""
        require(s.faults_left > 0)
        s.faults_left -= 1

    @action(i="slots")
    def request(self, s, i):
        """The ResourceManager requests a slot for the allocation."""
        require(s.slot[i] == "FREE" and s.release[i] == "NONE")
        s.slot[i] = "ALLOCATED"

    @action(i="slots", fairness=WEAK)
    def offer_slot(self, s, i):
        """`offerSlotsToJobManager`: what is allocated is marked active, and offered."""
        require(s.slot[i] == "ALLOCATED" and s.offer[i] == "NONE")
        s.slot[i] = "ACTIVE"
        s.offer[i] = "SENT"

    @action(i="slots", fairness=WEAK)
    def receive_offer(self, s, i):
        """The slot pool accepts a slot, also one that it has already."""
        require(s.offer[i] == "SENT")
        if s.owned is None:
            s.owned = i
            s.offer[i] = "ACCEPTED"
        else:
            s.offer[i] = "REJECTED" if self.compares_slots and s.owned != i else "ACCEPTED"

    @action(i="slots")
    def lose_offer(self, s, i):
        """The offer is lost."""
        require(s.offer[i] == "SENT")
        self.spend_fault(s)
        s.offer[i] = "TIMEOUT"

    @action(i="slots", fairness=WEAK)
    def receive_answer(self, s, i):
        """The TaskExecutor frees a rejected slot, and offers one again after a time-out."""
        require(s.offer[i] in ("ACCEPTED", "REJECTED", "TIMEOUT"))
        if s.offer[i] == "REJECTED":
            s.slot[i] = "FREE"
        elif s.offer[i] == "TIMEOUT" and self.offers_again:
            s.slot[i] = "ALLOCATED"
        s.offer[i] = "NONE"

    @action(i="slots")
    def release_slot(self, s, i):
        """The JobMaster releases an idle slot."""
        require(s.owned == i and s.offer[i] == "NONE" and s.release[i] == "NONE")
        s.release[i] = "SENT"

    @action(i="slots", fairness=WEAK)
    def receive_release(self, s, i):
        """The TaskExecutor frees the slot."""
        require(s.release[i] == "SENT")
        s.slot[i] = "FREE"
        s.release[i] = "RELEASED"

    @action(i="slots")
    def lose_answer(self, s, i):
        """The answer is lost."""
        require(s.release[i] == "RELEASED")
        self.spend_fault(s)
        s.release[i] = "TIMEOUT"

    @action(i="slots", fairness=WEAK)
    def end_release(self, s, i):
        """The JobMaster has the answer, or a time-out."""
        require(s.release[i] in ("RELEASED", "TIMEOUT"))
        if s.release[i] == "RELEASED" or self.drops_unreleased:
            s.owned = None
        s.release[i] = "NONE"


class NotOfferedAgain(SlotOffers, variant="not-offered-again"):
    """Without FLINK-9932: only allocated slots are offered again, and the one that timed out is active."""

    offers_again = False


class AcceptsAnySlot(SlotOffers, variant="accepts-any-slot"):
    """Without FLINK-9293: an offer under a known allocation is accepted, whichever slot it is."""

    compares_slots = False


class UsedAfterTimeout(SlotOffers, variant="used-after-time-out"):
    """Without FLINK-11059: a slot whose release timed out is idle again."""

    drops_unreleased = False
