"""Variants of Mattern's four-counter method, and the properties that they violate."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference import mattern_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.reference.mattern import Mattern

SPEC = Spec(
    Mattern,
    expected={
        "two-counters": {"detection_is_right": "violated"},
        "counts-the-active": {"detection_is_right": "violated"},
        "gives-up": {"end_is_detected": "violated"},
    },
)
