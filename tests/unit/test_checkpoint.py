"""Checkpoints: a run that was cut short or killed goes on with the same results, and only the same run does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import Exploration, explore
from streamproof.system import InputError, SystemFailure, UsageError
from streamproof_models.reference.ewd998 import Ewd998
from streamproof_models.reference.two_phase_commit import TwoPhaseCommit

SYSTEM = TwoPhaseCommit.system(resource_managers=5)


def everything(found: Exploration) -> object:
    """All that must be the same."""
    return found.counts, found.findings, found.coverage, list(found.states())


def cut(folder: Path, states: int, **more: Any) -> Exploration:
    """A run that stops after so many states and leaves a checkpoint."""
    return explore(SYSTEM, SearchOptions(checkpoint=folder, max_states=states, checkpoint_seconds=0, **more))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("states", share([1, 50, 3000, 8000], 3))
def test_a_run_that_was_cut_short_goes_on(tmp_path: Path, workers: int, states: int) -> None:
    """Counts, findings, coverage and the order of states are those of a run in one piece, by any number of workers."""
    assert cut(tmp_path, states, workers=workers).stopped == "max_states"
    resumed = explore(SYSTEM, SearchOptions(resume=tmp_path, workers=3 - workers))
    assert resumed.complete
    assert everything(resumed) == everything(explore(SYSTEM, SearchOptions(tier="compiled", workers=1)))


def test_a_run_can_be_cut_short_many_times(tmp_path: Path) -> None:
    """Each run goes on from where the one before it was."""
    cut(tmp_path, 10)
    for states in (100, 1000, 5000):
        assert (
            explore(SYSTEM, SearchOptions(resume=tmp_path, max_states=states, checkpoint_seconds=0)).stopped
            == "max_states"
        )
    assert everything(explore(SYSTEM, SearchOptions(resume=tmp_path))) == everything(
        explore(SYSTEM, SearchOptions(tier="compiled"))
    )


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """After kill -9 at whatever moment, the run resumes with the results of an undisturbed one."""
    folder = tmp_path / "kept"
    program = (
        "from streamproof.base.options import SearchOptions; from streamproof.explicit.exploration import explore\n"
        "from streamproof_models.reference.ewd998 import Ewd998\n"
        f"options = SearchOptions(('safra',), checkpoint={str(folder)!r}, checkpoint_seconds=0)\n"
        f"explore(Ewd998.system(), options)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            manifest = folder / "checkpoint.json"
            if manifest.exists() and json.loads(manifest.read_text())["states"] > 20_000:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    finally:
        process.wait()
    resumed = explore(Ewd998.system(), SearchOptions(resume=folder, properties=("safra",)))
    assert resumed.complete
    assert (resumed.counts.distinct, resumed.counts.generated, resumed.counts.depth) == (1_520_618, 11_238_019, 59)


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    """Another model, size or choice of properties does not go on from it."""
    cut(tmp_path, 100)
    for other, options in (
        (Ewd998.system(), {}),
        (TwoPhaseCommit.system(resource_managers=6), {}),
        (SYSTEM, {"properties": ()}),
    ):
        with pytest.raises(InputError, match="of another run"):
            explore(other, SearchOptions(resume=tmp_path, **options))


def test_other_versions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is of one version of streamproof."""

    cut(tmp_path, 100)
    monkeypatch.setattr("streamproof.version.VERSION", "99")
    with pytest.raises(InputError, match="of another run"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))


@pytest.mark.parametrize("name", ["states.bin", "predecessors.bin"])
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    """A changed byte and a missing one are both reported, with the file's name."""
    cut(tmp_path, 100)
    path = tmp_path / name
    content = path.read_bytes()
    path.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])
    with pytest.raises(InputError, match=f"{name} is damaged"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))
    path.write_bytes(content[:-1])
    with pytest.raises(InputError, match=f"{name} is shorter"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))


def test_what_is_no_checkpoint_is_told(tmp_path: Path) -> None:
    """A folder without one, and files that are something else."""
    with pytest.raises(InputError, match="has no checkpoint"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))
    (tmp_path / "checkpoint.json").write_text("[1]")
    with pytest.raises(InputError, match="not a checkpoint of this format"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))
    (tmp_path / "checkpoint.json").write_text("{")
    with pytest.raises(InputError, match=r"checkpoint\.json:1: not JSON"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))


def test_damage_to_the_small_file_is_noticed(tmp_path: Path) -> None:
    """A changed number in it is reported too."""
    cut(tmp_path, 100)
    path = tmp_path / "checkpoint.json"
    document = json.loads(path.read_text())
    document["mark"]["next"] += 1
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"checkpoint.json is damaged"):
        explore(SYSTEM, SearchOptions(resume=tmp_path))


def test_a_finished_run_and_one_at_its_beginning_resume(tmp_path: Path) -> None:
    """There is a checkpoint from the first level on, and one at the end."""
    whole = explore(SYSTEM, SearchOptions(checkpoint=tmp_path / "whole"))
    assert everything(explore(SYSTEM, SearchOptions(resume=tmp_path / "whole"))) == everything(whole)
    assert cut(tmp_path / "first", 1).stopped == "max_states"
    assert everything(explore(SYSTEM, SearchOptions(resume=tmp_path / "first"))) == everything(whole)


def test_a_limit_below_what_was_reached_counts(tmp_path: Path) -> None:
    """A resumed run that is deeper than max_depth goes no further."""
    cut(tmp_path, 3000)
    assert explore(SYSTEM, SearchOptions(resume=tmp_path, max_depth=3)).stopped == "max_depth"


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    """While one run writes to a folder, another is refused."""
    import fcntl

    cut(tmp_path, 100)
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run"):
            explore(SYSTEM, SearchOptions(resume=tmp_path))


def test_a_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    """A new run does not begin over an older one's folder."""
    cut(tmp_path, 100)
    with pytest.raises(UsageError, match="holds a checkpoint"):
        cut(tmp_path, 100)


def test_wrong_uses_are_told(tmp_path: Path) -> None:
    """Both options at once, the other tier, and a place where nothing can be written."""
    with pytest.raises(UsageError, match="exclude each other"):
        explore(SYSTEM, SearchOptions(checkpoint=tmp_path, resume=tmp_path))
    with pytest.raises(UsageError, match="only the compiled tier"):
        explore(SYSTEM, SearchOptions(checkpoint=tmp_path, tier="python"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemFailure, match="cannot be written"):
        explore(SYSTEM, SearchOptions(checkpoint=tmp_path / "file" / "folder"))


def test_a_full_disk_keeps_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails, one message says so, and the older checkpoint still resumes."""
    cut(tmp_path, 100)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(SystemFailure, match="No space left"):
            explore(SYSTEM, SearchOptions(resume=tmp_path, checkpoint_seconds=0))
    assert everything(explore(SYSTEM, SearchOptions(resume=tmp_path))) == everything(
        explore(SYSTEM, SearchOptions(tier="compiled"))
    )
