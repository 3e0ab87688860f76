"""Variants of `loop_head`: mistakes in spilling and reading back, and rules that are left out."""

from __future__ import annotations

from streamproof_models.cyclic.head import LoopHead


class HeadOneTooMany(LoopHead, variant="one-too-many"):
    """An item is in memory without a buffer."""

    edge_variant = "one-too-many"


class HeadSpillDropped(LoopHead, variant="spill-dropped"):
    """An item without a free buffer is dropped."""

    edge_variant = "dropped"


class HeadSpillOvertaken(LoopHead, variant="spill-overtaken"):
    """A new item takes a free buffer although older items are on disk."""

    edge_variant = "overtaken"


class HeadBarrierOvertakes(LoopHead, variant="barrier-overtakes"):
    """A baton takes a free buffer although older items are on disk."""

    edge_variant = "barrier-in-memory"


class HeadSpillNewestFirst(LoopHead, variant="spill-newest-first"):
    """The disk is a stack."""

    edge_variant = "newest-first"


class Unwritten(LoopHead, variant="unwritten"):
    """A record arrives that no operator has written."""

    arrives_written = False


class PolicyIgnored(LoopHead, variant="policy-ignored"):
    """The entry reads what comes."""

    obeys_policy = False


class BatonRepeated(LoopHead, variant="baton-repeated"):
    """A baton is read although the same one, of the same channel, waits for others."""

    waits_for_baton = False


class BatonAlone(LoopHead, variant="baton-alone"):
    """A baton goes on from one channel, without the others that carry it."""

    joins_channels = False


class NoPlace(LoopHead, variant="no-place"):
    """The entry takes records for which it has no place."""

    waits_for_place = False


class HeldLate(LoopHead, variant="held-late"):
    """Records are held although the loop has ended."""

    drops_late = False
