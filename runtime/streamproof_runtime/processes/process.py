"""What each process of a job does first: it ends with its parent, keeps its channel to it, and leaves Ctrl-C to it.

The parent sends the configuration by standard input and then keeps that pipe open: its end is the end of the process,
also while a user function computes. Standard output carries frames to the parent; user functions print to standard error.
A thread gives signs of life, so that the parent replaces a process that stands still.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from streamproof_runtime.processes.wire import Frames, frame

ORPHANED, BROKEN, DISMISSED, FORKED = 3, 4, 5, 6
"""Exit codes: the parent has ended; a problem that was reported; a TaskExecutor was released; a copy by `os.fork`."""
STOP = "stop"
"""A command to the JobMaster: unbounded sources end."""
ALIVE = "alive"
"""A report that says that the process does not stand still."""
DEFECTIVE = "defective"
"""A report of the error that ends the process."""
SILENT = "silent"
"""A report of the JobMaster: a TaskExecutor, with its incarnation, does not answer."""
BEAT, BEATS = 1.0, 30
"""Seconds between two heartbeats or signs of life, and how many may be missing."""
_PR_SET_PDEATHSIG = 1
_SAMPLE = 0.25
"""Seconds between two samples for a live view."""


class Parent:
    """The process that has started this one."""

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        pipe = os.dup(0)
        self._reports = os.dup(1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        frames = Frames()
        values: list[Any] = []
        while not values:
            data = os.read(pipe, 1 << 16)
            if not data:
                os._exit(ORPHANED)
            values = list(frames.feed(data))
        self.configuration: Mapping[str, Any] = values[0]
        _end_with(self.configuration["parent"])
        self._reporting = threading.Lock()
        self._commands: list[Any] = values[1:]
        self._handle: Callable[[Any], object] | None = None
        self._commanding = threading.Lock()
        threading.Thread(target=self._watch, args=(pipe, frames), name="parent", daemon=True).start()
        threading.Thread(target=self._beat, name="alive", daemon=True).start()

    def _watch(self, pipe: int, frames: Frames) -> None:
        """Receives commands; ends the process at the end of the pipe."""
        while data := os.read(pipe, 1 << 16):
            for value in frames.feed(data):
                with self._commanding:
                    self._commands.append(value)
                    self._pass_on()
        os._exit(ORPHANED)

    def commanded(self, handle: Callable[[Any], object]) -> None:
        """`handle` is called with each command of the parent, in a thread of its own."""
        with self._commanding:
            self._handle = handle
            self._pass_on()

    def _pass_on(self) -> None:
        while self._handle is not None and self._commands:
            self._handle(self._commands.pop(0))

    def _beat(self) -> None:
        while True:
            self.report(ALIVE)
            time.sleep(self.configuration["beat"])

    def report(self, *parts: Any) -> None:
        """Sends a frame; without effect if the parent has ended, for then this process ends too."""
        data = memoryview(frame([*parts]))
        with self._reporting, suppress(OSError):
            while data:
                data = data[os.write(self._reports, data) :]

    def sampled(self, gather: Callable[[], Any]) -> None:
        """Reports what is gathered, again and again, if there is a live view; not while the parent does not read."""
        if self.configuration["live"]:
            if select.select((), (self._reports,), (), 0)[1]:
                self.report("sample", gather())
            asyncio.get_running_loop().call_later(_SAMPLE, self.sampled, gather)

    def broken(self, problem: str, *, by_system: bool = False) -> NoReturn:
        """Reports a problem that a user can correct, or one of the operating system, and ends the process."""
        self.report("failure" if by_system else "problem", problem)
        os._exit(BROKEN)


def _end_with(parent: int) -> None:
    """Where the system can do so, it kills this process when the parent ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(ORPHANED)
