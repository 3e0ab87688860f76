"""Every verdict of a variant of a bundled model, compared with what its specification expects."""

from __future__ import annotations

from streamproof import Spec
from streamproof.explicit.exploration import Exploration, explore


def established(spec: Spec, variant: str | None, counts: tuple[int, int, int]) -> Exploration:
    """The result of a search that gives every expected verdict, with these distinct states, generated states and depth."""
    result = explore(spec.system(variant))
    found = {f.property: f.verdict.value for f in result.findings}
    assert found == {name: spec.expectation(variant, name) for name in found}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == counts
    return result
