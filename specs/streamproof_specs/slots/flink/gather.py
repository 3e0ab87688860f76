"""The lines about each slot allocation of a job, by process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streamproof.conformance import Event
from streamproof_specs.slots.flink.lines import JM_LINES, RM_LINES, TE_LINES


@dataclass(slots=True)
class SlotLines:
    """The lines about one allocation, by process."""

    rm: dict[str, list[Event]] = field(default_factory=dict)
    jm: dict[str, list[Event]] = field(default_factory=dict)
    te: dict[str, list[Event]] = field(default_factory=dict)
    place: str | None = None
    """The TaskManager, as the JobManager names it."""


def gather(events: Sequence[Event], closings: Sequence[Event]) -> dict[str, SlotLines]:
    """The lines of each allocation of a job. Lines about a TaskManager, or about all slots of a job, belong to the
    allocations that are there at that time."""
    found: dict[str, SlotLines] = {}
    reserved: dict[tuple[str, str], str] = {}
    inside: dict[tuple[str, str], str] = {}
    present: dict[str, dict[str, None]] = {}

    def of(alloc: str) -> SlotLines:
        return found.setdefault(alloc, SlotLines())

    for event in sorted((*events, *closings), key=lambda e: (e.process, e.seq)):
        name, args, process = event.event, event.args, event.process
        here = present.setdefault(process, {})
        match name:
            case "slot.jm.offers":
                for alloc in args["offers"]:
                    of(alloc).jm.setdefault(process, []).append(event)
            case "slot.jm.release":
                # A request may be released again, without effect.
                if (process, args["req"]) in reserved:
                    of(reserved.pop((process, args["req"]))).jm[process].append(event)
            case "jm.disconnect" | "rm.close":
                for lines in found.values():
                    part = lines.jm if name == "jm.disconnect" else lines.rm
                    if lines.place == args["tm"] and process in part:
                        part[process].append(event)
            case "slot.tm.offer" | "tm.closejm":
                for alloc in here:
                    of(alloc).te[process].append(event)
            case "tm.final":
                if (process, args["attempt"]) in inside:
                    of(inside[process, args["attempt"]]).te[process].append(event)
            case _ if "alloc" in args and name in RM_LINES:
                of(args["alloc"]).rm.setdefault(process, []).append(event)
                if name == "slot.rm.alloc":
                    of(args["alloc"]).place = args["tm"]
            case _ if "alloc" in args and name in JM_LINES:
                of(args["alloc"]).jm.setdefault(process, []).append(event)
                if name == "slot.jm.reserve":
                    reserved[process, args["req"]] = args["alloc"]
                elif name == "exec.deploy" and of(args["alloc"]).place is None:
                    of(args["alloc"]).place = args["tm"]
            case _ if "alloc" in args and name in TE_LINES:
                of(args["alloc"]).te.setdefault(process, []).append(event)
                here[args["alloc"]] = None
                if name == "tm.submit":
                    inside[process, args["attempt"]] = args["alloc"]
                elif name == "slot.tm.free" and args["state"] == "ALLOCATED":
                    here.pop(args["alloc"])
            case _:
                pass
    return found
