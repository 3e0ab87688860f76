"""Searches that go on on disk: the same results as in memory, and never more memory than allowed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from forced_spilling import Spilling
from random_systems import random_system
from same_outcome import ENDLESS, outcome
from shares import share
from streamproof import Model, Range, State, action, reachable, require, step
from streamproof.base.options import SearchOptions, Tuning
from streamproof.base.records import replace
from streamproof.explicit.compiled import spill
from streamproof.explicit.compiled.deduplicate import Sizes
from streamproof.explicit.compiled.memory import StateTable
from streamproof.explicit.compiled.runs import RunPart, SortedRun, key_kind, keys_of, merged
from streamproof.explicit.compiled.spill import SpillingSearch
from streamproof.explicit.compiled.spill_file import SpillFile
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Budget
from streamproof.system import Exit, System, SystemFailure, UsageError, Verdict
from streamproof_models.reference.ewd840 import Ewd840
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

FULL = TwoPhaseCommit.system(resource_managers=5)
"""8,832 states in 17 levels."""


class Walk(Model):
    """Steps to the right and up, from which 10,201 places are reached."""

    def state(self) -> State:
        """The place."""
        return State(x=Range(0, 100), y=Range(0, 100))

    @action
    def right(self, s: Any) -> None:
        """One step."""
        require(s.x < 100)
        s.x += 1

    @action
    def up(self, s: Any) -> None:
        """One step."""
        require(s.y < 100)
        s.y += 1

    @step
    def careful(self, s: Any, t: Any) -> bool:
        """Nobody leaves the line at its fortieth place to the right."""
        return bool(not (s.x == 40 and t.x == 41 and s.y == 0))

    @reachable
    def far(self, s: Any) -> bool:
        """The farthest place."""
        return bool(s.x == 100 and s.y == 100)


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> Spilling:
    """Searches with a folder to spill to begin to do so after some 400 states."""
    forced = Spilling(monkeypatch)
    forced.after(512, fill=300, piece=128, merge=500)
    return forced


@pytest.mark.parametrize("bits", [64, 6], ids=["one-word", "wide"])
@pytest.mark.parametrize("first", share(range(0, 200, 50), 4))
def test_random_systems_spill_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int, first: int
) -> None:
    """Wherever memory ends and however small the pieces, with limits on states and depth: nothing differs."""
    wide = Tuning(word_bits=bits)
    systems = [(seed, random_system(Random(seed))) for seed in range(first, first + 20)]
    limits: list[dict[str, Any]] = [
        Random(seed).choice([{}, {}, {"max_states": seed + 1}, {"max_depth": 3}, {"stop_when_decided": True}])
        for seed, _ in systems
    ]
    expected = [outcome(system, tuning=wide, **options) for (_, system), options in zip(systems, limits, strict=True)]
    forced = Spilling(monkeypatch, bits)
    for (seed, system), options, wanted in zip(systems, limits, expected, strict=True):
        draw = Random(seed)
        forced.after(
            draw.choice([1, 8, 24, 60]),
            fill=draw.choice([1, 5, 20, 100]),
            piece=draw.choice([1, 3, 10, 100]),
            merge=draw.choice([1, 10, 100]),
        )
        assert outcome(system, spill=tmp_path, **options) == wanted, f"seed {seed}"
    assert forced.times >= 8
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("system", [FULL, Ewd840.system()], ids=["two_phase_commit", "ewd840"])
def test_bundled_models(tmp_path: Path, spilling: Spilling, system: System) -> None:
    """Counts, levels, the order of states and findings of models with thousands of states."""
    spilled = outcome(system, spill=tmp_path)
    assert spilling.times == 1
    spilling.after(1 << 20, fill=0, piece=0, merge=0)
    assert spilled == outcome(system)


def test_limits_on_states_are_exact(tmp_path: Path, spilling: Spilling) -> None:
    """At any limit the search ends with the very state at which it ends in memory."""
    spilled = [outcome(FULL, spill=tmp_path, max_states=most) for most in range(1000, 8000, 1402)]
    spilling.after(1 << 20, fill=0, piece=0, merge=0)
    assert spilled == [outcome(FULL, max_states=most) for most in range(1000, 8000, 1402)]


@pytest.mark.parametrize("grows", [True, False])
def test_the_log_moves_to_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool) -> None:
    """The table alone stays in memory, or then nothing; the results are the same."""
    expected = outcome(FULL)
    forced, shed = Spilling(monkeypatch), StateTable.shed
    monkeypatch.setattr(Budget, "tuning", Tuning(first_capacity=512))
    monkeypatch.setattr(Sizes, "within", staticmethod(lambda room, words: Sizes(300, 128, 500)))
    sizes: list[int] = []

    def counted(table: StateTable) -> bool:
        sizes.append(table.count)
        return shed(table)

    monkeypatch.setattr(StateTable, "shed", counted)
    monkeypatch.setattr(StateTable, "_affordable", lambda table, *_: table.in_files and grows)
    assert outcome(FULL, spill=tmp_path) == expected
    assert sizes
    assert sizes[0] < 1000
    assert forced.times == (not grows)
    assert not list(tmp_path.iterdir())


def test_endless_behaviours_are_decided_on_disk(tmp_path: Path, spilling: Spilling) -> None:
    """On a graph in files that nothing is left of; without room for it they are inconclusive, and all else is decided."""
    system = Ewd840.system()
    spilled = explore(system, SearchOptions(spill=tmp_path, tier="compiled"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "posix_fallocate", _full)
        full = explore(system, SearchOptions(spill=tmp_path, tier="compiled"))
    assert spilling.times == 2
    spilling.after(1 << 20, fill=0, piece=0, merge=0)
    assert spilled.findings == explore(system, SearchOptions(tier="compiled")).findings
    for finding, other in zip(full.findings, spilled.findings, strict=True):
        if finding.kind in ENDLESS:
            assert finding.verdict is Verdict.INCONCLUSIVE
            assert finding.because.startswith("the state graph needs 0.0 GiB more in")
        else:
            assert finding == other
    assert not list(tmp_path.iterdir())


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_limit_on_time_holds_on_disk(tmp_path: Path, spilling: Spilling, monkeypatch: pytest.MonkeyPatch) -> None:
    """When time is up the level that was begun is finished as far as it was expanded, and counts agree."""
    readings = count()
    monkeypatch.setattr(Budget, "elapsed", property(lambda self: next(readings)))
    found = explore(FULL, SearchOptions(spill=tmp_path, tier="compiled", time_limit=60.0))
    assert found.stopped == "time_limit"
    assert spilling.times == 1
    assert sum(found.counts.levels) == found.counts.distinct == len(list(found.states()))
    assert 400 < found.counts.distinct < 8832
    assert sum(found.coverage.generated.values()) == found.counts.generated - found.counts.levels[0]
    assert sum(found.coverage.distinct.values()) == found.counts.distinct - found.counts.levels[0]


def test_an_interrupt_goes_back_to_the_end_of_a_level(
    tmp_path: Path, spilling: Spilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a merge: what complete levels showed is the answer, and no file is left."""
    whole = explore(FULL, SearchOptions(spill=tmp_path, tier="compiled"))
    calls = count()

    def broken(*parts: Any) -> Iterator[Any]:
        for piece in merged(*parts):
            if next(calls) == 40:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(spill, "merged", broken)
    found = explore(FULL, SearchOptions(spill=tmp_path, tier="compiled"))
    assert found.stopped == "interrupted"
    depth = found.counts.depth
    assert 3 < depth < whole.counts.depth
    assert found.counts.levels == whole.counts.levels[:depth]
    assert found.counts.queue == found.counts.levels[-1]
    assert list(found.states()) == list(whole.states())[: found.counts.distinct]
    assert not list(tmp_path.iterdir())


def test_what_was_broken_stays_broken(tmp_path: Path, spilling: Spilling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step from the level that is given up breaks a property: its counterexample is kept, and ends with that step."""
    report = SpillingSearch._report

    def interrupting(search: SpillingSearch) -> None:
        report(search)
        if search._first(search._facts.hit(0)) >= 0:
            search.budget.interrupt()

    monkeypatch.setattr(SpillingSearch, "_report", interrupting)
    found = explore(Walk.system(), SearchOptions(spill=tmp_path, tier="compiled"))
    assert (found.stopped, spilling.times) == ("interrupted", 1)
    assert found.counts.levels == tuple(range(1, 42))
    finding = found.finding("careful")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert len(finding.trace) == 42
    assert [s.label for s in finding.trace.steps] == ["right()"] * 41
    assert found.finding("far").verdict is Verdict.INCONCLUSIVE


def test_a_full_disk_is_reported_in_a_sentence(
    tmp_path: Path, spilling: Spilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is named, what to do is said, and nothing is left in it."""
    write, calls = os.pwrite, count()

    def full(file: int, data: Any, place: int) -> int:
        if next(calls) == 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data, place)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SystemFailure, match=f"cannot spill to {tmp_path}: No space left on device") as caught:
        explore(FULL, SearchOptions(spill=tmp_path, tier="compiled"))
    assert caught.value.exit_code is Exit.SYSTEM
    assert caught.value.remedy == "name a folder on a disk with free space with --spill DIR"
    assert not list(tmp_path.iterdir())


def test_files_of_others_are_left_alone(tmp_path: Path, spilling: Spilling) -> None:
    """A folder that is in use for other things may be named; one that does not exist is there while it is needed."""
    (tmp_path / "thesis.tex").write_text("precious")
    explore(FULL, SearchOptions(spill=tmp_path, tier="compiled"))
    explore(FULL, SearchOptions(spill=tmp_path / "new" / "folder", tier="compiled"))
    assert spilling.times == 2
    assert (tmp_path / "thesis.tex").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["thesis.tex"]


def test_a_folder_that_will_not_do_is_refused_at_once(tmp_path: Path) -> None:
    """Before anything is searched, however small the model."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match=r"file is a file"):
        explore(FULL, SearchOptions(spill=tmp_path / "file"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tier": "python"}, "only the compiled tier spills"),
        ({"por": True}, "only the compiled tier spills"),
        ({"checkpoint": Path("kept")}, "have one folder"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Spilling is for compiled code without reduction; a checkpoint is in the same folder. The rest is refused by name."""
    with pytest.raises(UsageError, match=message):
        explore(FULL, SearchOptions(spill=tmp_path, **options))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [1, 3])
def test_runs_tell_what_is_known(tmp_path: Path, words: int) -> None:
    """Membership by blocks, and merging with the first part first, against sets and dictionaries."""
    draw = np.random.default_rng(7)
    for size in (0, 1, 3, 4, 5, 50, 300):
        rows = draw.integers(0, 5, size=(size, words), dtype=np.uint64) << np.uint64(56)
        rows[:, -1] += draw.integers(0, 200, size=size, dtype=np.uint64)
        keys = np.unique(keys_of(rows))
        run = SortedRun(tmp_path, words, stride=4)
        for at in range(0, len(keys), 7):
            run.append(keys[at : at + 7])
        others = draw.integers(0, 5, size=(200, words), dtype=np.uint64) << np.uint64(56)
        others[:, -1] += draw.integers(0, 200, size=200, dtype=np.uint64)
        wanted = np.unique(keys_of(others))
        members = set(keys.tolist())
        assert run.known(wanted, 16).tolist() == [key in members for key in wanted.tolist()]
        file = SpillFile(tmp_path, key_kind(words))
        file.append(wanted)
        first: dict[Any, tuple[int, int]] = {}
        for part, values in enumerate((wanted[50:], keys, wanted[:100])):
            for place, key in enumerate(values.tolist()):
                first.setdefault(key, (part, place + (50 if part == 0 else 0)))
        parts = [RunPart(file, 50, len(wanted)), RunPart(run, 0, run.count), RunPart(file, 0, 100)]
        got = [
            (key, (which, note))
            for pieces in merged(parts, 16)
            for key, which, note in zip(*(x.tolist() for x in pieces), strict=True)
        ]
        assert got == sorted(first.items())


def test_tables_grow_less_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubling would need more than is allowed; smaller steps and fuller tables hold the whole state space."""
    whole = outcome(FULL)
    small = Tuning(first_capacity=64, batch_states=1)
    monkeypatch.setattr(Budget, "allows", lambda self, more: more <= 30_000)
    assert outcome(FULL, tuning=small) == whole
    assert explore(FULL, SearchOptions(tier="compiled", tuning=replace(small, frugal=()))).stopped == "memory"


def run(*words: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """A check in a process of its own: exit code and JSON."""
    command = [sys.executable, "-m", "streamproof", "check", *words, "-q", "--json", "-"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_limit_on_memory_ends_inconclusive(tmp_path: Path) -> None:
    """A search of ten million states with 250 MB: exit code 160, what was covered, and no more memory than that."""
    words = ("reference.two_phase_commit", "-p", "resource_managers=9", "--memory", "250MB")
    code, answer = run(*words, folder=tmp_path)
    assert (code, answer["verdict"]) == (160, "inconclusive")
    assert answer["memory"]["peak_bytes"] < 275_000_000
    assert 100_000 < answer["states"]["distinct"] < 10_340_352
    assert (
        "memory limit of 250MB reached; raise --memory, continue on disk with --spill DIR"
        in answer["properties"][0]["because"]
    )
    assert answer["reproduce"].endswith("--memory 250MB")


@pytest.mark.parametrize("text", ["0", "4XB", "-1GB", "much"])
def test_amounts_that_are_none(tmp_path: Path, text: str) -> None:
    """They are named, and examples given."""
    command = [sys.executable, "-m", "streamproof", "check", "reference.die_hard", f"--memory={text}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"'{text}' is not a memory size; write it as 500MB, 4GB or 4GiB" in done.stderr


@pytest.mark.long
def test_ten_million_states_in_a_quarter_of_a_gigabyte(tmp_path: Path) -> None:
    """The counts are those of the search in memory, which takes 100 MB more; memory stays below the limit."""
    folder = tmp_path / "spill"
    words = ("reference.two_phase_commit", "-p", "resource_managers=9", "--memory", "250MB", "--spill", str(folder))
    code, answer = run(*words, folder=tmp_path)
    assert (code, answer["verdict"]) == (0, "holds")
    counts = answer["states"]
    assert (counts["distinct"], counts["generated"], counts["depth"]) == (10_340_352, 123_558_402, 29)
    assert answer["memory"]["peak_bytes"] < 275_000_000
    assert not folder.exists()
