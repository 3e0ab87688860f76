"""Variants of Huang's termination detection, each violating a different property."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference import huang_variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.reference.huang import Huang

SPEC = Spec(
    Huang,
    expected={
        "keeps-its-weight": {"detection_is_right": "violated", "weight_is_conserved": "violated"},
        "overwrites": {"weight_is_conserved": "violated", "end_is_detected": "violated"},
        "returns-early": {"detection_is_right": "violated"},
    },
    variant_parameters={
        "keeps-its-weight": {"n": 2, "shares": 2},
        "overwrites": {"n": 3, "shares": 4},
        "returns-early": {"n": 3, "shares": 4},
    },
)
