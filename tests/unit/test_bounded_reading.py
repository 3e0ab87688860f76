"""Files are read within bounds, never waiting for data, and written without leaving a part of them behind."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import BinaryIO

import pytest

from streamproof.base.errors import InputError
from streamproof.base.files import EVENTS, write
from streamproof.base.reading import BLANK_LINES, Excess, _Regular, bounded_lines, open_regular, parsed, read_regular
from streamproof.base.text import abridged


def test_a_file_without_data_fails_instead_of_waiting() -> None:
    """Some files of /proc say that they are regular, and give nothing for now: Python returns None for them."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with io.BufferedReader(_Regular(reading, "kmsg")) as file:
        for read in (file.read, lambda: file.read(8), file.readline, lambda: file.peek(2)):
            with pytest.raises(OSError, match="no data now: it is not a regular file: 'kmsg'"):
                read()
    os.close(writing)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """Devices never end, and a pipe waits for its writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(OSError, match="it is not a regular file"):
            open_regular(path)
        with pytest.raises(InputError, match="is not a regular file"):
            read_regular(path, 10)
    with pytest.raises(InputError, match="is a folder"):
        read_regular(tmp_path, 10)


def test_empty_lines_are_bounded() -> None:
    """A small compressed file may have billions of them."""
    few = io.BytesIO(b"\n" * BLANK_LINES + b"x\n" + b"\n" * BLANK_LINES)
    assert sum(1 for _ in bounded_lines(few)) == 2 * BLANK_LINES + 1
    with pytest.raises(Excess, match=r"more than 1,000,000 empty lines in a row"):
        list(bounded_lines(io.BytesIO(b"x\n" + b"\n" * (BLANK_LINES + 1))))


def test_a_number_of_a_certificate_is_an_integer() -> None:
    """1.0 equals 1 in Python; a certificate is read by its text."""
    assert parsed("[1.0, 1e0]") == [1, 1]
    assert parsed("[1, -2]", whole=True) == [1, -2]
    for text in ("1.0", "1e0"):
        with pytest.raises(Excess, match="is not written as an integer"):
            parsed(text, whole=True)


def test_a_kill_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    """A file has no name until it is complete."""
    (tmp_path / "probe").mkdir()
    try:
        os.close(os.open(tmp_path / "probe", os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("this file system has no files without a name")

    def content(file: BinaryIO) -> None:
        file.write(b"{")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        write(tmp_path / "events.ndjson", content, EVENTS)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["probe"]


def test_the_name_of_a_file_is_never_abridged() -> None:
    """A command to repeat names the file; a number in a text is abridged."""
    long = "1" * 120
    for name in (f"m{long}.py", f"{long}.py", f"a/{long}/b", f"/tmp/{long}", f"x-{long}.json"):
        assert abridged(f"streamproof check {name} -q") == f"streamproof check {name} -q"
    assert abridged(f"x = {long}, not 0..{long}.") == (
        "x = 11111111111111111111...(120 digits)...11111111111111111111,"
        " not 0..11111111111111111111...(120 digits)...11111111111111111111."
    )
