"""Searches over the files of a shared folder: the same results as in memory, whatever the partitions, and after any end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from random_systems import random_system
from same_outcome import outcome
from shares import share
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.cluster import Cluster, InProcess
from streamproof.explicit.distributed import sorted_files
from streamproof.explicit.distributed.manifest import MANIFEST
from streamproof.explicit.exploration import explore
from streamproof.system import Exit, InputError, UsageError
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

FULL = TwoPhaseCommit.system(resource_managers=5)
"""8,832 states in 17 levels."""


class Killed(InProcess):
    """A process that ends at one of its jobs, like a driver that is killed."""

    def __init__(self, partitions: int, jobs: int) -> None:
        super().__init__(partitions, 1 << 22)
        self.left = jobs

    def run(self, work: Callable[[Any], Any], jobs: Sequence[Any], pulse: Callable[[], None]) -> list[Any]:
        """As long as there are jobs left."""
        done = []
        for job in jobs:
            if self.left == 0:
                raise RuntimeError("killed")
            self.left -= 1
            done.append(work(job))
        return done


@pytest.mark.parametrize("bits", [64, 6], ids=["one-word", "wide"])
@pytest.mark.parametrize("first", share(range(0, 1000, 50), 20))
def test_random_systems_are_searched_over_files_as_in_memory(tmp_path: Path, bits: int, first: int) -> None:
    """Wherever the hand-over is and however small the pieces, with limits on states and depth: nothing differs."""
    handed_over = 0
    for seed in range(first, first + (50 if first else 10)):
        draw = Random(seed)
        system = random_system(Random(seed))
        limits: dict[str, Any] = draw.choice(
            [{}, {}, {"max_states": seed + 1}, {"max_states": 20}, {"max_depth": 3}, {"stop_when_decided": True}]
        )
        expected = outcome(system, tuning=Tuning(word_bits=bits), **limits)
        rows = draw.choice([2, 20, 1 << 16])
        folder = tmp_path / str(seed)
        executor = InProcess(draw.choice([1, 2, 3, 7]), draw.choice([2_000, 20_000, 1 << 22]))
        tuning = Tuning(word_bits=bits, wide_level=draw.choice([1, 1, 4, 20]), file_rows=rows)
        assert outcome(system, Cluster(executor, str(folder)), tuning=tuning, **limits) == expected, f"seed {seed}"
        handed_over += any(name.name.startswith("level-") for name in folder.rglob("*"))
    assert handed_over >= 6


@pytest.mark.parametrize("system", [FULL, Ewd840.system(n=3)], ids=["two-phase-commit", "ewd840"])
def test_states_of_one_hash_are_distinguished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: Any) -> None:
    """With three hashes for all states, every comparison is one of whole states."""
    expected = outcome(system)
    monkeypatch.setattr(sorted_files, "_mixed", lambda words: (words % np.uint64(3)) << np.uint64(62))
    tuning = Tuning(wide_level=1, file_rows=100)
    assert outcome(system, Cluster(InProcess(4, 200_000), str(tmp_path)), tuning=tuning) == expected


@pytest.mark.parametrize("jobs", [0, 1, 5, 30, 61, 100])
def test_a_search_goes_on_after_it_was_killed(tmp_path: Path, jobs: int) -> None:
    """From the end of the last complete level, with the same result; what the killed run had begun is removed."""
    tuning = Tuning(wide_level=1)
    executor = Killed(3, jobs)
    with pytest.raises(RuntimeError, match="killed"):
        explore(FULL, SearchOptions(tuning=tuning), cluster=Cluster(executor, str(tmp_path)))
    with pytest.raises(UsageError, match="holds a search"):
        explore(FULL, SearchOptions(tuning=tuning), cluster=Cluster(InProcess(3, 1 << 22), str(tmp_path)))
    resumed = Cluster(InProcess(5, 1 << 22), str(tmp_path), resume=True)
    assert outcome(FULL, resumed, tuning=tuning) == outcome(FULL)
    document = json.loads((tmp_path / MANIFEST).read_text())
    assert document["partitions"] == 3
    assert sum(document["mark"]["levels"]) == 8832
    assert not [*tmp_path.rglob("*.part"), *tmp_path.rglob("*out-*"), *tmp_path.rglob("*-new-*")]


def test_a_finished_search_is_read_again(tmp_path: Path) -> None:
    """Its result is that of the first time."""
    tuning = Tuning(wide_level=1)
    explore(FULL, SearchOptions(tuning=tuning), cluster=Cluster(InProcess(2, 1 << 22), str(tmp_path)))
    assert outcome(FULL, Cluster(InProcess(2, 1 << 22), str(tmp_path), resume=True), tuning=tuning) == outcome(FULL)


def refused(match: str, place: Path, *, resume: bool = True, system: Any = FULL) -> None:
    """A search in a folder is refused with a message, and leaves its files as they are."""
    before = sorted(place.rglob("*"))
    with pytest.raises((InputError, UsageError), match=match) as info:
        explore(
            system,
            SearchOptions(tuning=Tuning(wide_level=1)),
            cluster=Cluster(InProcess(2, 1 << 22), str(place), resume=resume),
        )
    assert info.value.exit_code in (Exit.USAGE, Exit.MALFORMED)
    assert sorted(place.rglob("*")) == before


def test_folders_of_others(tmp_path: Path) -> None:
    """Another model's search, a damaged manifest, a missing file, and files of something else are refused and kept."""
    tuning = Tuning(wide_level=1)
    folder = tmp_path / "search"
    explore(FULL, SearchOptions(tuning=tuning), cluster=Cluster(InProcess(2, 1 << 22), str(folder)))

    refused("of another run", folder, system=Ewd840.system(n=3))
    other = tmp_path / "other"
    other.mkdir()
    refused("has no search", other)
    refused("has no search", tmp_path / "nowhere")
    (other / "thesis.txt").write_text("all of it")
    refused("has other files, such as thesis.txt", other, resume=False)
    manifest = folder / MANIFEST
    text = manifest.read_text()
    manifest.write_text(text.replace('"partitions": 2', '"partitions": 3'))
    refused("is damaged", folder)
    manifest.write_text(text[:-9])
    refused("is not the manifest", folder)
    manifest.write_text(text)
    next(folder.rglob("states-1")).unlink()
    refused("is missing", folder)


def test_a_run_ends_when_another_one_has_taken_its_folder(tmp_path: Path) -> None:
    """It does not write over the other run's manifest."""
    tuning = Tuning(wide_level=1)

    class Robbed(InProcess):
        """At its twentieth turn, another run resumes in the same folder."""

        turns = 0

        def run(self, work: Callable[[Any], Any], jobs: Sequence[Any], pulse: Callable[[], None]) -> list[Any]:
            """As usual, but for that turn."""
            self.turns += 1
            if self.turns == 20:
                second = Cluster(InProcess(2, 1 << 22), str(tmp_path), resume=True)
                assert outcome(FULL, second, tuning=tuning) == outcome(FULL)
            return super().run(work, jobs, pulse)

    with pytest.raises(UsageError, match="another run has begun"):
        explore(FULL, SearchOptions(tuning=tuning), cluster=Cluster(Robbed(2, 1 << 22), str(tmp_path)))
    assert outcome(FULL, Cluster(InProcess(2, 1 << 22), str(tmp_path), resume=True), tuning=tuning) == outcome(FULL)
