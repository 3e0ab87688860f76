"""The cache of compiled code: only intact files are loaded, and no state of its folder stops a check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shares import share
from streamproof.base.seals import CACHE_VARIABLE
from streamproof.explicit.native_code import CacheEntry

CHECK = ("check", "reference.two_phase_commit", "-q", "--tier", "compiled", "--workers", "1")
COUNTS = "1146 states generated, 288 distinct states found"


def checked(folder: Path) -> str:
    """The output of a check whose compiled code is kept in `folder`; in a process of its own, which may crash."""
    here = {**os.environ, CACHE_VARIABLE: str(folder)}
    run = subprocess.run(
        [sys.executable, "-m", "streamproof", *CHECK], env=here, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def flipped(path: Path, at: int) -> None:
    """Flip one bit of a file; `at` counts from its end where it is negative."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def fifo(path: Path) -> None:
    """Replace a file by a named pipe, which blocks who reads it."""
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    """Replace a file by a folder."""
    path.unlink()
    path.mkdir()


def elsewhere(path: Path) -> None:
    """Replace a file by a symbolic link to another one."""
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def neighbour(path: Path) -> None:
    """Give a file the content of another one of the cache, intact but of other code."""
    other = next(p for p in path.parent.glob("*.code") if p != path)
    path.write_bytes(other.read_bytes())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:149]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "first bit": lambda path: flipped(path, 0),
    "bit of the digest": lambda path: flipped(path, 100),
    "bit of the code": lambda path: flipped(path, 800),
    "last bit": lambda path: flipped(path, -1),
    "unreadable": lambda path: path.chmod(0),
    "writable by all": lambda path: path.chmod(0o666),
    "pipe": fifo,
    "folder": folder_instead,
    "link": elsewhere,
    "another file": neighbour,
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that one check leaves."""
    folder = tmp_path_factory.mktemp("kept")
    checked(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", share(DAMAGE, 3))
def test_damaged_code_is_compiled_again(kind: str, kept: dict[str, bytes], tmp_path: Path) -> None:
    """Whatever has happened to the files, the counts are right, and the files are intact afterwards."""
    for name, data in kept.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o600)
    for path in sorted(tmp_path.glob("*.code")):
        DAMAGE[kind](path)
    assert COUNTS in checked(tmp_path)
    if kind != "folder":
        assert {name: (tmp_path / name).read_bytes() for name in kept} == kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_others_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that belongs to another user is not loaded."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    entry = CacheEntry({"code": "a"})
    entry.store(b"x")
    assert entry.path is not None
    os.chown(entry.path, 12345, -1)
    assert entry.load() is None


def test_folder_that_cannot_be_used(tmp_path: Path) -> None:
    """A folder without rights, one that cannot be made, and a file in its place stop nothing."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    (tmp_path / "file").write_text("mine")
    for folder in (closed, closed / "inner", tmp_path / "file", Path("/dev/null/nowhere")):
        assert COUNTS in checked(folder)
    assert (tmp_path / "file").read_text() == "mine"


def test_key_has_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is found again under the same parts only, however they are cut."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    parts = {"code": "a\nb", "llvm": "20"}
    CacheEntry(parts).store(b"x" * 10)
    assert CacheEntry(dict(reversed(parts.items()))).load() == b"x" * 10
    for other in ({**parts, "llvm": "21"}, {"code": "a", "llvm": "20"}, {"code": "a\nb"}, {**parts, "more": ""}):
        assert CacheEntry(other).load() is None


def test_foreign_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old code makes room; files of others do not, even object files."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr("streamproof.explicit.native_code.KEPT", 2)
    (tmp_path / "mine.o").write_bytes(b"mine")
    for at in range(5):
        CacheEntry({"code": str(at)}).store(b"x")
    assert len(list(tmp_path.glob("*.code"))) == 2
    assert (tmp_path / "mine.o").read_bytes() == b"mine"
    assert CacheEntry({"code": "4"}).load() == b"x"
