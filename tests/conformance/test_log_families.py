"""The families of log messages exist in Flink 2.3: its logging calls, or the constants of a jar, have their messages."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamproof.conformance.flink import read_run
from streamproof.conformance.flink.message_forms import FORMS

CALLS = Path(__file__).parents[1] / "data" / "flink" / "log_calls_2.3.0.tsv.xz"
TABLE = CALLS.with_name("log_families.tsv")
UNLISTED = {"ckpt.failed", "ckpt.savepoint"}
"""Families whose calls are in the list with another constant, since they choose between two texts."""


@pytest.fixture(scope="module")
def tool(tool_module: Any) -> ModuleType:
    """The tool, which is a script."""
    module: ModuleType = tool_module("log_families")
    return module


def test_the_families_are_in_the_list_of_calls(tool: ModuleType) -> None:
    """All but those whose classes are not in it; the loops of 1.x are not expected."""
    found = {one.family: one for one in tool.check(list(tool.calls_of_list(CALLS)), "2.3")}
    assert {name for name, one in found.items() if one.is_missing} == UNLISTED
    assert {name for name, one in found.items() if not one.expected} == {n for n in found if n.startswith("loop.")}
    assert sum(bool(one.owners) for one in found.values()) > 75
    assert found["slot.tm.activate"].owners == ("TaskSlotTableImpl",)


def test_loops_are_logged_up_to_flink_1_20(tool: ModuleType, flink_versions: Path) -> None:
    """A recorded run has the lines of both ends of a feedback edge."""
    counts = read_run(flink_versions / "v120-iterate").counts
    assert min(counts["loop.head"], counts["loop.tail"]) > 0
    assert [tool.is_logged_by("loop.head", version) for version in ("1.17", "1.20", "2.0")] == [True, True, False]


def test_a_changed_text_is_missing(tool: ModuleType) -> None:
    """One word of a message is another one in this version."""
    calls = [
        tool.Call(call.owner, call.text.replace("will be restarted", "are restarted"))
        for call in tool.calls_of_list(CALLS)
        if call.owner.startswith("scheduler.") or call.owner == "jobmaster.JobMaster"
    ]
    missing = {one.family for one in tool.check(calls, "2.3") if one.is_missing}
    assert {"failover.restart", "failover.global.restart"} <= missing
    assert "failover.strategy" not in missing


def class_file(*texts: str) -> bytes:
    """A class file with text constants, and a long one, which takes two places."""
    pool = [struct.pack(">Bq", 5, 7)]
    places = 3
    for text in texts:
        data = text.encode()
        pool += [struct.pack(">BH", 1, len(data)) + data, struct.pack(">BH", 8, places)]
        places += 2
    return b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 61, places) + b"".join(pool)


def test_a_jar_has_the_messages_of_its_classes(tool: ModuleType, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """Constants of Flink's classes, concatenated ones too; the version is in the name of the file."""
    jar = tmp_path / "flink-runtime-1.19.1.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        name = "org/apache/flink/runtime/taskexecutor/slot/TaskSlotTableImpl.class"
        packed.writestr(name, class_file("Activate slot {}.", "Allocated slot for \x01 with resources \x01."))
        packed.writestr("org/other/JobMaster.class", class_file("{} tasks will be restarted to recover {}."))
    found = {one.family: one for one in tool.check(list(tool.calls_of_jar(jar)), "1.19")}
    assert found["slot.tm.activate"].owners == found["slot.tm.alloc"].owners == ("TaskSlotTableImpl",)
    assert found["slot.tm.free"].is_missing
    assert not found["failover.restart"].owners
    monkeypatch.setattr("sys.argv", ["log_families.py", str(jar)])
    assert tool.main() == 1
    assert "missing in 1.19" in capsys.readouterr().out


def test_the_table_of_versions_has_what_each_version_should_log(tool: ModuleType) -> None:
    """Made from the jars of six versions: every family, missing only where the version is not expected to have it."""
    header, *rows = (line.split("\t") for line in TABLE.read_text().splitlines())
    assert header == ["family", "1.13.6", "1.16.3", "1.18.1", "1.20.3", "2.1.1", "2.3.0"]
    assert {row[0] for row in rows} == {form.family for forms in FORMS.values() for form in forms}
    for family, *owners in rows:
        for version, owner in zip(header[1:], owners, strict=True):
            assert owner != "-" or not tool.is_logged_by(family, version), (family, version)
