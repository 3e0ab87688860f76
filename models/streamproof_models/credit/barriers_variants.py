"""Variants of `credit_barriers`: channels without exclusive buffers, and rules that break it."""

from __future__ import annotations

from streamproof import require
from streamproof_models.credit.barriers import Barrier, CreditBarriers
from streamproof_models.credit.machine import Credit
from streamproof_models.credit.variants import UncountedLending, ZeroExclusive


class BarrierOvertakes(CreditBarriers, variant="barrier-overtakes"):
    """A barrier needs no credit, so it does not wait behind data that do."""

    def send_barrier(self, s, c):
        """A barrier is sent whatever waits ahead of it."""
        s.barrier[c].ahead = 0
        super().send_barrier(s, c)


class BarrierCostsCredit(CreditBarriers, variant="barrier-costs-credit"):
    """The sender sends a barrier for a credit, as it does data."""

    def send_barrier(self, s, c):
        """A credit is spent for a barrier, which takes no buffer at the receiver and so gives none back."""
        require(s.flow.num_credits_available[c] > 0)
        super().send_barrier(s, c)
        s.flow.num_credits_available[c] -= 1


class Unblocked(Barrier):
    """The barrier does not block its sender."""

    def is_blocked(self, s):
        """Never."""
        return False


class NotStopped(CreditBarriers, variant="not-stopped"):
    """The sender goes on after a barrier."""

    def barrier_of(self, c: int) -> Barrier:
        """A barrier that does not block."""
        return Unblocked(checkpoints=self.checkpoints, most=self.depth)


class Aligned(CreditBarriers, variant="aligned"):
    """One task reads all channels and waits for all barriers."""

    aligned: bool = True


class VoidCredits(ZeroExclusive):
    """A channel without exclusive buffers, whose credits may become void: new ones coexist with those."""

    def most(self) -> int:
        """Every floating buffer may have been announced and returned, and be announced again."""
        return 2 * super().most()


class NoExclusive(CreditBarriers, variant="zero-exclusive"):
    """Channels without exclusive buffers. A blocked channel returns its floating buffers, because otherwise blocked
    channels keep the buffers that others wait for (FLINK-16404). Credits announced before are void: both ends restart at
    zero when the sender is resumed."""

    exclusive: int = 0
    aligned: bool = True
    limits = {"exclusive": (0, 0), "floating": (1, None)}

    def flow_control(self, model: type[Credit] = VoidCredits) -> Credit:
        """Channels with void credits."""
        return super().flow_control(model)

    def barrier_of(self, c: int) -> Barrier:
        """A barrier that separates old and new credits."""
        return Barrier(checkpoints=self.checkpoints, most=self.depth, void=2 * self.floating)

    def receive_barrier(self, s, c):
        """Free buffers return to the pool, and no more are requested (`releaseFloatingBuffers`)."""
        super().receive_barrier(s, c)
        self.flow.return_floating_buffers(s.flow, c, s.flow.available_buffers[c])
        s.flow.available_buffers[c] = 0
        s.flow.sender_backlog[c] = 0

    def resume_channel(self, s, c):
        """Unannounced credits are dropped; announced ones arrive before ResumeConsumption."""
        super().resume_channel(s, c)
        s.flow.unannounced_credit[c] = 0
        s.barrier[c].void_credit = s.flow.announced_credit[c]

    def resume_sender(self, s, c):
        """The sender's credits are void."""
        super().resume_sender(s, c)
        s.flow.num_credits_available[c] = 0

    def void(self, s, c):
        """From the arrival of a barrier on all credits, from ResumeConsumption on those ahead of it."""
        flow, barrier = s.flow, s.barrier[c]
        if barrier.place in ("RECEIVED", "READ"):
            return flow.num_credits_available[c] + flow.announced_credit[c] + flow.unannounced_credit[c]
        return flow.num_credits_available[c] + barrier.void_credit if barrier.resuming else 0


class KeepsWhileStopped(NoExclusive, variant="zero-exclusive-keeping"):
    """Before FLINK-16404: a blocked channel keeps its floating buffers and the sender its credits."""

    def receive_barrier(self, s, c):
        """Buffers stay with the channel."""
        CreditBarriers.receive_barrier(self, s, c)

    def resume_channel(self, s, c):
        """Credits stay; which of them arrive before ResumeConsumption makes no difference."""
        CreditBarriers.resume_channel(self, s, c)
        s.barrier[c].void_credit = s.flow.announced_credit[c]

    def resume_sender(self, s, c):
        """Credits stay."""
        CreditBarriers.resume_sender(self, s, c)

    def void(self, s, c):
        """None."""
        return 0


class NotForgotten(NoExclusive, variant="zero-exclusive-no-reset"):
    """A blocked channel returns its floating buffers, and the sender keeps the credits that stood for them."""

    def resume_sender(self, s, c):
        """Credits stay."""
        CreditBarriers.resume_sender(self, s, c)


class BarriersUncounted(CreditBarriers, variant="uncounted-lending"):
    """The channels of the variant of `credit` of that name: the pool lends without accounting."""

    def flow_control(self, model: type[Credit] = UncountedLending) -> Credit:
        """Channels that get every floating buffer."""
        return super().flow_control(model)
