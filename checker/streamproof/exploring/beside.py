"""A check of all properties in a process beside the explorer: its progress, its findings, and its end.

The process is forked before the server has threads, waits until it is asked to begin, and ends with the server.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from streamproof import interrupts
from streamproof.base.errors import StreamproofError
from streamproof.base.options import SearchOptions
from streamproof.base.processes import ForkedProcess
from streamproof.base.records import dataclass, replace
from streamproof.engines.registry import CHECKS
from streamproof.exploring.explorer import Explorer, Visit
from streamproof.system.verdict import CheckResult, Finding, Progress, Trace
from streamproof.traces.replay import confirm_finding

OFTEN = 0.5
"""Seconds between two reports of the progress."""


@dataclass(frozen=True, slots=True)
class FoundBeside:
    """A verdict on a property, or an evaluation error of the model; `query` is that of the address of its behaviour, empty if
    there is none or if it is too long."""

    name: str
    verdict: str
    because: str
    query: str = ""


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """How far the check is. `phase` is empty before it begins; `over`: it has ended, or was stopped."""

    phase: str = ""
    seconds: float = 0.0
    states: int = 0
    levels: int = 0
    queue: int = 0
    over: bool = False
    found: tuple[FoundBeside, ...] = ()

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return bool(self.phase) and not self.over


class CheckBeside:
    """The check of an explorer's system. `address` makes the query of a behaviour. Requires `processes.can_fork`."""

    def __init__(self, explorer: Explorer, address: Callable[[Visit], str]) -> None:
        self.command = explorer.selection.command("check")
        self.progress, self._lock = CheckProgress(), Lock()
        notes, writing = os.pipe()
        self._process = ForkedProcess(lambda job: _Checking(explorer, address, writing).run(), "check")
        os.close(writing)
        self._notes = os.fdopen(notes, "rb")

    def start(self) -> None:
        """Begins, unless it has begun before."""
        if not self.progress.phase:
            self.progress = CheckProgress("preparing the search")
            self._process.send(None)
            Thread(target=self._read, name="check beside", daemon=True).start()

    def stop(self) -> None:
        """Ends the process; what was found stays."""
        self._set(replace(self.progress, phase="stopped", over=True))
        self._process.stop()

    def _set(self, progress: CheckProgress) -> None:
        """The progress, unless the check is over."""
        with self._lock:
            self.progress = self.progress if self.progress.over else progress

    def _read(self) -> None:
        for line in self._notes:
            note = json.loads(line)
            found = tuple(FoundBeside(**one) for one in note.pop("found"))
            self._set(CheckProgress(**note, found=found))
        self._set(replace(self.progress, phase="its process has died; it may have been out of memory", over=True))


class _Checking:
    """The check in its own process; it writes its progress as lines of JSON."""

    def __init__(self, explorer: Explorer, address: Callable[[Visit], str], notes: int) -> None:
        self._explorer, self._address, self._notes = explorer, address, notes
        self._begun, self._lock = time.monotonic(), Lock()
        self._now = CheckProgress("comparing the model with plain Python")
        self._found: dict[str, FoundBeside] = {}

    def run(self) -> None:
        """Decides the properties, and reports the verdicts."""
        self._note()
        Thread(target=self._tick, name="progress", daemon=True).start()
        try:
            system, _ = self._explorer.selection.compared()
            self._phase("preparing the search")
            result = CHECKS["explicit"].run(
                system, SearchOptions(), on_progress=self._progress, on_violation=self._violation
            )
            for finding in result.findings:
                confirm_finding(system, finding, "explicit")
                self._violation(finding)
            self._end(result)
        except StreamproofError as error:
            self._phase("; ".join(filter(None, (error.message, error.remedy))), over=True)
        except MemoryError:
            self._phase("out of memory", over=True)

    def _end(self, result: CheckResult) -> None:
        if result.mistake is not None:
            query = self._query(result.mistake.trace, "", result.mistake.error.message)
            self._found[""] = FoundBeside("evaluation error of the model", "error", result.mistake.error.message, query)
        if result.counts is not None:
            counts = result.counts
            self._now = replace(self._now, states=counts.distinct, levels=counts.depth, queue=counts.queue)
        self._phase("finished" if result.stopped is None else f"ended early, {result.stopped}", over=True)

    def _progress(self, progress: Any) -> None:
        assert isinstance(progress, Progress)
        counts = replace(self._now, states=progress.distinct, levels=progress.depth, queue=progress.queue)
        phase = progress.stage or ("exploring the states" if progress.queue else "deciding what needs all states")
        self._now = replace(counts, phase=phase)

    def _violation(self, finding: Finding) -> None:
        query = "" if finding.trace is None else self._query(finding.trace, finding.property, finding.text())
        self._found[finding.property] = FoundBeside(finding.property, finding.text(), finding.because, query)
        self._note()

    def _query(self, trace: Trace, prop: str, what: str) -> str:
        note = f"{prop}: {what}" if prop else what
        try:
            return self._address(Visit(trace, len(trace) - 1, note, prop))
        except StreamproofError:  # its initial state has no number, or the address is too long
            return ""

    def _phase(self, phase: str, *, over: bool = False) -> None:
        self._now = replace(self._now, phase=phase, over=over)
        self._note()

    def _tick(self) -> None:
        """Reports the progress and the running time again and again; a search is silent while it compiles."""
        while not self._now.over:
            time.sleep(OFTEN)
            self._note()

    def _note(self) -> None:
        now = self._now
        phase = interrupts.stage() if interrupts.busy() and not now.over else now.phase
        record = {
            "phase": phase, "seconds": time.monotonic() - self._begun, "states": now.states, "levels": now.levels,
            "queue": now.queue, "over": now.over,
            "found": [
                {"name": one.name, "verdict": one.verdict, "because": one.because, "query": one.query}
                for one in list(self._found.values())
            ],
        }  # fmt: skip
        with self._lock:
            os.write(self._notes, json.dumps(record).encode() + b"\n")
