"""Explanations of lines about result partitions, outputs of attempts and connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamproof.conformance import Event, Instance, Move, StateReader

_WHERE = {
    "NONE": "is not set up",
    "SET_UP": "is set up, but not registered",
    "REGISTERED": "is registered",
    "RELEASING": "is being released",
    "RELEASED": "was released",
}
_SHOWN = {
    "show": "Registered ...",
    "begin_release": "... Releasing ...",
    "show_released": "Released partition ...",
    "list_for_release": "Releasing Job Partitions [...]",
    "show_discarded": "Discarding the results produced by task execution ...",
}


@dataclass(frozen=True, slots=True)
class PartitionExplainer:
    """Explanations of the machines of `recorded_machine`; `name` is what the lines are about."""

    name: str

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled."""
        kind = self.name.partition(" ")[0]
        match move.action:
            case _ if kind == "attempt":
                return f"{self.name} is {look('execution')}"
            case _ if kind == "an":
                return f"{self.name} is released that was not created, or a second time; {look('created')} were created"
            case _ if kind == "TaskManager":
                return self._connection(move, look)
            case "request" | "show" if look("stage") == "REGISTERED" and move.action == "show":
                return f"{self.name} is registered a second time"
            case "request" if look("stage") == "REGISTERED" and look("wanted") == 0:
                return f"{self.name} is read, but no line says that a reader asks for it"
            case "request" if look("stage") == "REGISTERED":
                return f"{self.name} is read, but its producer is {look('producer')}"
            case "view" | "grant" if look("stage") == "REGISTERED":
                return f"a view of {self.name} is created without a request"
            case "show_released" if look("stage") == "RELEASING":
                return f"{self.name} is released, but its producer has finished, and it was not listed for release"
            case "fill" | "free" if look("stage") != "NONE":
                what = "finished" if move.action == "fill" else "released"
                return f"subpartition {move.args['i']} of {self.name} is {what} a second time"
            case "list_for_release":
                return f"{self.name} is to be released a second time"
            case "show_consumed" if look("stage") != "NONE":
                return f"{self.name} is consumed a second time, or stays until the JobMaster releases it"
            case "store" if look("stage") == "REGISTERED":
                return f"the file of {self.name} is produced a second time, or after its producer has ended"
            case "show_finished" | "show_ended":
                return f"the producer of {self.name} is {look('producer')}"
            case _:
                return f"{self.name} {_WHERE[look('stage')]}"

    def _connection(self, move: Move, look: StateReader) -> str:
        match move.action:
            case "show_closed" if look("manager") == "OPEN":
                return f"the connection to {self.name} is closed for want of heartbeats, but no line says that they are lost"
            case "show_disconnected":
                return f"{self.name} is disconnected for want of heartbeats, but no line says that they are lost"
            case "add_slots" | "drop_slots" if look("manager") != "UNKNOWN":
                return f"the slots of {self.name} are {'known already' if look('slots') else 'not known'}"
            case _:
                return f"the connection to {self.name} is {look('manager')}"

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterator[tuple[int, str]]:
        """Acceptable lines."""
        for instance in enabled:
            if instance.action in _SHOWN:
                yield 1, _SHOWN[instance.action]
