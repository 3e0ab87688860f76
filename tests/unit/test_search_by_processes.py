"""Searches in files by processes of this machine: the results of the search in memory, and resumed after any end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from random_systems import random_system
from same_outcome import ENDLESS, outcome
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Budget
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

FULL = TwoPhaseCommit.system(resource_managers=5)
"""8,832 states in 17 levels."""
SEARCH = """
import sys
from pathlib import Path
from streamproof.base.options import SearchOptions, Tuning
from streamproof.explicit.exploration import explore
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit
folder, way = sys.argv[1:]
options = SearchOptions(spill=Path(folder), tuning=Tuning(wide_level=100), **{way: Path(folder)})
found = explore(TwoPhaseCommit.system(resource_managers=5), options)
print(found.counts.distinct, len(found.counts.levels), found.counts.generated, *(f.verdict.value for f in found.findings))
"""
EXPECTED = "8832 17 58146 holds holds"


def in_files(system: Any, folder: Path, **options: Any) -> tuple[Any, ...]:
    """Counts, findings and states of a search by two processes."""
    found = explore(system, SearchOptions(spill=folder, **options))
    return found.counts, [f for f in found.findings if f.kind not in ENDLESS], list(found.states())


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    """Counts, levels, verdicts and numbers of states; a finished search can be resumed."""
    counts, *_, findings, _, states = outcome(FULL)  # type: ignore[misc]
    tuning = Tuning(wide_level=1200)
    assert in_files(FULL, tmp_path / "s", workers=2, tuning=tuning) == (counts, findings, states)
    assert in_files(FULL, tmp_path / "s", resume=tmp_path / "s", tuning=tuning) == (counts, findings, states)


def test_endless_behaviours_are_decided_in_files(tmp_path: Path) -> None:
    """Whether the states are in files, or only their graph does not fit into memory."""
    system = Ewd840.system()
    expected = explore(system, SearchOptions(tier="compiled")).findings
    assert [f.property for f in expected if f.kind in ENDLESS]
    for number, wide in enumerate((100, 1 << 30)):
        folder = tmp_path / str(number)
        options = SearchOptions(spill=folder, workers=2, tuning=Tuning(wide_level=wide))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Budget, "allows", lambda self, more: more < 1000)
            assert explore(system, options).findings == expected
        assert (folder / "search.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_systems_by_processes(tmp_path: Path, first: int) -> None:
    """A hundred each time, every level of each in files."""
    for seed in range(first, first + 100):
        system = random_system(random.Random(seed))
        expected = outcome(system)
        if isinstance(expected, str):
            continue
        counts, _, _, stopped, *_, states = expected  # type: ignore[misc]
        options = SearchOptions(spill=tmp_path / str(seed), workers=2, tuning=Tuning(wide_level=1))
        found = explore(system, options)
        assert (found.counts, list(found.states())) == (counts, states), f"seed {seed}"
        assert found.stopped == stopped
        pairs = zip(found.findings, explore(system, SearchOptions(tier="compiled")).findings, strict=True)
        # Cycles among the states before an evaluation error are found in memory only.
        assert all(one.verdict is other.verdict for one, other in pairs if not (stopped and other.kind in ENDLESS))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_killed_search_is_resumed(tmp_path: Path, seed: int) -> None:
    """The first process and all others, at a random moment."""
    draw, folder = random.Random(seed), tmp_path / "s"

    def started(way: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SEARCH, str(folder), way]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    running = started("checkpoint")
    while not (folder / "search.json").exists():
        assert running.poll() is None
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 3))
    os.killpg(running.pid, signal.SIGKILL)
    output, _ = running.communicate(timeout=100)
    if output.strip() != EXPECTED:
        again = "checkpoint" if '"mark": null' in (folder / "search.json").read_text() else "resume"
        output, _ = started(again).communicate(timeout=500)
    assert output.strip() == EXPECTED
