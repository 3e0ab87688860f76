"""The only writer of files: overwrites only files written by streamproof, and writes each file completely or not at all.

A file is recognised by its content: each form of file has a mark, a pattern that its first bytes match (of Parquet, its
last ones). Anything else at a file's path is kept: other files, devices, pipes, folders, symbolic links. An empty file
is replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import BinaryIO, TypeAlias

from streamproof.base.errors import InputError, SystemFailure
from streamproof.base.reading import read_json
from streamproof.base.records import dataclass
from streamproof.base.text import visible

HEAD = 1 << 14
"""Number of bytes at the start of a file that are searched for its mark."""
GENERATOR = "written by streamproof"
"""The mark of forms with comments."""
_SAID = GENERATOR.encode()


@dataclass(frozen=True, slots=True)
class Form:
    """A form of file: its name for messages, and a regular expression that the start of such a file matches."""

    title: str
    mark: bytes


_NONE = Form("a file of this name", rb"(?!)")
NEW = Form("a new file", rb"(?!)")
"""The form of files that are written once and never replaced."""


def answer_form(schema: str) -> Form:
    """JSON that begins with a schema, in any version: the output of one verb does not overwrite that of another."""
    name = schema.partition("/")[0]
    return Form(f"JSON of {name}", rb'\{\s*"schema": "' + re.escape(name).encode() + b"/")


LISTING = Form("JSON", rb'\[\s*\{\s*"name": "[^\n]*",\s*"doc": "[^\n]*",\s*"parameters": \{')
SCRIPTS = Form("JSON", rb'\[\s*\{\s*"file": "obligation-0001\.smt2",\s*"claim": ')
FOLDER_LIST = Form("JSON", rb'\{\s*"about": "files that streamproof wrote here ')
CHECKPOINT = Form("JSON", rb'\{"format": "streamproof\.checkpoint/')
CERTIFICATE = Form("a certificate", rb"streamproof certificate \d+ ")
KEY = Form("a key", rb"streamproof key \d+\n")
CODE = Form("compiled code", rb"streamproof code \d+\n")
ITF = Form(
    "ITF",
    rb'\{\s*"#meta": \{\s*"format": "ITF",\s*"format-description": "https://apalache-mc\.org/[^"]*",\s*"model": "',
)
TRACE = Form(
    "a trace", rb"(?s)(Counterexample|Witness|Error of the model|Behaviour).*\n  model       .*\n  length      "
)
EVENTS = Form(
    "an event log",
    rb'\{"trace":"[^"\n]*","process":"[^"\n]*","seq":\d+,"event":"[^"\n]*",'
    rb'[^\n]*"file":"[^"\n]*","line":\d+\}\n',
)
VERDICTS = Form("verdicts", rb'\{"schema": "streamproof\.verdict/')
SCRIPT_LOG = Form("scripts of a suite", rb'\{"trace":"[^"\n]*","process":"model","seq":0,"event":"')
DRIVE_LOG = Form(
    "an event log of a drive",
    rb'\{"trace":"[^"\n]*","process":"[^"\n]*","seq":0,"event":"[^"\n]*",[^\n]*"clock":\{',
)
PYTEST = Form("a test of a drive", rb'"""[^\n]*, ' + _SAID + rb" drive\.")
RUN_LOG = Form(
    "an event log of the runtime",
    rb'\{"trace":"[^"\n]*","process":"jobmaster","seq":0,"event":"(?:job_started|registered)",',
)
RUN_PART = Form(
    "an event log of a process of the runtime",
    rb'\{"trace":"[^"\n]*(?:#\d+|/slots)","process":"[^"\n]*","seq":0,"event":"[^"\n]*",'
    rb'|\{"trace":"[^"\n]*","process":"tm-\d+\.\d+","seq":0,"event":"registering",',
)
RUN_SCRIPT = Form("a script of a run", rb'\{"schema": "streamproof\.run-script/')
POINTS = Form("a list of points", rb'\{"schema": "streamproof\.sweep-points/')
PARQUET = Form("a Parquet table", rb"(?s).*streamproof\.")
DOT = Form("DOT", rb"digraph [^\n]* \{\n  graph \[rankdir=(LR|TB), fontname=Helvetica, labelloc=t\];\n")
PROMELA = Form("Promela", rb"/\* [^\n]*, " + _SAID + rb" export\n")
TLA = Form("TLA+", rb"(-+ MODULE \w+ -+\n)?\\\* ([^\n]*, |[^\n]*\n\\\* )" + _SAID + rb" export\n")
SMTLIB = Form("SMT-LIB", rb"; ([^\n]*, )?" + _SAID + rb" (export|verify-certificate)\n")
DRAWING = Form("SVG", rb"(?s)(<svg [^\n]*\n|<\?xml .{0,2000}?-->\n)<!-- " + _SAID + rb" -->\n")
JUNIT = Form("JUnit XML", rb'<\?xml version="1\.0" encoding="utf-8"\?>\n<!-- ' + _SAID + rb" -->\n<testsuites ")
SARIF = Form(
    "SARIF", rb'(?s)\{\s*"\$schema": "[^"\n]*sarif[^"\n]*",.{0,80}?"tool": \{\s*"driver": \{\s*"name": "streamproof"'
)
PAGE = Form("HTML", rb'(?s).*<meta name="generator" content="streamproof')

SUFFIXES: dict[str, Form] = {
    ".itf.json": ITF,
    ".txt": TRACE,
    "points.ndjson": POINTS,
    ".parquet": PARQUET,
    ".dot": DOT,
    ".svg": DRAWING,
    ".pml": PROMELA,
    ".tla": TLA,
    ".cfg": TLA,
    ".smt2": SMTLIB,
    ".html": PAGE,
    "suite-good.ndjson": SCRIPT_LOG,
    "suite-bad.ndjson": SCRIPT_LOG,
    "obligations.json": SCRIPTS,
    "suite.json": answer_form("streamproof.suite/1"),
    "sweep.json": answer_form("streamproof.sweep/1"),
}
"""The form of a generated file by its suffix."""

Content: TypeAlias = str | bytes | Callable[[BinaryIO], object]
"""The content of a file: text (UTF-8), bytes, or a function that writes it."""


def form_of(name: str) -> Form:
    """The form of a generated file by its name; for other names a form that matches no file."""
    return next((form for suffix, form in SUFFIXES.items() if name.endswith(suffix)), _NONE)


def plain_name(name: str) -> str:
    """`name`, which comes from a model or a log, as a file name in a folder.

    Raises `SystemFailure` for a name with a path separator, a hidden name, or an unprintable one.
    """
    if not is_plain(name):
        raise SystemFailure(
            f"{visible(name)!r} cannot be the name of a file",
            remedy="choose a name without / and control characters that does not start with a dot",
        )
    return name


def is_plain(name: str) -> bool:
    """Whether a name is valid, unchanged, as part of a path."""
    return bool(name) and name.isprintable() and not name.startswith(".") and not {"/", "\\"} & {*name}


def expect_writable(path: Path, form: Form | None) -> None:
    """Raises `SystemFailure` now if a later `write` to `path` would fail, before hours of work.

    `form` None: a folder.
    """
    if form is not None:
        _expect_ours(path, form)
    elif path.exists() and not path.is_dir():
        raise SystemFailure(f"{path} is a file", remedy="name a folder")
    place = path if path.is_dir() else path.parent
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "is not a folder" if not place.is_dir() else "is not writable"
        raise SystemFailure(f"{path} cannot be written: {place} {why}", remedy="name another place")


def write(path: Path, content: Content, form: Form, mode: int = 0o666) -> None:
    """Writes one file, creating its folders; see `write_all`."""
    write_all([(path, content, form)], mode)


def write_all(files: Sequence[tuple[Path, Content | Sequence[Content], Form]], mode: int = 0o666) -> None:
    """Writes files atomically: none is put in its place before all are on the disk. Several contents of a Parquet table are
    files in a folder of its name.

    Raises `SystemFailure` for a path with a file of another form or origin, and for failures of writing. Then older
    files are unchanged, and no temporary file is left.
    """
    for path, _, form in files:
        _expect_ours(path, form)
    waiting: list[tuple[Path, Path, Form]] = []
    with new_folders([path.parent for path, _, _ in files]):
        try:
            for path, content, form in files:
                waiting.append((_beside(path), path, form))
                with _failures(path):
                    if isinstance(content, str | bytes) or callable(content):
                        _fill(waiting[-1][0], content, mode)
                    else:
                        waiting[-1][0].mkdir()
                        for number, part in enumerate(content):
                            _fill(waiting[-1][0] / f"part-{number:05}{path.suffix}", part, mode)
                    if path.is_file():
                        waiting[-1][0].chmod(stat.S_IMODE(path.stat().st_mode))
            for name, path, form in waiting:
                _expect_ours(path, form)
                with _failures(path):
                    if path.is_dir():
                        shutil.rmtree(path)
                    elif name.is_dir():
                        path.unlink(missing_ok=True)
                    os.replace(name, path)
        finally:
            for name, _, _ in waiting:
                shutil.rmtree(name, ignore_errors=True)
                with suppress(OSError):
                    name.unlink()


def open_own(path: Path, *, create: bool = False) -> BinaryIO:
    """Opens an append-only file for reading and appending; `create` creates it if missing.

    The file is never truncated. Raises `OSError`, also for symbolic links and everything but regular files.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    handle = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "is not a regular file", str(path))
    return os.fdopen(handle, "r+b")


def remove(path: Path, form: Form) -> None:
    """Removes a file, if streamproof wrote it."""
    with suppress(SystemFailure, FileNotFoundError):
        _expect_ours(path, form)
        path.unlink()


def _beside(path: Path) -> Path:
    # Short, because the file's own name may have the maximum length.
    return path.parent / f".streamproof-{os.getpid()}-{os.urandom(6).hex()}"


def _fill(name: Path, content: Content, mode: int) -> None:
    """Writes a new file and synchronises it to the disk.

    Where the system can do so, the file has no name until it is complete: nothing is left of it after a kill.
    """
    handle, opened = -1, None
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # not every file system has such files
            handle = os.open(name.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode)
            opened = os.fdopen(handle, "w+b")
    with opened or open(name, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
        if callable(content):
            content(file)
        else:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
        if handle >= 0:  # a folder makes Python follow the link to the open file
            os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle, follow_symlinks=True)


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    """Converts `OSError` to `SystemFailure`."""
    try:
        yield
    except OSError as error:
        raise SystemFailure(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def new_folders(wanted: Sequence[Path]) -> Iterator[None]:
    """Creates folders. New ones that are empty at the end of the block are removed."""
    made: list[Path] = []
    try:
        for folder in dict.fromkeys(wanted):
            missing = [place for place in (folder, *folder.parents) if not place.exists()]
            with _failures(folder):
                folder.mkdir(parents=True, exist_ok=True)
            made += reversed(missing)
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _expect_ours(path: Path, form: Form) -> None:
    """Raises `SystemFailure` unless `path` is free, or holds an older file of this form written by streamproof."""
    try:
        kind = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise SystemFailure(f"{visible(str(path))} cannot be written: {error}", remedy="name another file") from None
    if stat.S_ISDIR(kind.st_mode):
        if form is PARQUET and _is_table(path):
            return
        raise SystemFailure(f"{path} is a folder", remedy="name a file")
    if stat.S_ISLNK(kind.st_mode):
        raise SystemFailure(f"{path} is a symbolic link, which is not replaced", remedy="name the file itself")
    if not stat.S_ISREG(kind.st_mode):
        raise SystemFailure(f"{path} is not a regular file, and is not replaced", remedy="name another file")
    try:
        ours = kind.st_size == 0 or re.match(form.mark, _sample(path, form)) is not None
    except OSError as error:
        raise SystemFailure(f"{path} cannot be read: {error.strerror or error}", remedy="name another file") from None
    if not ours:
        raise SystemFailure(
            f"{path} exists and was not written by streamproof as {form.title}",
            remedy="name another place, or remove it",
        )


def _is_table(folder: Path) -> bool:
    """Whether a folder has the parts of a table that streamproof wrote, and nothing else."""
    try:
        parts = list(folder.iterdir())
        for part in parts:
            if not re.fullmatch(r"part-\d+\.parquet", part.name):
                return False
            _expect_ours(part, PARQUET)
    except (OSError, SystemFailure):
        return False
    return bool(parts)


def _sample(path: Path, form: Form) -> bytes:
    """The part of a file that contains its mark."""
    with path.open("rb") as file:
        if form is PARQUET:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
            file.seek(max(0, size - 8 - length))
            return file.read(min(length, 1 << 24)) if magic == b"PAR1" and length <= size else b""
        head = file.read(HEAD)
    if head[:2] == b"\x1f\x8b":
        import zlib  # only for packed files: it would be a hundredth of the start-up

        with suppress(zlib.error):
            return zlib.decompressobj(31).decompress(head, HEAD)
    return head


@dataclass
class Folder:
    """A folder of generated files with a list of them; only listed files are replaced or removed."""

    path: Path
    written: dict[str, str] = field(default_factory=dict)
    _new: list[Path] = field(default_factory=list)
    """The parent folders that were created for it."""

    LIST = ".streamproof.json"

    def expect_writable(self, names: Iterable[str] = ()) -> None:
        """Raises `SystemFailure` if the folder cannot be written, or has a foreign file with one of these names."""
        expect_writable(self.path, None)
        for name in names:
            expect_writable(self.path / plain_name(name), form_of(name))

    def write(self, name: str, content: Content, about: str) -> Path:
        """Write the file `name` with the subject `about`; raises `SystemFailure` if it would replace a foreign file."""
        self.announce({name: about})
        try:
            write(self.path / name, content, form_of(name))
        except SystemFailure:
            self._withdraw()
            raise
        self.written[name] = about
        return self.path / name

    def announce(self, files: Mapping[str, str]) -> None:
        """List files, with their subjects, before they are written. Raises `SystemFailure` for a foreign file.

        The list is written first: a listed file that is missing is harmless, an existing file that is not listed is not.
        """
        self.expect_writable(files)
        ours = self._ours()
        if not ours.items() >= files.items():
            self._new = self._new or [place for place in (self.path, *self.path.parents) if not place.exists()]
            self._note({**ours, **files})

    def _withdraw(self) -> None:
        """Remove a list of which no file exists, and the folders that were created for it."""
        if not any((self.path / name).exists() for name in self._ours()):
            remove(self.path / self.LIST, FOLDER_LIST)
            for place in self._new:
                with suppress(OSError):
                    place.rmdir()

    def forget(self, about: Collection[str]) -> None:
        """Remove listed files with a subject in `about` that were not written again."""
        ours = self._ours()
        stale = [name for name, shows in ours.items() if shows in about and name not in self.written]
        for name in stale:
            remove(self.path / name, form_of(name))
        if stale:
            self._note({name: shows for name, shows in ours.items() if name not in stale})

    def _ours(self) -> dict[str, str]:
        """The listed files; the list is untrusted, so names outside of the folder are skipped."""
        listed = self.path / self.LIST
        if not os.path.exists(listed):
            return {}
        try:
            found = read_json(listed, {"files": {str: str}})["files"]
        except InputError:
            return {}
        return {n: shows for n, shows in found.items() if is_plain(n) and n.endswith((*SUFFIXES,))}

    def _note(self, files: Mapping[str, str]) -> None:
        document = {"about": "files that streamproof wrote here and may replace", "files": dict(sorted(files.items()))}
        write(self.path / self.LIST, json.dumps(document, indent=1) + "\n", FOLDER_LIST)
