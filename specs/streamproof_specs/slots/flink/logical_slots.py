"""The logical slots of shared slots at the JobMaster: each is requested, allocated and removed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from streamproof import System
from streamproof.conformance import Event, Instance, Move, Observation, StateReader, Stream, Task, compile_model
from streamproof_models.slots.logical import LogicalSlot

_MOVES = {"slot.logical.request": "request", "slot.logical.alloc": "allocate", "slot.logical.remove": "remove"}


@lru_cache(maxsize=1)
def logical_system() -> System:
    """The machine of one logical slot."""
    return compile_model(LogicalSlot())


@dataclass(frozen=True, slots=True)
class _LogicalSlotExplainer:
    """Explanations of one logical slot."""

    name: str

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled."""
        return f"{self.name} is {look('slot')}"

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterator[tuple[int, str]]:
        """The acceptable lines."""
        for instance in enabled:
            yield 0, f"{instance.action.capitalize()} logical slot"


def delivered(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """A line that equals an earlier one, its time included, may have been delivered twice: then it says nothing."""
    found: list[Observation] = []
    seen = set[tuple[str, str | None, str]]()
    for observation in observations:
        event = observation.event
        about = (event.event, event.ts, str(event.args))
        found.append(
            replace(observation, alternatives=(*observation.alternatives, ())) if about in seen else observation
        )
        seen.add(about)
    return tuple(found)


def logical_slots(job: str, events: Iterable[Event], complete: bool) -> tuple[tuple[Task, ...], int]:
    """The logical slots of a job as behaviours, and the number of missing lines. `complete`: the log has the beginning."""
    lines: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.event in _MOVES:
            lines.setdefault((event.process, event.args["lreq"]), []).append(event)
    tasks, missing = [], 0
    for (_, request), own in lines.items():
        if not complete and own[0].event != "slot.logical.request":
            continue
        names = {e.event for e in own}
        missing += "slot.logical.request" not in names
        wording = _LogicalSlotExplainer(f"logical slot {request[:8]}")
        observations = delivered(Observation(e, ((Move(_MOVES[e.event]),),)) for e in own)
        tasks.append(Task(job, logical_system(), (Stream(observations),), explainer=wording))
    return tuple(tasks), missing
