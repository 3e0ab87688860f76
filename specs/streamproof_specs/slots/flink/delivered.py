"""Lines about slots that were delivered twice, which log shippers do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from streamproof.conformance import Event

_ONCE = frozenset(
    {
        "slot.rm.alloc",
        "slot.rm.pending",
        "slot.rm.complete",
        "slot.rm.freed",
        "slot.tm.request",
        "slot.tm.alloc",
        "slot.jm.reserve",
    }
)
"""Lines that Flink writes once for an allocation, or for a request."""
_IN_STEP = frozenset(
    {
        "slot.rm.freeing",
        "slot.jm.offers",
        "slot.jm.match",
        "slot.jm.release",
        "slot.jm.freereserved",
        "slot.jm.releasing",
        "slot.tm.activate",
        "slot.tm.free",
        "tm.closejm",
    }
)
"""Lines that Flink may repeat, but not within a millisecond, or not with another effect."""


@dataclass(slots=True)
class Delivered:
    """The lines of a job without those that were delivered twice: with the time and the arguments of an earlier one."""

    events: list[Event] = field(default_factory=list)
    repeated: list[Event] = field(default_factory=list)
    """Repetitions of lines that Flink writes once for an allocation or a request."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Delivered:
        """Lines that may be written twice within a millisecond stay if another one would be wrong without them."""
        found = cls()
        seen: set[tuple[str, str, str | None, str]] = set()
        for event in events:
            text = str(event.args)
            about = (event.process, event.event, event.ts, text)
            single = event.event in _ONCE
            if about in seen and (single or (event.event in _IN_STEP and "." in (event.ts or ""))):
                if single:
                    found.repeated.append(event)
                continue
            seen.add(about)
            found.events.append(event)
        return found

    @property
    def doubt(self) -> str | None:
        """Why a contradiction proves nothing."""
        if not self.repeated or (len(self.repeated) > 1 and "." in (self.repeated[0].ts or "")):
            return None
        first = self.repeated[0]
        where = f"{Path(first.file or first.process).name}:{first.line}"
        return f"the line at {where} repeats an earlier one: it was delivered twice, or Flink did this twice"
