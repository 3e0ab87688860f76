"""Output of results: JSON to a file or standard output, traces to a folder, files for continuous integration; status lines.

Foreign files are never replaced. There are no status lines if standard error is not a terminal.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar

import click

from streamproof import interrupts
from streamproof.base.errors import InputError, Loc, SystemFailure
from streamproof.base.files import (
    FOLDER_LIST,
    JUNIT,
    SARIF,
    SUFFIXES,
    Content,
    Form,
    answer_form,
    expect_writable,
    form_of,
    is_plain,
    plain_name,
    remove,
    write,
)
from streamproof.base.options import resident_bytes
from streamproof.base.records import dataclass
from streamproof.base.text import inner, visible
from streamproof.system.verdict import Progress

if TYPE_CHECKING:
    from streamproof.symbolic import Effort

STANDARD = "-"
MISTAKE = "evaluation_error"
"""The file name of the trace to an evaluation error of the model, in place of a property's name."""

_reserved: list[TextIO] = []
"""The standard output of the program while a verb runs."""


@contextmanager
def reserved_output() -> Iterator[None]:
    """Reserve standard output for results: output of the model goes to standard error."""
    _reserved.append(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = _reserved.pop()


def standard_output() -> TextIO:
    """The stream for results."""
    return _reserved[-1] if _reserved else sys.stdout


def write_json(document: Any, where: str | None, form: Form | None = None) -> None:
    """Write JSON data to the file `where`, to standard output for ``-``, or nowhere for None.

    The default form is that of its ``schema``.
    """
    if where is None:
        return
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if where == STANDARD:
        inner(standard_output()).write(text)
    else:
        write(Path(where), text, form or answer_form(document["schema"]))


def people(json_to: str | None) -> TextIO:
    """The stream for text: standard error if standard output has the JSON result."""
    return sys.stderr if json_to == STANDARD else standard_output()


def expect_json_writable(where: str | None, form: Form | str) -> None:
    """Raises `SystemFailure`, before the work begins, if the file of ``--json`` cannot be written.

    `form` is the form of the result, or its schema.
    """
    if where is not None and where != STANDARD:
        expect_writable(Path(where), answer_form(form) if isinstance(form, str) else form)


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
        from streamproof.base.reading import read_json

        try:
            found = read_json(listed, {"files": {str: str}})["files"]
        except InputError:
            return {}
        return {n: shows for n, shows in found.items() if is_plain(n) and n.endswith((*SUFFIXES,))}

    def _note(self, files: Mapping[str, str]) -> None:
        document = {"about": "files that streamproof wrote here and may replace", "files": dict(sorted(files.items()))}
        write(self.path / self.LIST, json.dumps(document, indent=1) + "\n", FOLDER_LIST)


F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = ("junit", "sarif", "annotations")


def _noted(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keeps the option for `write_ci_files`, and refuses a file that cannot be written before the work begins."""
    if isinstance(value, Path):
        expect_writable(value, JUNIT if parameter.name == "junit" else SARIF)
    context.meta[f"streamproof.{parameter.name}"] = value


def ci_options(function: F) -> F:
    """``--junit FILE``, ``--sarif FILE`` and ``--annotations``; the verb calls `write_ci_files` with its result."""
    texts = {"junit": "Also write the result as JUnit XML.", "sarif": "Also write what does not hold as SARIF 2.1.0."}
    mark = "Also print a GitHub workflow command for what does not hold, which marks the file and line."
    function = click.option("--annotations", is_flag=True, expose_value=False, callback=_noted, help=mark)(function)
    for name, text in reversed(texts.items()):
        kind = click.Path(path_type=Path)
        option = click.option(f"--{name}", type=kind, metavar="FILE", expose_value=False, callback=_noted, help=text)
        function = option(function)
    return function


def write_ci_files(
    document: Mapping[str, Any], json_to: str | None, places: Mapping[str, Loc | None] | None = None
) -> None:
    """Writes what the options of the running verb ask for. `document` is its JSON; `places` has the places of properties."""
    context = click.get_current_context(silent=True)
    asked = {name: context.meta.get(f"streamproof.{name}") for name in _OPTIONS} if context else {}
    if not any(asked.values()):
        return
    from streamproof.report.ci_formats import cases, junit, sarif, workflow_commands

    given = list(cases(document, places or {}))
    verb = document["schema"].partition("/")[0].replace(".", " ")
    if asked["junit"]:
        write(asked["junit"], junit(verb, given), JUNIT)
    if asked["sarif"]:
        write(asked["sarif"], sarif(document["version"], given), SARIF)
    if asked["annotations"]:
        for text in workflow_commands(given):
            inner(people(json_to)).write(text + "\n")  # texts that look like such commands are changed elsewhere


def is_live() -> bool:
    """Whether standard error is a terminal that understands escape sequences."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


class Status:
    """A status line: each call replaces its text, and the end of the block removes it."""

    def __init__(self, *, live: bool = True) -> None:
        self._live = live and is_live()

    def __call__(self, text: str) -> None:
        """Show `text`."""
        interrupts.known(visible(text))
        if self._live:
            import shutil  # for a terminal only, as its import is slow

            width = shutil.get_terminal_size().columns
            inner(sys.stderr).write(f"{interrupts.how_to_end()}\r\x1b[2K{visible(text)[: max(width - 1, 1)]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, so that the next output starts on a clean line."""
        if self._live:
            inner(sys.stderr).write("\r\x1b[2K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()


class EngineProgress:
    """Shows the progress of an engine: counts of states or a solver's effort. Close it before other output.

    Counts are shown once a second in place on a terminal, otherwise in one line per minute. Rates are measured since the
    previous line.
    """

    def __init__(self) -> None:
        self._status = Status()
        self._live = is_live()
        self._printed = time.monotonic()
        self._before = Progress(0.0, 0, 0, 0, 0)

    def __call__(self, progress: Progress | Effort) -> None:
        """Show the progress; counts if the last line is old enough."""
        if not isinstance(progress, Progress):
            self._status(effort_text(progress))
            return
        now = time.monotonic()
        if now - self._printed < (1.0 if self._live else 60.0):
            return
        from streamproof.report.console import progress_text

        text = progress_text(progress, self._before, resident_bytes())
        self._printed, self._before = now, progress
        if self._live:
            self._status(text)
        else:
            sys.stderr.write(f"{interrupts.how_to_end()}{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the status line."""
        self._status.clear()


def effort_text(effort: Effort, later: float = 0.0) -> str:
    """One line about the solver's effort, `later` seconds after it was reported."""
    return (
        f"{effort.elapsed + later:.0f} s: {effort.doing}, depth {effort.depth}, {effort.queries} queries, "
        f"{effort.undecided} undecided"
    )
