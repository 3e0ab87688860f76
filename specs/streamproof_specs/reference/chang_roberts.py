"""A ring whose candidates give up too easily, so that the wrong leader is elected, or none."""

from __future__ import annotations

from streamproof import Spec
from streamproof_models.reference.chang_roberts import ChangRoberts

SPEC = Spec(
    ChangRoberts,
    expected={"meek": {"one_leader": "violated", "elected": "violated"}},
    variant_parameters={"meek": {"n": 3}},
)
