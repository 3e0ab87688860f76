"""The origin of a trace file: the model's file, so that one's own counterexample is replayed without naming it.

A trace file is data, and no data chooses code that runs. The origin counts only with the seal of this user's streamproof
(`base.seals`), which covers the place of the model's file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from streamproof.base.records import dataclass
from streamproof.base.seals import is_sealed, seal_of
from streamproof.exchange.itf.writing import Origin

FOLDERS = 5
"""Number of folders above a trace file in which its model is searched."""


@dataclass(frozen=True, slots=True)
class _ModelPlace:
    """The text of a model, and the text that the seal covers."""

    text: str
    sealed: str


def origin_of(text: str) -> Origin | None:
    """The origin of a trace of the model that a text of the command line names; None for a registered model."""
    if not text.endswith(".py") and ":" not in text:  # a registered name
        return None
    place = _place(text, Path.cwd())
    return Origin(place.text, seal_of(place.sealed))


def model_at_origin(origin: Origin | None, file: str) -> str | None:
    """The text of the model that a trace file names as its origin, if this user's streamproof wrote that name."""
    if origin is None or origin.seal is None:
        return None
    for folder in _folders(file):
        place = _place(origin.text, folder)
        if is_sealed(place.sealed, origin.seal):
            return place.text
    return None


def _place(text: str, folder: Path) -> _ModelPlace:
    """A model's text from another folder: that of its file there, or of a module that only the working folder has."""
    file, colon, name = (text, "", "") if text.endswith(".py") else text.rpartition(":")
    if not file.endswith(".py"):
        return _ModelPlace(text, f"{os.path.realpath(folder)}\n{text}")
    full = os.path.realpath(folder / file)
    near = os.path.relpath(folder / file)
    return _ModelPlace(f"{full if near.startswith(os.pardir) else near}{colon}{name}", f"{full}\n{name}")


def _folders(file: str) -> Iterator[Path]:
    """The working folder, and the folders above the trace file."""
    yield Path.cwd()
    above = Path(os.path.abspath(file)).parents
    yield from (folder for folder in above[:FOLDERS] if folder != Path.cwd())
