"""What the three-way handshake is checked for."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference.three_way_handshake import ThreeWayHandshake

SPEC = Spec(ThreeWayHandshake, expected={"two-way": {"known": "violated"}})
