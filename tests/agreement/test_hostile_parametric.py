"""Proofs for every size of random models with hostile Python, against exhaustive search; each layer of defence alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shares import share

from .parametric_lies import PLAIN, TESTS
from .parametric_models import draw, smallest
from .parametric_trial import Trial, attempt, layers, place

LONG = 2_000
CHUNK = 200
SPECIAL = 8
SITES = ("setup", "map", "nested", "decorated", "super")
"""Where the conditions of the smallest models are: read once, called by Python itself, called while a rule is read."""


def examined(seeds: Sequence[int], folder: Path, *, hostile: bool, grounding: bool = True) -> list[Trial]:
    """What became of the models of some seeds; asserts that nothing false is proved and every refusal names a line."""
    trials = []
    for seed in seeds:
        drawn = draw(seed, hostile=hostile)
        trial = attempt(drawn, folder, grounding=grounding)
        assert not trial.wrong, (seed, trial.wrong, drawn.source)
        assert trial.refused is None or place(trial.refused, drawn), (seed, trial.refused, drawn.source)
        trials.append(trial)
    return trials


@pytest.mark.push
@pytest.mark.parametrize(("models", "least"), share([(6, 1), (12, 2)], 2))
def test_hostile_models(models: int, least: int, tmp_path: Path) -> None:
    """What is proved of models with hostile Python is not refuted at special values; most of them are refused."""
    trials = examined(range(1040, 1040 + models), tmp_path, hostile=True)
    assert sum(t.refused is not None for t in trials) >= 2
    assert sum(len(t.proved) for t in trials) >= 2
    assert sum(t.special for t in trials) >= least


@pytest.mark.long
@pytest.mark.parametrize("models", share([2, 4], 2))
def test_benign_models(models: int, tmp_path: Path) -> None:
    """Models without hostile Python are read, and most of their properties proved."""
    trials = examined(range(models), tmp_path, hostile=False)
    assert sum(t.refused is not None for t in trials) <= 1
    assert sum(len(t.proved) for t in trials) >= 4


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, LONG, CHUNK))
def test_many_hostile_models(first: int, tmp_path: Path) -> None:
    """The same of many; each chunk has models that are refused, proofs, and special values that were searched."""
    trials = examined(range(first, first + CHUNK), tmp_path, hostile=True)
    assert sum(t.refused is not None for t in trials) >= 80
    assert sum(len(t.proved) for t in trials) >= 60
    assert sum(t.special for t in trials) >= 15


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 100_400, CHUNK))
def test_many_benign_models(first: int, tmp_path: Path) -> None:
    """Of models without hostile Python at most one in twenty is refused."""
    trials = examined(range(first, first + CHUNK), tmp_path, hostile=False)
    assert sum(t.refused is not None for t in trials) <= CHUNK // 20
    assert sum(len(t.proved) for t in trials) >= 3 * CHUNK


@pytest.mark.long
@pytest.mark.parametrize("first", range(200_000, 200_500, CHUNK))
def test_reading_alone(first: int, tmp_path: Path) -> None:
    """Without the grounding check nothing false is proved either."""
    examined(range(first, first + CHUNK), tmp_path, hostile=True, grounding=False)


@pytest.mark.long
@pytest.mark.parametrize("site", share(SITES, 6))
def test_some_conditions_are_caught_by_the_reading_alone(site: str, tmp_path: Path) -> None:
    """Each condition at one of the sites: it is read as what it means, or refused at a line of the model."""
    caught_by_the_reading((*PLAIN, *TESTS)[SITES.index(site) :: len(SITES)], site, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("site", SITES)
def test_each_condition_is_caught_by_the_reading_alone(site: str, tmp_path: Path) -> None:
    """The same of all conditions at every site."""
    caught_by_the_reading((*PLAIN, *TESTS), site, tmp_path)


def caught_by_the_reading(tests: Sequence[str], site: str, folder: Path) -> None:
    """Asserts that nothing false is proved of the smallest models with some conditions, without the grounding check."""
    refused = 0
    for test in tests:
        drawn = smallest(test, site, str(SPECIAL), SPECIAL)
        trial = attempt(drawn, folder, grounding=False)
        assert not trial.wrong, (test, trial.wrong)
        if trial.refused is not None:
            refused += 1
            assert place(trial.refused, drawn), (test, str(trial.refused))
    assert refused > len(tests) // 3


@pytest.mark.long
@pytest.mark.parametrize("hidden", [False, True], ids=["written", "hidden"])
def test_each_condition_is_caught_by_the_other_layers(hidden: bool, tmp_path: Path) -> None:
    """Behind a reader that believes everything, the grounding check and the search of instances each catch what is false,
    where the special value occurs in the source; and where it is small or hidden, the reading does."""
    live = caught = 0
    for test in TESTS:
        drawn = smallest(test, "setup", f"len('{'.' * SPECIAL}')" if hidden else str(SPECIAL), SPECIAL)
        found = layers(drawn, tmp_path)
        if found.live:
            live += 1
            caught += found.grounding and found.search
            assert found.reading, test
    assert live > 30
    assert caught == live or hidden
