"""Links that are too bad for a sliding window, and the properties that they violate."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference.sliding_window import SlidingWindow

SPEC = Spec(
    SlidingWindow,
    expected={
        "overtaking": {"in_order": "violated", "all_arrive": "violated"},
        "loses-all": {"all_arrive": "violated"},
    },
    variant_parameters={"overtaking": {"total": 5}},
)
