"""The machine that follows one slot allocation in Flink's logs: `slot_views`, and which component takes which action."""

from __future__ import annotations

from functools import lru_cache

from streamproof import System
from streamproof.conformance import compile_model
from streamproof_models.slots.views import SlotViews

OF_RM = frozenset({"start_allocation", "receive_ack", "free_allocation", "unregister"})
OF_JM = frozenset({"receive_offer", "accept", "reserve", "deploy", "free_reserved", "release", "disconnect", "forget"})
OF_TASKS = frozenset({"receive_task", "end_task"})
"""They delay when a slot is free, which only the TaskExecutor's own lines show."""
OF_TE = OF_TASKS | {"receive_request", "allocate", "offer", "activate", "free_slot", "close_connection"}


MOST_OFFERS = 64
"""Number of offers of a slot that are counted."""


@lru_cache(maxsize=16)
def slot_system(offers: int = 0) -> System:
    """The machine of one allocation that is offered `offers` times at most; 0: the number is not known."""
    return compile_model(SlotViews(repeats=min(1 << offers.bit_length(), MOST_OFFERS)))
