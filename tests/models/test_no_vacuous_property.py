"""Each property of each bundled model is violated by a variant or notices a mutant: none is true whatever the rules are."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamproof.base.options import SearchOptions
from streamproof.model_registry import bundled, find
from streamproof.mutation.judging import mutate

MODELS = [name for name in bundled() if not name.startswith("reference.")]
"""Models of the literature are excepted: their variants are the published ones."""
MUTANTS: dict[str, dict[str, str]] = {}
"""Model -> property that no variant violates -> a change of a rule that it notices."""
for line in (Path(__file__).parent / "noticed_mutants.tsv").read_text(encoding="utf-8").splitlines()[1:]:
    of, name, change = line.split("\t")
    MUTANTS.setdefault(of, {})[name] = change


@pytest.mark.parametrize("model", MODELS)
def test_each_property_may_be_violated(model: str) -> None:
    """The specification promises a violation, which `streamproof counterexamples` finds, or the table has a mutant; a lemma
    serves the proofs only."""
    target = find(model)
    violated = {name for names in target.spec.expected.values() for name, v in names.items() if v == "violated"}
    names = {p.name for p in target.properties()}
    assert names <= violated | {*MUTANTS.get(model, ())}
    assert {*MUTANTS.get(model, ())} <= names - violated


SLOW = ("credit_barriers", "credit_channel", "credit_flush", "failover_any_graph", "partition_counts", "slot_views")
"""Models with many states or mutants."""


@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in MUTANTS]
)
def test_mutants_are_noticed(model: str) -> None:
    """Each mutant of the table by its property."""
    wanted = MUTANTS[model]
    target = find(model)
    system = target.system(None, dict(target.variant(None).sizes.get("small", {})))
    found = mutate(system, SearchOptions(), only=lambda mutant: mutant.label in wanted.values())
    by = {one.mutant.label: one.by for one in found.judged}
    assert [name for name, mutant in wanted.items() if name not in by.get(mutant, ())] == []
