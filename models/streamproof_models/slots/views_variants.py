"""Variants of `slot_views` that omit one rule."""

from __future__ import annotations

from streamproof_models.slots.views import SlotViews


class Reused(SlotViews, variant="reused"):
    """The ResourceManager requests a slot again under an allocation id that it has freed."""

    used_once = False


class FreedEarly(SlotViews, variant="freed-early"):
    """The ResourceManager frees a slot that its TaskExecutor has."""

    waits_for_executor = False


class ActiveUnasked(SlotViews, variant="active-unasked"):
    """A slot is ACTIVE before the JobMaster has accepted it."""

    waits_for_answer = False


class Unoffered(SlotViews, variant="unoffered"):
    """The JobMaster takes a slot that was not offered."""

    accepts_offers_only = False


class OldOffer(SlotViews, variant="old-offer"):
    """An offer counts also after the JobMaster has given the slot up."""

    waits_for_offer = False


class UnnoticedLoss(SlotViews, variant="unnoticed-loss"):
    """The JobMaster goes on to use the slots of a TaskExecutor that it has disconnected."""

    notices_loss = False


class FreedUnderTask(SlotViews, variant="freed-with-task"):
    """A slot is free at once, also if its task still runs."""

    waits_for_tasks = False
