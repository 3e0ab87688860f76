"""Facts about the processes of a run, from lines of all jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamproof.conformance import Event
from streamproof.conformance.flink import FlinkRun
from streamproof_specs.flink.clocks import Clocks

CONNECTIONS = frozenset({"hb.unreachable", "hb.timeout", "rm.close", "rm.register", "tm.fatal"})
"""Lines about TaskManagers and JobManagers that come and go."""


@dataclass(slots=True)
class ProcessFacts:
    """Collected once for all jobs of a run, because there may be as many jobs as lines."""

    clocks: Clocks
    received: set[tuple[str, str]] = field(default_factory=set)
    """The attempts received by TaskManagers, each with the process."""
    families: dict[str, set[str]] = field(default_factory=dict)
    """The families of events of each process."""
    connections: dict[str, list[Event]] = field(default_factory=dict)
    """The lines of each process about other processes that come and go; they name no job."""
    _works: dict[str, int] = field(default_factory=dict)
    _turns: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: FlinkRun) -> ProcessFacts:
        """The facts in all events of a run."""
        facts = cls(Clocks.of(run.events))
        for event in run.events:
            args, process = event.args, event.process
            if event.event in CONNECTIONS:
                facts.connections.setdefault(process, []).append(event)
            if event.event == "tm.submit":
                facts.received.add((process, args["attempt"]))
            elif event.event == "tm.estjm":
                facts._turns.setdefault(args["job"], {}).setdefault(process, event.seq)
            if args.get("new") == "INITIALIZING" and (process, args.get("attempt")) in facts.received:
                facts._works.setdefault(process, event.seq)
            families = facts.families.setdefault(process, set())
            families.add(event.event)
            if args.get("new") == "FAILED":
                families.add(f"{event.event} FAILED")
        return facts

    def begun(self, job: str) -> dict[str, int]:
        """The position in each TaskManager's log before which all tasks of a later job were received: its registration
        with the job's JobMaster, or an active task that was received."""
        turns = self._turns.get(job, {})
        return {**self._works, **{process: min(seq, self._works.get(process, seq)) for process, seq in turns.items()}}
