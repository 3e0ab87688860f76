"""Each property of each bundled model is violated by a variant, so that none is true whatever the rules are."""

from __future__ import annotations

import pytest

from streamproof.model_registry import bundled, find

MODELS = [name for name in bundled() if not name.startswith("reference.")]
"""Models of the literature are excepted: their variants are the published ones."""


@pytest.mark.parametrize("model", MODELS)
def test_a_variant_violates_each_property(model: str) -> None:
    """The specification promises a violation, which `streamproof counterexamples` finds; a lemma serves the proofs only."""
    target = find(model)
    violated = {name for names in target.spec.expected.values() for name, v in names.items() if v == "violated"}
    assert {p.name for p in target.properties()} <= violated
