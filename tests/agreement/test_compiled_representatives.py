"""Searches on disk with symmetry: compiled code finds the representatives, with the results of generated Python."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from forced_spilling import Spilling
from random_symmetric_systems import symmetric_system
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import Exploration, explore
from streamproof.system import InputError, ModelError, System
from streamproof.system.interpreter import Interpreter
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit


def _same(system: System, found: Exploration, expected: Exploration) -> bool:
    """Compares counts, verdicts and lengths; every trace is a behaviour. Returns whether the search was reduced."""
    assert [r.applied for r in found.reductions] == [r.applied for r in expected.reductions]
    if found.mistake is not None or expected.mistake is not None:
        assert found.mistake is not None
        assert expected.mistake is not None
        assert len(found.mistake.trace) == len(expected.mistake.trace)
        return False
    assert (found.counts.levels, found.counts.generated) == (expected.counts.levels, expected.counts.generated)
    for one, other in zip(found.findings, expected.findings, strict=True):
        assert (one.property, one.verdict, len(one.trace or ())) == (
            other.property,
            other.verdict,
            len(other.trace or ()),
        )
        if one.trace is not None:
            for before, step, after in zip(one.trace.states, one.trace.steps, one.trace.states[1:], strict=False):
                assert Interpreter(system).take(step, before) == after
    return found.reductions[0].applied


@pytest.mark.parametrize("bits", [64, 5], ids=["one-word", "wide"])
@pytest.mark.parametrize(
    "seeds", [range(5), *(pytest.param(range(n, n + 150), marks=pytest.mark.long) for n in range(5, 605, 150))]
)
def test_random_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range, bits: int) -> None:
    """Of interchangeable processes, whose states are sorted by parts or renamed; a favourite is no symmetry."""
    forced, reduced = Spilling(monkeypatch, bits), 0
    for seed in seeds:
        system = symmetric_system(Random(seed), favourite=seed % 7 == 6, picking=seed % 3 == 0)
        try:
            expected = explore(system, SearchOptions(symmetry=True, tier="python"))
        except ModelError:
            continue
        forced.after(Random(seed).choice([1, 8, 40]), fill=20, piece=10, merge=10)
        reduced += _same(system, explore(system, SearchOptions(symmetry=True, spill=tmp_path)), expected)
    assert reduced >= len(seeds) // 4
    assert forced.times


@pytest.mark.parametrize("names", [4, pytest.param(8, marks=pytest.mark.long)])
def test_managers_are_sorted(tmp_path: Path, names: int) -> None:
    """As many states as generated Python finds, also by two processes, and resumed only with symmetry."""
    system = TwoPhaseCommit.system(resource_managers=names)
    expected = explore(system, SearchOptions(symmetry=True, tier="python"))
    options: dict[str, Any] = {"symmetry": True, "tuning": Tuning(wide_level=20)}
    assert _same(system, explore(system, SearchOptions(spill=tmp_path / "a", **options)), expected)
    assert _same(system, explore(system, SearchOptions(spill=tmp_path / "b", workers=2, **options)), expected)
    again = explore(system, SearchOptions(spill=tmp_path / "b", resume=tmp_path / "b", **options))
    assert _same(system, again, expected)
    options["symmetry"] = False
    with pytest.raises(InputError, match="is of another run"):
        explore(system, SearchOptions(spill=tmp_path / "b", resume=tmp_path / "b", **options))
