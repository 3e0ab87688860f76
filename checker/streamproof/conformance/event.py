"""One event recorded by a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """An event recorded by a process.

    `seq` numbers the events of a process in order; gaps are allowed, repetitions are not. `ts` is ISO-8601 text with
    milliseconds, as in the log. `file` and `line` are the source position, for messages only, and excluded from
    equality.
    """

    trace: str
    process: str
    seq: int
    event: str
    args: Mapping[str, Any] = field(default_factory=dict)
    ts: str | None = None
    clock: Mapping[str, int] | None = None
    state: Mapping[str, Any] | None = None
    file: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)
    run: str | None = None
    """The run that the event belongs to; None: it has the name of the file."""
    after: int | None = None
    """The `seq` of the last event of the process that had happened when the call that this event records began, -1 for
    none: those between the two may have happened before or after it. None: all earlier ones precede it."""
    refused: bool | None = None
    """True: `event` was asked for and did not happen; it was not possible in the state."""
    picks: Mapping[str, Any] | None = None
    """Choices of the action by name, as far as they are recorded."""
    parameters: Mapping[str, Any] | None = None
    """Parameters of the model that are sizes of the implementation, by name; of all events of the trace."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What no other event of a log has: trace, process and number."""
        return self.trace, self.process, self.seq

    @property
    def loc(self) -> Loc | None:
        """The source position of the event, if known."""
        return None if self.file is None or self.line is None else Loc(self.file, self.line)

    def __str__(self) -> str:
        args = ", ".join(f"{name}={value}" for name, value in self.args.items())
        return f"{self.process}#{self.seq} {self.event}({args}){' refused' if self.refused else ''}"
