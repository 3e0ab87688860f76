"""The processes of one run: starts JobMaster, ResourceManager and TaskExecutors, replaces each that dies, ends them all.

No process, socket or file outlives it: each process ends when the pipe from this one closes, sockets are theirs, and there
is no file with a name but the event logs.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

from streamproof_runtime.errors import ProcessLost, RuntimeFailure
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.jobmaster.master_host import OFFLOAD
from streamproof_runtime.jobs.input_policies import ANY
from streamproof_runtime.live import Board, Watch
from streamproof_runtime.processes.checkpoint_files import checkpoint_files
from streamproof_runtime.processes.kills import Kill
from streamproof_runtime.processes.links import SECRET, listening
from streamproof_runtime.processes.process import ALIVE, BEAT, BEATS, BROKEN, DEFECTIVE, DISMISSED, SILENT, STOP
from streamproof_runtime.processes.wire import Frames, frame
from streamproof_runtime.slots.slot_events import RM
from streamproof_runtime.subtasks.buffers import BYTES, RECORDS
from streamproof_runtime.subtasks.flow import BUFFERS

DEATHS = 20
"""Processes of one TaskExecutor that may die without being asked to."""
START = 300
"""Signs of life that a process may miss while it starts."""
GRACE = 5.0
"""Seconds for processes to end by themselves after the job is over."""
ROUTINE = frozenset(
    {
        *("region_scheduled", "deployed", "region_deployed", "region_updated", "region_running", "region_finished"),
        *("region_canceled", "checkpoint_acknowledged"),
    }
)
"""Events of the JobMaster that are not told, since others say as much."""
LIFE = 600.0
"""Seconds until a run is given up."""


Listeners: TypeAlias = Mapping[str, socket.socket]
"""The listening sockets of the JobMaster and the ResourceManager."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is made of. `log_folder` exists, if it is given."""

    job: Path
    executors: int
    slots: int
    variant: str | None = None
    restarts: int = 10
    buffers: int = BUFFERS
    records: int = RECORDS
    """Largest number of records in a buffer."""
    buffer_timeout: float | None = None
    """Milliseconds; None: no record waits."""
    buffer_size: int = BYTES
    """Bytes of a buffer."""
    sender_buffers: int | None = None
    """Buffers of a subtask for what it sends; None: as many as it needs."""
    eager: bool = False
    """Whether regions are scheduled with their producers."""
    input_policy: str = ANY
    """The input policy of loops that have none of their own."""
    checkpoint_interval: int = 0
    """Nanoseconds between two checkpoints; 0: there are none."""
    unaligned: bool = False
    """Whether the barriers of checkpoints overtake buffers."""
    idle: int = 0
    """Nanoseconds after which an idle TaskExecutor is released; 0: none is."""
    resources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What the slots of TaskExecutors have."""
    offload: int = OFFLOAD
    """Bytes from which the descriptor of a deployment is a blob."""
    log_folder: Path | None = None
    session: Sequence[tuple[str, Sequence[str]]] = ()
    """The name of each job of a session, and the cluster partitions that no later one reads; empty: there is one job."""
    stop_after: float | None = None
    """Seconds after the start of the job, after which unbounded sources are stopped."""
    seconds: float = LIFE
    live: bool = False
    """Whether the processes report samples for a live view."""
    errors: int | None = None
    """A file for the standard error of the processes; None: that of this one."""
    beat: float = BEAT
    """Seconds between two heartbeats or signs of life."""

    @property
    def names(self) -> list[str]:
        """The TaskExecutors."""
        return [f"tm-{i}" for i in range(1, self.executors + 1)]


@dataclass(slots=True)
class ClusterOutcome:
    """The end of a run on processes."""

    finished: bool
    reason: str
    """Why it has not finished."""
    results: dict[str, Any]
    attempts: int
    lost: int
    """Records that arrived at terminated subtasks."""
    longest: int
    """Largest number of items that waited in one channel with flow control."""
    longest_feedback: int
    memory: int
    """Largest resident memory of a TaskExecutor in bytes."""
    unfinished: bool = False
    """Whether the time limit has ended it."""


class _Child:
    def __init__(self, process: subprocess.Popen[bytes], incarnation: int) -> None:
        self.process, self.incarnation, self.frames = process, incarnation, Frames()
        self.silent = -START
        """Missing signs of life."""
        self.error = ""
        """What has ended it, if it could say so."""

    def ending(self) -> str:
        """How it has ended."""
        code = self.process.wait()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{how}, {self.error}" if self.error else how


class Cluster:
    """One run on processes; `tell` is called with what happens."""

    def __init__(
        self, settings: Settings, kills: Sequence[Kill], tell: Callable[[str], None], watch: Watch | None = None
    ) -> None:
        """`watch` is called with snapshots, if the settings are for a live view."""
        self.settings, self.kills, self._told, self._watch = settings, kills, tell, watch
        self._board, self._began = Board(), time.monotonic()
        self._secret = os.urandom(SECRET)
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._deaths: dict[str, int] = {}
        self._ended = ""
        """How the last process ended that was not meant to."""
        self._due: list[tuple[float, Kill]] = []
        self._over: list[Any] | None = None
        self._job, self._results, self._promoted = 0, dict[str, Any](), dict[str, int]()
        """The number of the present job of a session, and results and cluster partitions of those before it."""
        self._ends_job = False
        """Whether its JobMaster is about to end, and another one follows for the next job."""
        self._seen: list[str] = []
        self._decided = self._first_attempt = 0
        """Restarts that the JobMaster has decided, and its first attempt, which is later than those of lost ones."""
        self._dismissed: dict[str, int] = {}
        """TaskExecutors that the ResourceManager has released, with the number of the next process."""
        self._files: list[IO[bytes]] = []
        """Completed checkpoints, for all JobMasters."""
        self._beaten = self._began
        """When signs of life were counted last."""
        self._stop_at = float("inf")
        self.is_stopping = False
        """Whether unbounded sources are to end. A signal handler may set it."""
        self._has_stopped = False

    def run(self) -> ClusterOutcome:
        """Runs the job. Raises `RuntimeFailure`, and `ProcessLost` if a process has ended too often."""
        try:
            self._files = checkpoint_files() if self.settings.checkpoint_interval else []
        except OSError as error:
            raise RuntimeFailure(
                f"checkpoints cannot be stored: {error.strerror}; name a folder for temporary files in TMPDIR"
            ) from error
        try:
            listeners = {name: listening() for name in (JOBMASTER, RM)}
        except OSError as error:
            raise RuntimeFailure(
                f"no port of the loopback address can be opened: {error.strerror}; allow sockets, or add --simulate"
            ) from error
        settings = self.settings
        end = time.monotonic() + settings.seconds
        try:
            with listeners[JOBMASTER], listeners[RM]:  # of these, and of those that replace them
                for name in (JOBMASTER, RM, *settings.names):
                    self._start(name, 0, listeners)
                while self._over is None and time.monotonic() < end:
                    due = [when for when, _ in self._due]
                    self._look(min([end, self._stop_at, self._beaten + settings.beat, *due]), listeners)
                    self._count_signs()
                    if time.monotonic() >= self._stop_at or self.is_stopping:
                        self._stop()
            return self._outcome()
        finally:
            self._end()

    # --- processes

    def _start(self, name: str, incarnation: int, listeners: Listeners) -> None:
        mine = [kill for kill in self.kills if kill.name == name and kill.events is not None]
        kill = mine[incarnation] if incarnation < len(mine) else None
        listener = listeners.get(name)
        files = [file.fileno() for file in self._files if name == JOBMASTER]
        folder = self.settings.log_folder
        file = name if listener is not None and not incarnation else f"{name}.{incarnation}"
        settings: dict[str, Any] = {
            "role": "taskexecutor" if listener is None else name,
            "name": name,
            "incarnation": incarnation,
            "parent": os.getpid(),
            "job": str(self.settings.job.absolute()),
            "secret": self._secret,
            "port": listeners[JOBMASTER].getsockname()[1],
            "manager_port": listeners[RM].getsockname()[1],
            "listener": None if listener is None else listener.fileno(),
            "first_attempt": self._first_attempt,
            "job_number": self._job,
            "cluster": self._promoted,
            "names": self.settings.names,
            "slots": self.settings.slots,
            "buffers": self.settings.buffers,
            "records": self.settings.records,
            "buffer_timeout": self.settings.buffer_timeout,
            "buffer_size": self.settings.buffer_size,
            "sender_buffers": self.settings.sender_buffers,
            "offload": self.settings.offload,
            "restarts": self.settings.restarts,
            "variant": self.settings.variant,
            "eager": self.settings.eager,
            "input_policy": self.settings.input_policy,
            "checkpoint_interval": self.settings.checkpoint_interval,
            "unaligned": self.settings.unaligned,
            "checkpoint_files": files,
            "idle": self.settings.idle,
            "resources": {name: dict(profile) for name, profile in self.settings.resources.items()},
            "log": None if folder is None else str(folder.absolute() / f"{file}.ndjson"),
            "live": self.settings.live,
            "beat": self.settings.beat,
            "kill_after": None if kill is None else kill.events,
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "streamproof_runtime.processes.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.settings.errors,
                pass_fds=(*files, *(() if listener is None else (listener.fileno(),))),
            )
        except OSError as error:
            raise RuntimeFailure(f"no process can be started for {name}: {error.strerror}") from error
        self._children[name] = _Child(process, incarnation)
        assert process.stdin is not None
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, name)
        with suppress(BrokenPipeError):
            process.stdin.write(frame(settings))
            process.stdin.flush()
        if name == JOBMASTER and self._has_stopped:
            self._command_stop()

    def _stop(self) -> None:
        """Unbounded sources end; once, but for a JobMaster that replaces another one."""
        self._stop_at, self.is_stopping = float("inf"), True
        if not self._has_stopped:
            self._has_stopped = True
            self._tell("the sources stop")
            self._command_stop()

    def _command_stop(self) -> None:
        pipe = self._children[JOBMASTER].process.stdin
        assert pipe is not None
        with suppress(OSError):
            pipe.write(frame([STOP]))
            pipe.flush()

    def _look(self, until: float, listeners: Listeners) -> None:
        """Waits for the next thing that happens."""
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            child = self._children[key.data]
            data = os.read(key.fd, 1 << 16)
            child.silent = 0
            for value in child.frames.feed(data):
                self._on_report(key.data, value, listeners)
            if not data:
                self._selector.unregister(key.fileobj)
                if self._over is None:
                    self._died(key.data, child, listeners)
        while self._due and self._due[0][0] <= time.monotonic():
            _, kill = self._due.pop(0)
            kill.is_done = True
            self._tell(f"{kill.name} is killed")
            self._children[kill.name].process.kill()

    def _count_signs(self) -> None:
        """Ends a process that has stood still for too long; another one replaces it."""
        now, beat = time.monotonic(), self.settings.beat
        if now < self._beaten + beat:
            return
        self._beaten = now
        for child in self._children.values():
            child.silent += 1
            if child.silent == BEATS + 1:
                child.error = f"after {BEATS * beat:g} s without a sign of life"
                child.process.kill()

    def _tell(self, text: str) -> None:
        self._told(text)
        self._board.happened(time.monotonic() - self._began, text)
        self._show()

    def _sampled(self, name: str, sample: Any) -> None:
        if name == JOBMASTER:
            self._board.master(sample)
        elif name == RM:
            self._board.manager(sample)
        else:
            self._board.executor(name, sample)
        self._show()

    def _show(self) -> None:
        if self._watch is not None:
            self._watch(self._board.snapshot(time.monotonic() - self._began, self.settings.job.name))

    def _on_report(self, name: str, value: list[Any], listeners: Listeners) -> None:
        kind, *parts = value
        if kind == "problem":
            raise RuntimeFailure(parts[0])
        if kind == "failure":
            raise ProcessLost(parts[0])
        if kind == ALIVE:
            return
        if kind == DEFECTIVE:
            self._children[name].error = parts[0]
            return
        if kind == "over":
            self._end_job(parts)
            return
        if kind == SILENT:
            child = self._children[parts[0]]
            if child.incarnation == parts[1]:
                child.error = f"after {BEATS * self.settings.beat:g} s without an answer"
                child.process.kill()
            return
        if kind == "provide":
            if parts[0] in self._dismissed:
                self._start(parts[0], self._dismissed.pop(parts[0]), listeners)
            return
        if kind == "sample":
            self._sampled(name, parts[0])
            return
        event, attempt, about = parts
        self._decided = attempt
        if event == "started" and "started" not in self._seen:
            now = time.monotonic()
            if self.settings.stop_after is not None:
                self._stop_at = now + self.settings.stop_after
            self._due = sorted(
                ((now + k.seconds, k) for k in self.kills if k.seconds is not None), key=lambda due: due[0]
            )
        self._seen.append(event)
        if event not in ROUTINE:
            self._tell(f"attempt {attempt}: {event}{': ' if about else ''}{about}")

    def _end_job(self, over: list[Any]) -> None:
        """The job is over, and with it the run, unless another one of the session follows."""
        session, is_finished = self.settings.session, over[0]
        if session:
            job, released = session[self._job]
            self._results[job] = over[2]
            over[2] = self._results
            pipe = self._children[RM].process.stdin
            if is_finished and released and pipe is not None:
                with suppress(OSError):
                    pipe.write(frame([*released]))
                    pipe.flush()
        if not is_finished or self._job + 1 >= len(session):
            self._over = over
            return
        self._tell(f"job {session[self._job][0]} has finished")
        self._promoted |= over[5]
        self._job += 1
        self._ends_job = True

    def _died(self, name: str, child: _Child, listeners: Listeners) -> None:
        code = child.process.wait()
        self._close(child)
        self._board.lost(name)
        if code == DISMISSED:
            self._tell(f"{name} is released")
            self._dismissed[name] = child.incarnation + 1
            return
        if name == JOBMASTER and self._ends_job:
            self._ends_job = False
            self._first_attempt, self._decided = self._first_attempt + self._decided + 1, 0
            self._start(name, child.incarnation + 1, listeners)
            return
        how = child.ending()
        if not self._was_asked(name, child) and not any(
            kill.name == name and kill.is_done and kill.seconds is not None for kill in self.kills
        ):
            self._deaths[name] = self._deaths.get(name, 0) + 1
            if code or name != RM:  # the ResourceManager ends just before the job
                self._ended = f"{name} has ended: {how}"
        self._tell(f"{name} has ended: {how}")
        if code == BROKEN or self._deaths.get(name, 0) > DEATHS:
            raise ProcessLost(f"{name} has ended {self._deaths.get(name, 1)} times ({how}); see the messages above")
        if name == JOBMASTER:
            self._first_attempt, self._decided = self._first_attempt + self._decided + 1, 0
        self._start(name, child.incarnation + 1, listeners)

    def _was_asked(self, name: str, child: _Child) -> bool:
        """Whether a process that has ended was killed after a number of events; that kill has happened then."""
        mine = [kill for kill in self.kills if kill.name == name and kill.events is not None]
        if child.process.returncode != -signal.SIGKILL or child.incarnation >= len(mine):
            return False
        mine[child.incarnation].is_done = True
        return True

    def _close(self, child: _Child) -> None:
        for pipe in (child.process.stdin, child.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _end(self) -> None:
        """Ends all processes: at once, or, if the job is over, after a while in which they end by themselves."""
        end = time.monotonic() + (GRACE if self._over is not None else 0)
        for name, child in self._children.items():
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, end - time.monotonic()))
            if self._was_asked(name, child):  # the end of the job was read before that of the process
                self._tell(f"{name} has ended: killed by SIGKILL")
        for child in self._children.values():
            child.process.kill()
            child.process.wait()
            self._close(child)
        for file in self._files:
            file.close()
        self._selector.close()

    def _look_at_ends(self) -> None:
        """A process may have ended just before the job."""
        for key, _ in self._selector.select(0):
            for kind, *parts in self._children[key.data].frames.feed(os.read(key.fd, 1 << 16)):
                if kind == DEFECTIVE:
                    self._children[key.data].error = parts[0]
        for name, child in self._children.items():
            if child.process.poll() and not self._was_asked(name, child):
                self._ended = f"{name} has ended: {child.ending()}"

    def _outcome(self) -> ClusterOutcome:
        if self._over is None:
            reason = f"no end after {self.settings.seconds:g} s"
            return ClusterOutcome(False, reason, {}, self._seen.count("deployed"), 0, 0, 0, 0, unfinished=True)
        finished, errors, results, attempts, stopped, _ = self._over
        counts = [[0] * 4, *stopped.values()]
        lost, longest, feedback, memory = zip(*counts, strict=True)
        reason = "" if finished else errors[-1] if errors else "the job has failed"
        if reason:
            self._look_at_ends()
        if reason and self._ended:
            reason += f"; {self._ended}"
        attempts += self._first_attempt
        return ClusterOutcome(finished, reason, results, attempts, sum(lost), max(longest), max(feedback), max(memory))
