"""A live view of a run on a terminal: tasks, buffers, credits, rates and the last events; plain lines elsewhere.

Every text of a run is escaped. The cursor is never hidden, and the terminal's settings stay: there is nothing to restore.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamproof.base.text import encodable, inner, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
REFRESH = 8
"""Frames a second on a terminal."""
FRAME = 0.05
"""Seconds that a frame of a simulated run is shown, at least."""
EVERY = 2.0
"""Seconds between two summaries without a terminal."""
EVENTS = 8
"""Events that are shown."""
_AROUND = 9 + EVENTS
"""Lines of a terminal that are not for tasks."""
_LONGEST = 200
_WIDEST = 1 << 16
"""Maximum length of a line of other processes, in characters; longer ones are split."""
"""Characters of an event that are shown."""
_STATES = {"RUNNING": "green", "BLOCKED": "yellow", "ATTEMPTING": "cyan", "TERMINATED": "dim", "FINISHED": "dim"}
_OVER = ("TERMINATED", "FINISHED")


class LiveView:
    """Shows snapshots of a run on `stream`. A context manager: the last frame stays."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = inner(stream)
        self.is_live = stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
        self._console: Console | None = None
        self._live: Live | None = None
        self._snapshot: Mapping[str, Any] = {}
        self._shown, self._title, self._summary = 0, "", 0.0
        self._paced = threading.Event()
        self._streams: tuple[TextIO, TextIO] | None = None
        self._output: tuple[int, threading.Thread] | None = None

    def __call__(self, snapshot: Mapping[str, Any]) -> None:
        """Shows a snapshot."""
        self._snapshot = snapshot
        if not self.is_live:
            self._lines(snapshot)

    def slowly(self, snapshot: Mapping[str, Any]) -> None:
        """Shows a snapshot for a while, if this is a terminal."""
        self(snapshot)
        if self.is_live:
            self._paced.wait(FRAME)

    @property
    def errors(self) -> int | None:
        """A pipe for what other processes write to standard error, which appears above the view; None: none is needed."""
        return None if self._output is None else self._output[0]

    def above(self, text: str) -> None:
        """Prints a line above the view."""
        if self._console is not None:
            self._console.print(visible(text), markup=False, highlight=False, emoji=False, soft_wrap=True)

    # --- on a terminal

    def __enter__(self) -> Self:
        if self.is_live:
            self._console = _console(self._stream)
            self._streams = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = _Above(self, sys.stdout), _Above(self, sys.stderr)
            reading, writing = os.pipe()
            self._output = writing, threading.Thread(target=self._forward, args=(reading,), daemon=True)
            self._output[1].start()
            self._live = Live(
                console=self._console,
                refresh_per_second=REFRESH,
                get_renderable=lambda: frame(self._snapshot, self._console.height if self._console else 24),
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._output is not None:
            os.close(self._output[0])
            self._output[1].join(1.0)  # a process that a user function has started may keep the pipe
            self._output = None
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._streams is not None:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            (sys.stdout, sys.stderr), self._streams = self._streams, None

    def _forward(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="backslashreplace") as lines, suppress(ValueError):
            for text in iter(lambda: lines.readline(_WIDEST), ""):
                self.above(text.rstrip("\n"))

    # --- elsewhere

    def _lines(self, snapshot: Mapping[str, Any]) -> None:
        if snapshot["title"] != self._title:
            self._title, self._shown, self._summary = snapshot["title"], 0, 0.0
            self._write(f"live view of {self._title}, as lines: this is not a terminal")
        new = snapshot["happened"] - self._shown
        self._shown = snapshot["happened"]
        for time, text in snapshot["events"][-new:] if new else ():
            self._write(f"{_time(time)}  {text[:_LONGEST]}")
        if snapshot["time"] - self._summary >= EVERY:
            self._summary = snapshot["time"]
            self._write(f"{_time(snapshot['time'])}  {summary(snapshot)}; {manager(snapshot)}")

    def _write(self, text: str) -> None:
        self._stream.write(encodable(visible(text), self._stream) + "\n")
        self._stream.flush()


class _Above:
    """A stream whose lines appear above the view."""

    def __init__(self, view: LiveView, stream: TextIO) -> None:
        self._view, self._stream, self._rest = view, stream, ""

    def write(self, text: str) -> int:
        """Prints the lines that are whole."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._view.above(line)
        return len(text)

    def flush(self) -> None:
        """Prints what is left of the last line."""
        if self._rest and self._view._live is None:
            self._view.above(self._rest)
            self._rest = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _console(stream: TextIO) -> Console:
    class Plain(Console):
        """A console that never hides the cursor: whatever ends the program, the terminal is as before."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    return Plain(file=stream, highlight=False, markup=False, emoji=False)


def frame(snapshot: Mapping[str, Any], height: int) -> RenderableType:
    """One frame of a view that is `height` lines high: the job, a table of its tasks, and the last events."""
    if not snapshot:
        return Text("starting")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task", no_wrap=True)
    for name in ("on", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("attempt", "buffers", "feedback", "credits", "waiting", "records", "records/s"):
        table.add_column(name, justify="right", no_wrap=True)
    tasks = snapshot["tasks"]
    shown = _fitting(tasks, max(3, height - _AROUND))
    for row in shown:
        table.add_row(*_cells(row))
    parts: list[RenderableType] = [Text(visible(heading(snapshot)), style="bold"), table]
    if len(shown) < len(tasks):
        parts.append(Text(f"and {len(tasks) - len(shown)} more", style="dim"))
    for text in (manager(snapshot), summary(snapshot)):
        parts.append(Text(visible(text), style="dim", no_wrap=True, overflow="ellipsis"))
    for time, text in snapshot["events"][-EVENTS:]:
        parts.append(
            Text.assemble((f"{_time(time)}  ", "dim"), visible(text[:_LONGEST]), no_wrap=True, overflow="ellipsis")
        )
    return Group(*parts)


def heading(snapshot: Mapping[str, Any]) -> str:
    """The job, its state, how often it has been tried, and the time."""
    attempts = snapshot["attempts"]
    tries = f", {attempts} attempt{'' if attempts == 1 else 's'}" if attempts else ""
    return f"{snapshot['title']}: {snapshot['status']}{tries}, {_time(snapshot['time'])}"


def summary(snapshot: Mapping[str, Any]) -> str:
    """TaskExecutors, tasks by state, buffers in use, and records a second, in one line."""
    tasks: Sequence[Mapping[str, Any]] = snapshot["tasks"]
    states = {state: sum(t["state"] == state for t in tasks) for state in dict.fromkeys(t["state"] for t in tasks)}
    slots = ", ".join(f"{name} {count} slots" for name, count in sorted(snapshot["executors"].items()))
    counted = [f"{number} {state}" for state, number in states.items()]
    buffers, capacity = (sum(t.get(name, 0) for t in tasks) for name in ("buffers", "capacity"))
    rate = sum(t["rate"] for t in tasks)
    parts = [slots or "no TaskExecutor", *counted, f"{buffers:,} of {capacity:,} buffers", f"{rate:,.0f} records/s"]
    return "; ".join(parts)


def manager(snapshot: Mapping[str, Any]) -> str:
    """The ResourceManager: TaskExecutors that have registered, and slots, in one line."""
    sample = snapshot["manager"]
    if sample is None:
        return "ResourceManager: starting"
    executors = f"{sample['executors']} TaskExecutor{'' if sample['executors'] == 1 else 's'}"
    slots = f"{sample['allocated']} of {sample['slots']} slots allocated"
    return f"ResourceManager: {executors}; {slots}, {sample['requested']} requested, {sample['required']} required"


def _fitting(tasks: Sequence[Mapping[str, Any]], most: int) -> Sequence[Mapping[str, Any]]:
    """As many tasks as fit, those at work first; their order is kept."""
    if len(tasks) <= most:
        return tasks
    first = sorted(range(len(tasks)), key=lambda at: tasks[at]["state"] in _OVER)[:most]
    return [tasks[at] for at in sorted(first)]


def _cells(row: Mapping[str, Any]) -> list[Any]:
    state = row["state"]
    cells = [Text(visible(row["task"])), Text(visible(row["executor"])), Text(visible(state), _STATES.get(state, ""))]
    cells.append(Text(str(row["attempt"])))
    if "buffers" not in row:
        return cells
    buffers = f"{row['buffers']:,} of {row['capacity']:,}" if row["capacity"] else ""
    counts = [f"{row[name]:,}" if row[name] else "" for name in ("feedback", "credits", "waiting", "records")]
    return [*cells, *map(Text, [buffers, *counts, f"{row['rate']:,.0f}"])]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 or not seconds else f"{seconds * 1000:.1f} ms"
