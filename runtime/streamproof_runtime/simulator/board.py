"""The board of a simulated run, for a live view."""

from __future__ import annotations

from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.live import Board, Watch, executor_sample, manager_sample, master_sample
from streamproof_runtime.simulator.simulation import Simulation

WINDOW = 0.001
"""Virtual seconds over which a rate is measured, at least."""


class SimulationBoard:
    """The board of a simulated run; `look` shows it as it is now."""

    def __init__(self, simulation: Simulation, title: str, watch: Watch) -> None:
        self._simulation, self._title, self._watch = simulation, title, watch
        self._board, self._seen, self._faults = Board(WINDOW), 0, 0

    def look(self) -> None:
        """Gathers samples and events, and shows them."""
        world, board = self._simulation, self._board
        board.master(master_sample(world.master.machine))
        for name, host in world.hosts.items():
            board.executor(name, executor_sample(host.executor) if host.is_alive else [])
        board.manager(manager_sample(world.manager.machine) if world.manager.is_alive else None)
        now = world.loop.now
        faults = sorted((fault for fault in world.faults if fault.at <= now), key=lambda fault: fault.at)
        for fault in faults[self._faults :]:
            board.happened(fault.at / 1e9, str(fault))
        self._faults = len(faults)
        for trace, process, event, args, _, _ in world.entries[self._seen :]:
            if process == JOBMASTER:
                about = next((str(args[name]) for name in ("reason", "executor", "task") if name in args), "")
                board.happened(now / 1e9, f"{trace}: {event}{': ' if about else ''}{about}")
        self._seen = len(world.entries)
        self._watch(board.snapshot(now / 1e9, self._title))
