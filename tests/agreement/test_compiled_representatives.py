"""Symmetry in compiled code, in memory and on disk: the representatives lead to the results of generated Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forced_spilling import Spilling
from random_symmetric_systems import symmetric_system
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.cluster import Cluster, InProcess
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


def drawn(seeds: range) -> Iterator[tuple[int, System, Exploration]]:
    """Systems of interchangeable processes, some with a favourite among them, and the search of generated Python."""
    for seed in seeds:
        system = symmetric_system(Random(seed), favourite=seed % 7 == 6, picking=seed % 3 == 0)
        with suppress(ModelError):  # no initial state
            yield seed, system, explore(system, SearchOptions(symmetry=True, tier="python"))


@pytest.mark.parametrize("bits", [64, 5], ids=["one-word", "wide"])
@pytest.mark.parametrize(
    "seeds", [range(5), *(pytest.param(range(n, n + 150), marks=pytest.mark.long) for n in range(5, 1055, 150))]
)
def test_random_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range, bits: int) -> None:
    """Of interchangeable processes, whose states are sorted by parts or renamed; a favourite is no symmetry."""
    forced, reduced = Spilling(monkeypatch, bits), 0
    for seed, system, expected in drawn(seeds):
        forced.after(Random(seed).choice([1, 8, 40]), fill=20, piece=10, merge=10)
        reduced += _same(system, explore(system, SearchOptions(symmetry=True, spill=tmp_path)), expected)
    assert reduced >= len(seeds) // 4
    assert forced.times


@pytest.mark.parametrize(
    "seeds", [range(10), *(pytest.param(range(n, n + 150), marks=pytest.mark.long) for n in range(10, 1060, 150))]
)
def test_random_systems_in_memory(seeds: range) -> None:
    """Compiled code, with one thread and with two."""
    reduced = 0
    several: list[dict[str, Any]] = [{"tier": "compiled"}, {"workers": 2}]
    for _, system, expected in drawn(seeds):
        for options in several:
            reduced += _same(system, explore(system, SearchOptions(symmetry=True, **options)), expected)
    assert reduced >= len(seeds) // 2


@pytest.mark.parametrize(
    "seeds", [range(5), *(pytest.param(range(n, n + 150), marks=pytest.mark.long) for n in range(5, 1055, 150))]
)
def test_random_systems_over_files(tmp_path: Path, seeds: range) -> None:
    """As by the workers of a cluster, every level in files of one to seven partitions."""
    reduced = 0
    for seed, system, expected in drawn(seeds):
        draw = Random(seed)
        executor = InProcess(draw.choice([1, 2, 3, 7]), draw.choice([2_000, 20_000, 1 << 22]))
        tuning = Tuning(wide_level=draw.choice([1, 1, 4]), word_bits=draw.choice([64, 6]))
        options = SearchOptions(symmetry=True, tuning=tuning)
        reduced += _same(
            system, explore(system, options, cluster=Cluster(executor, str(tmp_path / str(seed)))), expected
        )
    assert reduced >= len(seeds) // 4


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
