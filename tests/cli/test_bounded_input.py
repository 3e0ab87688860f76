"""Input without an end, or with nothing in it, is refused at once by every verb; so is what only looks like a number."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.cli.outputs import is_live

Command = Callable[..., Any]
JOB = "from streamproof_runtime import Job\ndef job():\n    j = Job()\n    j.source('s', [1]).collect('c')\n    return j\n"
MILLION = b"\n" * 1_000_001


@pytest.mark.parametrize(
    "words",
    [
        ("run", "job.py", "--simulate", "--script"),
        ("replay",),
        ("verify-certificate",),
        ("check", "failover", "--job-graph"),
        ("report", "--out", "out"),
        ("validate",),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("what", ["/dev/zero", "pipe"])
def test_a_file_that_never_ends_is_refused(
    words: tuple[str, ...], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamproof: Command
) -> None:
    """A device or a pipe is no file to read."""
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(JOB)
    os.mkfifo("pipe")
    done = streamproof(*words, what)
    assert done.code == 2, done.err
    assert any(why in done.err for why in ("not a regular file", "is a device", "is a pipe")), done.err


@pytest.mark.parametrize("words", [("validate",), ("validate", "--model", "baton"), ("report", "--out", "out")])
def test_a_log_of_empty_lines_is_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamproof: Command
) -> None:
    """A million and one of them in a kilobyte."""
    monkeypatch.chdir(tmp_path)
    Path("log.ndjson.gz").write_bytes(gzip.compress(MILLION))
    done = streamproof(*words, "log.ndjson.gz")
    assert done.code == 2
    assert "more than 1,000,000 empty lines in a row" in done.err or "its first 65,536 bytes are blank" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("check", "credit", "-p", "depth=٣"),
        ("check", "credit", "--depth", "٣"),
        ("check", "credit", "--timeout", "٣"),
        ("check", "credit", "--memory", "٣GB"),
        ("check", "credit", "--agree", "--agree-limit", "python=٣"),
        ("simulate", "credit", "--walks", "٣"),
        ("run", "job.py", "--checkpoint-interval", "0"),
        ("run", "job.py", "--idle-timeout", "0"),
    ],
    ids=" ".join,
)
def test_what_is_no_number_here_is_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamproof: Command
) -> None:
    """Digits of other scripts, which Python's `int` reads, and an interval of nothing."""
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(JOB)
    assert streamproof(*words).code == 2


def test_a_terminal_without_escape_sequences_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No status line is drawn on it."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for name, live in (("xterm", True), ("dumb", False), ("unknown", False)):
        monkeypatch.setenv("TERM", name)
        assert is_live() is live


@pytest.mark.parametrize(("name", "before"), [("xterm", b"\r\x1b[2K"), ("dumb", b"")])
def test_a_message_of_the_supervisor_replaces_the_status_line(name: str, before: bytes) -> None:
    """What the worker drew on the terminal does not stay in front of the message."""
    terminal, error = os.openpty()
    code = r"from streamproof import supervisor; supervisor._print('streamproof: compiling the search ...\n')"
    subprocess.run([sys.executable, "-c", code], stderr=error, env=os.environ | {"TERM": name}, check=True)
    os.close(error)
    assert os.read(terminal, 1000) == before + b"streamproof: compiling the search ...\r\n"
    os.close(terminal)
