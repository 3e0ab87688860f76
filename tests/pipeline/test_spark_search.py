"""Searches on Spark: the results of the search in memory, after deaths of workers and of the driver, too."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from random_fairness import severally_fair
from random_symmetric_systems import symmetric_system
from random_systems import random_system, temporal_system
from same_outcome import ENDLESS, outcome
from streamproof.base.options import SearchOptions, Tuning
from streamproof.engines.registry import CHECKS
from streamproof.explicit.exploration import Exploration, explore
from streamproof.pipeline.session import spark_session
from streamproof.pipeline.spark_search import explore_on_spark
from streamproof.system import ModelError, UsageError
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

pytestmark = pytest.mark.spark
FULL = TwoPhaseCommit.system(resource_managers=5)
"""8,832 states in 17 levels."""
WIDE = Tuning(wide_level=500)

SEARCH = """
import sys
from streamproof.base.options import SearchOptions, Tuning
from streamproof.pipeline.spark_search import explore_on_spark
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit
from pathlib import Path
master, folder, resume, wide = sys.argv[1:]
where = {"resume": Path(folder)} if resume == "resume" else {"spill": Path(folder)}
system = TwoPhaseCommit.system(resource_managers=5)
found = explore_on_spark(system, SearchOptions(master=master, tuning=Tuning(wide_level=int(wide)), **where))
print(found.counts.distinct, len(found.counts.levels), found.counts.generated, *(f.verdict.value for f in found.findings))
"""
EXPECTED = "8832 17 58146 holds holds"


def by_engine(system: Any, folder: Path, **options: Any) -> object:
    """The findings and counts of a search on Spark."""
    found = CHECKS["spark"].run(system, SearchOptions(master="local[2]", spill=folder, **options))
    assert isinstance(found, Exploration)
    return found.counts, [f for f in found.findings if f.kind not in ENDLESS], list(found.states())


def in_memory(system: Any) -> Any:
    """Those of a search in memory."""
    counts, *_, findings, _, states = outcome(system)  # type: ignore[misc]
    return counts, findings, states


def test_a_search_on_spark_is_the_one_in_memory(tmp_path: Path) -> None:
    """With its counts, levels, verdicts and the numbers of its states; wide levels are worked on by Spark, others here."""
    expected = in_memory(FULL)
    assert by_engine(FULL, tmp_path, tuning=WIDE) == expected
    assert json.loads((tmp_path / "search.json").read_text())["mark"]["levels"] == [*expected[0].levels]


def test_a_search_on_spark_needs_a_folder() -> None:
    """Which all processes share."""
    with pytest.raises(UsageError, match="needs a folder") as info:
        explore_on_spark(FULL, SearchOptions(master="local[2]"))
    assert "--spill DIR" in info.value.remedy


@pytest.fixture
def master(request: pytest.FixtureRequest) -> Iterator[str]:
    """A master with a session for all searches of a test."""
    with spark_session(request.param):
        yield request.param


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1000, 100))
@pytest.mark.parametrize("master", ["local[2]"], indirect=True)
def test_random_systems_on_spark(tmp_path: Path, master: str, first: int) -> None:
    """A hundred each time, every level of each on Spark."""
    for seed in range(first, first + 100):
        system = random_system(random.Random(seed))
        expected = outcome(system)
        if isinstance(expected, str):
            continue
        counts, _, _, stopped, *_, states = expected  # type: ignore[misc]
        found = explore_on_spark(
            system, SearchOptions(master=master, spill=tmp_path / str(seed), tuning=Tuning(wide_level=1))
        )
        assert (found.counts, list(found.states())) == (counts, states), f"seed {seed}"
        assert found.stopped == stopped


@pytest.mark.long
@pytest.mark.parametrize(
    ("master", "seeds"),
    [
        *(("local[2]", range(first, first + 50)) for first in range(0, 1000, 50)),
        ("local-cluster[2,1,1024]", range(1000, 1020)),
    ],
    indirect=["master"],
)
def test_symmetric_systems_on_spark(tmp_path: Path, master: str, seeds: range) -> None:
    """The workers find the representatives: counts, verdicts and lengths of generated Python in memory."""
    reduced = 0
    for seed in seeds:
        system = symmetric_system(random.Random(seed), favourite=seed % 7 == 6, picking=seed % 3 == 0)
        try:
            expected = explore(system, SearchOptions(symmetry=True, tier="python"))
        except ModelError:
            continue
        found = CHECKS["spark"].run(
            system,
            SearchOptions(symmetry=True, master=master, spill=tmp_path / str(seed), tuning=Tuning(wide_level=1)),
        )
        assert isinstance(found, Exploration)
        assert [r.applied for r in found.reductions] == [r.applied for r in expected.reductions], f"seed {seed}"
        reduced += found.reductions[0].applied
        if expected.mistake is not None:
            assert found.mistake is not None, f"seed {seed}"
            assert len(found.mistake.trace) == len(expected.mistake.trace), f"seed {seed}"
            continue
        assert (found.counts.levels, found.counts.generated) == (expected.counts.levels, expected.counts.generated)
        lengths = [[(f.property, f.verdict, f.trace and len(f.trace)) for f in r.findings] for r in (found, expected)]
        assert lengths[0] == lengths[1], f"seed {seed}"
    assert reduced >= len(seeds) // 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("master", "seeds"),
    [
        *(("local[2]", range(first, first + 10)) for first in range(0, 50, 10)),
        ("local-cluster[2,1,1024]", range(50, 55)),
    ],
    indirect=["master"],
)
def test_endless_behaviours_on_spark(tmp_path: Path, master: str, seeds: range) -> None:
    """The workers decide whether there is a fair cycle: the verdicts of the search in memory."""
    decided = 0
    for seed in seeds:
        system = severally_fair(seed) if seed % 2 else temporal_system(random.Random(seed))
        try:
            expected = explore(system, SearchOptions(tier="python"))
        except ModelError:
            continue
        options = SearchOptions(master=master, spill=tmp_path / str(seed), tuning=Tuning(wide_level=1))
        found = CHECKS["spark"].run(system, options)
        verdicts = [{f.property: f.verdict for f in r.findings if f.kind in ENDLESS} for r in (found, expected)]
        assert verdicts[0] == verdicts[1], f"seed {seed}"
        decided += len(verdicts[0])
    assert decided >= len(seeds)


def started(folder: Path, master: str = "local[2]", resume: str = "", wide: int = 100) -> subprocess.Popen[str]:
    """A process that searches."""
    return subprocess.Popen(
        [sys.executable, "-c", SEARCH, master, str(folder), resume, str(wide)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.mark.long
def test_processes_of_a_cluster_get_their_work_by_pickling(tmp_path: Path) -> None:
    """Two executors of Spark's test cluster, each a process of its own."""
    output, _ = started(tmp_path / "s", "local-cluster[2,1,1024]").communicate(timeout=550)
    assert output.strip() == EXPECTED


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_search_is_resumed(tmp_path: Path, seed: int) -> None:
    """At a random moment, the driver with all its processes, or one worker; the result is the same."""
    draw, folder = random.Random(seed), tmp_path / "s"
    running = started(folder)
    while not (folder / "search.json").exists():
        assert running.poll() is None
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 8))
    if seed % 2:
        workers = subprocess.run(
            ["pgrep", "-g", str(running.pid), "-f", "pyspark.daemon"], capture_output=True, text=True
        )
        for worker in workers.stdout.split()[-1:]:
            os.kill(int(worker), signal.SIGKILL)
        output, _ = running.communicate(timeout=500)
    else:
        os.killpg(running.pid, signal.SIGKILL)
        output, _ = running.communicate(timeout=100)
        if output.strip() != EXPECTED:
            output, _ = started(folder, resume="resume").communicate(timeout=500)
    assert output.strip() == EXPECTED
