"""Files that streamproof wrote for itself and finds again, damaged, forged, or something else: one message, no defect."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
DEEP = "[" * 200_000
LIST = "streamproof-out/counter/.streamproof.json"
POINTS = "out/points.ndjson"
MANIFEST = "ck/checkpoint.json"
USES = {
    LIST: ("check", "counter.py", "-q"),
    MANIFEST: ("check", "counter.py", "-q", "--resume", "ck"),
    POINTS: ("sweep", "counter.py", "-p", "limit=1..3", "-q", "--jobs", "1", "--out", "out"),
}
"""Files, and the command that reads each."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is filled once with all these files, good."""
    return tmp_path_factory.mktemp("good")


@pytest.fixture
def written(good: Path, folder: Path, streamproof: Command) -> None:
    """All these files are there, good."""
    if not any(good.iterdir()):
        streamproof("check", "counter.py", "-q", "--checkpoint", "ck", "--tier", "compiled")
        assert streamproof(*USES[POINTS]).code == 0
        shutil.copytree(folder, good, dirs_exist_ok=True)
    shutil.copytree(good, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("place", USES)
def test_a_pipe_or_device_in_the_place_of_an_own_file(place: str, folder: Path, streamproof: Command) -> None:
    """Nobody waits for a pipe that has no other end, and nothing is read without an end."""
    for kind in ("pipe", "device"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if kind == "pipe":
            os.mkfifo(folder / place)
        else:
            (folder / place).unlink()
            (folder / place).symlink_to("/dev/zero")
        done = streamproof(*USES[place])
        assert done.code == (2 if place == MANIFEST else 153), done
        assert place in done.err


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("place", USES)
def test_an_own_file_that_nests_without_end(place: str, folder: Path, streamproof: Command) -> None:
    """Refused, or not used with a note, as other damage is."""
    for text in (DEEP, (folder / place).read_text()[:-2] + DEEP):
        (folder / place).write_text(text)
        done = streamproof(*USES[place])
        assert done.code in ((2,) if place == MANIFEST else (0, 12, 153)), done
        assert "defect" not in done.err


def sealed(document: dict[str, Any]) -> str:
    """A manifest with a right checksum, as anybody can make it."""
    document.pop("checksum", None)
    document["checksum"] = zlib.crc32(json.dumps(document, sort_keys=True).encode())
    return json.dumps(document)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        ("mark", {}, "mark.levels is missing"),
        ("mark", [], "mark has an unexpected value: []"),
        ("mark.levels", [1, "x"], "mark.levels[1] has an unexpected value: 'x'"),
        ("mark.levels", [1 << 50], "checkpoint.json: a number in it is out of range"),
        ("mark.levels", [1, 1 << 50], "states.bin is shorter than recorded in its checkpoint"),
        ("mark.next", 10**9, "checkpoint.json: a number in it is out of range"),
        ("mark.facts", [], "checkpoint.json: a number in it is out of range"),
        ("mark.events", {"x": {"state": 0, "instance": None, "mistake": False}}, "a number in it is out of range"),
        ("mark.events", {"0": {"state": 0, "instance": None}}, "mark.events.0.mistake is missing"),
        ("mark.events", {"0": {"state": 10**9, "instance": None, "mistake": False}}, "a number in it is out of range"),
        ("checksums", [1], "checksums has an unexpected value: [1]"),
        ("states", 1.5, "states has an unexpected value: 1.5"),
    ],
)
def test_a_checkpoint_of_another_form(at: str, value: Any, why: str, folder: Path, streamproof: Command) -> None:
    """One message with the file and what is wrong in it."""
    document = json.loads((folder / MANIFEST).read_text())
    *path, last = at.split(".")
    inner = document
    for name in path:
        inner = inner[name]
    inner[last] = value
    (folder / MANIFEST).write_text(sealed(document))
    done = streamproof(*USES[MANIFEST])
    assert (done.code, why in done.err, "ck/" in done.err) == (2, True, True), done


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        ("because", ..., "because is missing"),
        ("key", 3, "key has an unexpected value: 3"),
        ("properties.low", [], "properties.low has an unexpected value: []"),
        ("properties.low.verdict", "perhaps", "properties.low.verdict has an unexpected value: 'perhaps'"),
        ("properties.low.length", 1e308, "properties.low.length has an unexpected value: 1e+308"),
        ("properties.low.length", 1 << 64, "properties.low.length has an unexpected value"),
        ("states.distinct", True, "states.distinct has an unexpected value: True"),
        ("seconds", None, "seconds has an unexpected value: None"),
    ],
)
def test_a_point_of_another_form(at: str, value: Any, why: str, folder: Path, streamproof: Command) -> None:
    """The note names the line; the point is decided again and the others are used."""
    lines = (folder / POINTS).read_text().splitlines()
    record = json.loads(lines[2])
    *path, last = at.split(".")
    inner = record
    for name in path:
        inner = inner[name]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    lines[2] = json.dumps(record)
    (folder / POINTS).write_text("".join(f"{line}\n" for line in lines))
    done = streamproof(*USES[POINTS])
    note = "out/points.ndjson: not all of the stored points are used: the one on line 3 is damaged: "
    assert (done.code, f"{note}{why}" in done.out) == (0, True), done
    assert len((folder / POINTS).read_text().splitlines()) == len(lines)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.long
@pytest.mark.parametrize("whole", [False, True])
def test_one_damaged_file_does_not_end_a_report(folder: Path, streamproof: Command, whole: bool) -> None:
    """In a folder it is named and left out; by itself it is refused, and so is a folder that holds nothing else."""
    event = {"trace": "t", "process": "p", "seq": 0, "event": "start"}
    damaged = {
        "deep.ndjson": DEEP.encode(),
        "long.ndjson": b"[" + b" " * 17_000_000,
        "rubbish.jsonl": b"no json\n",
        "no-event.ndjson": b'{"event": 3}\n',
        "cut.parquet": b"PAR1 and no more",
        "cut.ndjson.gz": b"\x1f\x8b\x08",
        "later.json": b'{"schema": "streamproof.verdict/2", "run": "a"}\n',
        os.fsdecode(b"n\xff.ndjson"): b"{}",
    }
    for at in ("good", "bad"):
        (folder / at).mkdir()
        for name, text in damaged.items():
            (folder / at / name).write_bytes(text)
    (folder / "good" / "run.ndjson").write_text(json.dumps(event) + "\n")
    alone = [f"bad/{name}" for name in damaged] if whole else []
    for place in ("bad", *alone):
        assert streamproof("report", place, "--out", "page", "--master", "local[1]").code == 2
    done = streamproof("report", "good", "--out", "page", "--master", "local[1]", "--json", "report.json")
    assert done.code == 0, done.err
    left_out = {item["path"]: item["reason"] for item in json.loads((folder / "report.json").read_text())["skipped"]}
    assert {*left_out} == {f"good/{name}" for name in damaged if name.isascii()} | {"good/n\\udcff.ndjson"}
    assert left_out["good/rubbish.jsonl"] == "line 1: this line is not a JSON object"
