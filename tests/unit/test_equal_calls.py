"""Rules whose equal calls are lowered once are those of which each call is lowered by itself."""

from __future__ import annotations

import pytest

from shares import share
from streamproof import Model
from streamproof.language.declare.spec import compile_model
from streamproof.language.lower import equal_calls, model_reader
from streamproof.model_registry import bundled, find
from streamproof.system import System


def actions_alone(model: Model, patch: pytest.MonkeyPatch) -> System:
    """The system of a model with nothing taken over from other rules."""
    with patch.context() as change:
        change.setattr(model_reader, "EqualCalls", lambda sorts: None)
        return compile_model(model, without_properties=True)


def compare(name: str, patch: pytest.MonkeyPatch) -> int:
    """Compares the rules of all variants of a bundled model; how many calls were taken over."""
    taken = 0
    original = equal_calls.EqualCalls.taken

    def counted(*given: object) -> object:
        nonlocal taken
        taken += 1
        return original(*given)  # type: ignore[arg-type]

    patch.setattr(equal_calls.EqualCalls, "taken", counted)
    base = find(name).spec.model
    for variant in {None, *base.variants}:
        model = base.build(variant)
        assert compile_model(model, without_properties=True).actions == actions_alone(model, patch).actions, variant
    return taken


@pytest.mark.parametrize("name", share(["checkpoints", "slots", "failover"], 3))
def test_rules_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of models with all their variants, in which calls are taken from others."""
    assert compare(name, monkeypatch) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(bundled()))
def test_rules_of_all_models_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every bundled model."""
    compare(name, monkeypatch)
