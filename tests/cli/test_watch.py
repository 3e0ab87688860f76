"""`check --watch` checks again after a file was saved with other content, and ends with Ctrl-C."""

from __future__ import annotations

import json
import os
import py_compile
import signal
import subprocess
import sys
import time
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

import pytest

from nonempty import nonempty
from streamproof.cli import watching

MODEL = """
from near import MOST

from streamproof import Model, Range, State, action, invariant, require, terminal


class Counter(Model):
    def state(self):
        return State(n=Range(0, 9))

    @action
    def up(self, s):
        require(s.n < MOST)
        s.n += 1

    @terminal
    def full(self, s):
        return s.n == MOST

    @invariant
    def low(self, s):
        return s.n < 4
"""


def wait_for(output: Path, text: str, count: int) -> None:
    """Waits until the output has a text so many times."""
    end = time.monotonic() + 60
    while output.read_text().count(text) < count:
        assert time.monotonic() < end, output.read_text()
        time.sleep(0.05)


def test_files_are_compared_by_content(tmp_path: Path) -> None:
    """A save without a change is none; other content with the time and size of the old one is."""
    near, far = tmp_path / "model" / "near.py", tmp_path / "far.py"
    near.parent.mkdir()
    near.write_text("A = 1\n")
    far.write_text("B = 1\n")

    def content() -> watching.Content:
        return watching._now([*watching._beside(near.parent), str(far)])

    first, times = content(), (far.stat().st_atime_ns, far.stat().st_mtime_ns)
    near.write_text("A = 1\n")
    assert content() == first
    far.write_text("B = 2\n")
    os.utime(far, ns=times)
    assert content() != first
    far.write_text("B = 1\n")
    assert content() == first
    far.unlink()
    assert content() != first


def test_byte_code_of_the_user_is_not_read(tmp_path: Path) -> None:
    """A module edited within the second of its byte code is compiled again; Python's own loader takes the old one."""
    path = tmp_path / "limits.py"
    path.write_text("MOST = 3\n")
    py_compile.compile(str(path))
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("MOST = 5\n")
    os.utime(path, ns=times)
    usual = FileFinder(str(tmp_path), (SourceFileLoader, SOURCE_SUFFIXES))
    for finder, expected in nonempty([(usual, 3), (watching._fresh(str(tmp_path)), 5)]):
        spec = finder.find_spec("limits")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        assert expected == module.MOST
    with pytest.raises(ImportError):
        watching._fresh(os.path.dirname(json.__file__))


@pytest.mark.long
def test_saves_are_checked_until_ctrl_c(tmp_path: Path) -> None:
    """Every save has the verdict of its content, on standard output: of the model, of a module beside it, and of one in a
    package elsewhere that it imports; a broken file is one message, and the watch goes on; it ends within 5 s."""
    elsewhere, folder = tmp_path / "lib" / "sizes", tmp_path / "model"
    elsewhere.mkdir(parents=True)
    folder.mkdir()
    (elsewhere / "__init__.py").write_text("")
    (elsewhere / "limits.py").write_text("MOST = 3\n")
    (folder / "near.py").write_text("from sizes.limits import MOST\n")
    (folder / "counter.py").write_text(MODEL)
    results, notes = tmp_path / "results.txt", tmp_path / "notes.txt"
    words = [sys.executable, "-m", "streamproof", "check", "counter.py", "-q", "--watch"]
    environment = {**os.environ, "PYTHONPATH": str(elsewhere.parent)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with results.open("w") as out, notes.open("w") as err:
        program = subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True)
    seen = runs = 0

    def verdict() -> str:
        """What the next run writes, on both streams."""
        nonlocal seen, runs
        runs += 1
        wait_for(notes, "watching", runs)
        text = results.read_text() + notes.read_text().rpartition("Ctrl-C ends\n")[0].rpartition("Ctrl-C ends\n")[2]
        new, seen = text[seen:], len(results.read_text())
        return new

    try:
        assert "holds: 2 of 2 properties" in verdict()
        for most, expected in nonempty([(5, "violated: low"), (3, "holds: 2 of 2"), (4, "violated: low")] * 2):
            (elsewhere / "limits.py").write_text(f"MOST = {most}\n")
            assert expected in verdict()
        (folder / "near.py").write_text("MOST = 2\n")
        assert "holds: 2 of 2" in verdict()
        (folder / "counter.py").write_text("class\n")
        broken = verdict()
        assert broken.count("error:") == 1
        assert "counter.py:1" in broken
        (folder / "near.py").write_text("MOST = )\n")  # which the last run did not read
        (folder / "counter.py").write_text(MODEL)
        assert "near.py:1" in verdict()
        (folder / "near.py").write_text("MOST = 6\n")
        assert "violated: low" in verdict()
        (folder / "counter.py").rename(folder / "counter.py~")  # as editors do before they write the new file
        assert "counter.py does not exist" in verdict()
        (folder / "counter.py").write_text(MODEL.replace("near", "more.sizes"))
        assert "No module named 'more" in verdict()
        (folder / "counter.py").write_text(MODEL.replace("near", "sizes.more"))
        assert "No module named 'sizes.more'" in verdict()
        (elsewhere / "more.py").write_text("MOST = 2\n")  # in a folder where a module was missing
        assert "holds: 2 of 2" in verdict()
        (elsewhere / "more.py").unlink()
        assert "No module named 'sizes.more'" in verdict()
        (elsewhere / "more.py").write_text("MOST = 2\n")
        assert "holds: 2 of 2" in verdict()
        (folder / "counter.py").write_text(MODEL)
        assert "violated: low" in verdict()
        (elsewhere / "limits.py").unlink()  # no longer read
        before = notes.read_text()
        (folder / "near.py").write_text((folder / "near.py").read_text())
        (folder / "near.py").write_text("MOST = 1\n")
        assert "holds: 2 of 2" in verdict()
        assert notes.read_text().count("watching") == before.count("watching") + 1
    finally:
        began = time.monotonic()
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(10) == 130
    assert time.monotonic() - began < 5


@pytest.mark.long
def test_it_ends_when_nobody_reads_it(tmp_path: Path) -> None:
    """As the program does that is run once, also if standard error is still read."""
    (tmp_path / "near.py").write_text("MOST = 3\n")
    (tmp_path / "counter.py").write_text(MODEL)
    words = [sys.executable, "-m", "streamproof", "check", "counter.py", "-q", "--watch"]
    reading, writing = os.pipe()
    os.close(reading)
    with (tmp_path / "notes.txt").open("w") as err:
        assert subprocess.run(words, cwd=tmp_path, stdout=writing, stderr=err, timeout=60).returncode == 141
    os.close(writing)
    assert (tmp_path / "notes.txt").read_text() == ""
