"""A plain installation has no pyarrow: what needs it says so before it begins, and everything else works."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

PARQUET = "parquet"
CHECKED = ("check", "counter.py", "--variant", "jumping", "--property", "grows", "-q")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does not find pyarrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("words", "purpose", "extra"),
    [
        (("sweep", "counter.py"), "the table of a sweep", PARQUET),
        (("report", "events.parquet", "--out", "report"), "a report", "parquet"),
        (("validate", "log", "--events", "events", "--format", "parquet"), "--format parquet", PARQUET),
        (("run", "counter.py", "--simulate", "--trace", "t", "--trace-format", "parquet"), "--trace-format parquet", PARQUET),
        (("validate", "events.parquet", "--model", "counter.py"), "events.parquet: Parquet", PARQUET),
        (("validate", "logs", "--model", "failover"), "a log compressed by zstd", PARQUET),
    ],
)  # fmt: skip
def test_what_needs_pyarrow_names_the_extra(
    streamproof: Any, folder: Path, words: tuple[str, ...], purpose: str, extra: str
) -> None:
    """Exit code 153, one sentence and the command that installs it; nothing is written."""
    (folder / "events.parquet").write_bytes(b"PAR1")
    (folder / "log").mkdir()
    (folder / "logs").mkdir()
    (folder / "logs" / "jobmanager.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    before = {*folder.rglob("*")}
    done = streamproof(*words)
    assert done.code == 153, done
    assert f"{purpose} requires pyarrow" in " ".join(done.err.split())
    assert f"pip install 'streamproof[{extra}]'" in done.err
    assert {*folder.rglob("*")} == before


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("words", "code"),
    [(CHECKED, 0), (("prove", *CHECKED[1:]), 0), (("simulate", *CHECKED[1:]), 160), (("bugbench", "FLINK-18595"), 0)],
)
def test_other_verbs_do_without_pyarrow(streamproof: Any, words: tuple[str, ...], code: int) -> None:
    """A search, a proof, a simulation and the historical defects do not need it."""
    done = streamproof(*words)
    assert done.code == code, done
