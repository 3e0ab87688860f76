"""Kills that a run is asked for: ``tm-1@1.5s``, by time, or ``tm-1@20``, by the number of events of the process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from streamproof_runtime.errors import RuntimeFailure

_FORM = re.compile(r"([\w-]+)@(?:(\d+(?:\.\d+)?)s|(\d+))", re.ASCII)


@dataclass(slots=True)
class Kill:
    """A SIGKILL of a process: some seconds after the first attempt has started, or by itself after an event.

    The first kill by events of a name is for its first process, the second for the process that replaces it, and so on.
    """

    name: str
    seconds: float | None = None
    events: int | None = None
    is_done: bool = False

    def __str__(self) -> str:
        return f"{self.name}@{self.events if self.seconds is None else f'{self.seconds:g}s'}"


def parse(texts: Iterable[str], names: Collection[str]) -> list[Kill]:
    """The kills. Raises `RuntimeFailure` for another form, a count of 0, and a name that is none of `names`."""
    found = []
    for text in texts:
        match = _FORM.fullmatch(text)
        if match is None or match[3] == "0":
            raise RuntimeFailure(f"{text!r} is no kill; write NAME@SECONDSs or NAME@EVENTS, as in tm-1@1.5s or tm-1@20")
        name, seconds, events = match.groups()
        if name not in names:
            raise RuntimeFailure(f"there is no process {name!r} to kill; there are {', '.join(names)}")
        found.append(Kill(name, float(seconds) if seconds else None, int(events) if events else None))
    return found
