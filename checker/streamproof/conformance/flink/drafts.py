"""Event drafts: events read from a log before their jobs are known."""

from __future__ import annotations

from typing import Any

from streamproof.base.records import dataclass


@dataclass(slots=True)
class Draft:
    """An event without its job. `job` is an identifier in its diagnostic context, `thread` the thread's name."""

    process: str
    seq: int
    family: str
    args: dict[str, Any]
    ts: str
    job: str | None
    thread: str | None
    file: str
    line: int
