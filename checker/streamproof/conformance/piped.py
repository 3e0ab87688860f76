"""A log that is still being written, read from standard input: rejections as they happen, the whole verdict at its end.

What is read is kept in a file without a name, which takes the place of standard input: the verdict at the end is that of
`/dev/stdin` as any other file. Before the end

* an event log whose traces are written by one process each, in order, is followed event by event, and its verdicts need
  neither the file nor the events;
* any other log is judged as far as it is known, since the rules look at the whole log, or events that come later may have
  happened earlier: when no line came for a second, or 50 are new and no other is there to read. All these judgements
  together read at most `TIMES` times the lines of the log.

A rejection is final while the events of its trace come in the order of one process; otherwise later ones may explain it.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Final

from streamproof.base.errors import InputError, StreamproofError, UsageError
from streamproof.base.reading import LINE, Excess
from streamproof.conformance.binding import Span
from streamproof.conformance.event import Event
from streamproof.conformance.event_log import UNSAID, EventLog
from streamproof.conformance.event_table import json_value
from streamproof.conformance.events import begins_like_spans, events_in
from streamproof.conformance.flink.layouts import with_pattern
from streamproof.conformance.found_runs import (
    ALL,
    ValidationRequest,
    binding_for,
    found_runs,
    judge_readings,
    readings_under,
)
from streamproof.conformance.judging import undecided
from streamproof.conformance.overlapping import OverlapTracker
from streamproof.conformance.run_verdict import Followed, RunVerdict, Tracked

STANDARD_INPUT: Final = Path("/dev/stdin")
CHUNK = 1 << 16
HEAD = 1 << 20
"""Number of bytes without a line's end after which no first line is waited for."""
TIMES = 20
"""The lines that all judgements before the end read, by those of the log. When a log begins with many, it can be judged often
afterwards."""
SILENCE = 1.0
"""Seconds without a line after which the lines so far are judged, however few are new."""
_PACKED = (b"\x1f\x8b", b"PAR1")
FEW = 50
"""Number of new lines from which a log is judged between lines."""

OnVerdict = Callable[[RunVerdict, int], None]
"""Receives the verdict on a trace that is rejected, or no longer, and the number of lines after which it is known."""
LATER = "events came that had happened earlier, or in another process; the whole log decides"


class PipedLog:
    """Standard input, as a stream of lines, each of which is kept in a file before it is returned."""

    def __init__(self, source: int, kept: int, stopping: int, stop: int) -> None:
        """File descriptors: the input, the file of what was read, and both ends of a pipe that ends the reading."""
        self._source, self._kept, self._stopping, self._stop = source, kept, stopping, stop
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._is_open = True
        self._is_json = False
        self.number = 0
        """The number of lines read."""
        self.torn = False
        """Whether the input ended within a line of JSON, which is left out: its writer may have been stopped."""

    def stop(self) -> None:
        """Ends the input, from a signal handler."""
        os.write(self._stop, b".")

    def wait(self) -> None:
        """Waits for the first line, or for what there is of a long or only one."""
        while not self._lines and len(self._rest) < HEAD and self._more():
            pass
        self._is_json = bool(self._lines) and _is_json(self._lines[0])

    @property
    def start(self) -> bytes:
        """What was read and not returned, of the first line."""
        return self._lines[0] if self._lines else self._rest

    def waiting(self, seconds: float = 0.0) -> bool:
        """Whether nothing arrives within so many seconds."""
        if not self._is_open or self._lines:
            return False
        return not select.select([self._source, self._stopping], [], [], seconds)[0]

    def readline(self, size: int, /) -> bytes:
        """A line with its end, or its first `size` bytes; empty at the end of the input."""
        while not self._lines and len(self._rest) < size and self._more():
            pass
        if not self._lines and self._rest:
            self._keep(self._rest)
            self._lines.append(self._rest)
            self._rest = b""
        found = self._lines.popleft() if self._lines else b""
        if len(found) > size:
            self._lines.appendleft(found[size:])
        self.number += 0 < len(found) <= size
        return found[:size]

    def _more(self) -> bool:
        """Reads more; False at the end of the input, and after a signal."""
        if not self._is_open:
            return False
        ready = select.select([self._source, self._stopping], [], [])[0]
        part = b"" if self._stopping in ready else os.read(self._source, CHUNK)
        if not part:
            self._is_open = False
            self.torn = self._is_json and bool(self._rest.strip()) and not _is_json(self._rest)
            self._rest = b"" if self.torn else self._rest
            return False
        whole, end, rest = part.rpartition(b"\n")
        if not end:
            self._rest += rest
            return True
        lines, self._rest = self._rest + whole + end, rest
        self._keep(lines)
        self._lines.extend(BytesIO(lines))
        return True

    def _keep(self, part: bytes) -> None:
        left = memoryview(part)
        while left:
            left = left[os.write(self._kept, left) :]


def _is_json(line: bytes) -> bool:
    try:
        json_value(line)
    except (ValueError, RecursionError):
        return False
    return True


@contextmanager
def piped_log() -> Iterator[PipedLog]:
    """Standard input as a log. Inside, `STANDARD_INPUT` is the file of what was read.

    Raises `UsageError` for a terminal.
    """
    if os.isatty(0):
        raise UsageError(
            "standard input is a terminal", remedy="pipe a log: kubectl logs -f POD | streamproof validate -"
        )
    import tempfile  # which is slow to load

    source = os.dup(0)
    stopping, stop = os.pipe()
    try:
        with tempfile.TemporaryFile(buffering=0) as kept:
            os.dup2(kept.fileno(), 0)
            yield PipedLog(source, kept.fileno(), stopping, stop)
    finally:
        os.dup2(source, 0)
        for handle in (source, stopping, stop):
            os.close(handle)


def follow_piped(log: PipedLog, request: ValidationRequest, on_verdict: OnVerdict) -> list[RunVerdict] | None:
    """Reads a log to its end, which may be a signal (`PipedLog.stop`). Returns the verdicts if they are known without the
    whole log; None: its file has to be judged.

    Raises as `validate_paths` would for the lines so far, as far as it is certain of the whole log.
    """
    if request.model not in (None, ALL):
        binding_for(str(request.model))  # a name that is none is said at once
    with with_pattern(request.pattern):
        log.wait()
        so_far = _SoFar(log, request, on_verdict)
        found = None if log.start.startswith(_PACKED) else _event_log(request)
        if found is None:
            while log.readline(LINE):
                so_far.judge()
            return None
        live = LiveLog(*found)
        try:
            for event in events_in(log, STANDARD_INPUT):
                verdict = live.take(event)
                if verdict is not None:
                    so_far.report(verdict)
                if not live.is_whole:
                    so_far.judge()
        except Excess as error:
            raise InputError(f"{STANDARD_INPUT}: {error}", remedy="remove what is not an event") from None
        whole = request.events_dir is not None or request.covered
        return None if whole else live.verdicts()


def _event_log(request: ValidationRequest) -> tuple[str, EventLog] | None:
    """The model and the binding of an event log of lines, by its first one; None for other logs."""
    if request.model in (None, ALL) or request.job_graph is not None or begins_like_spans(STANDARD_INPUT):
        return None
    try:
        readings = [reading for run in readings_under(STANDARD_INPUT, request) for reading in run]
    except InputError:
        return None
    if len(readings) != 1 or type(readings[0].binding) is not EventLog:
        return None
    return readings[0].model, readings[0].binding


class _SoFar:
    """The judgements of a log before its end."""

    def __init__(self, log: PipedLog, request: ValidationRequest, on_verdict: OnVerdict) -> None:
        self._log, self._request, self._on_verdict = log, request, on_verdict
        self._judged = self._spent = 0
        self._rejected: set[tuple[str, str, str]] = set()

    def report(self, verdict: RunVerdict) -> None:
        """Reports a verdict if it is a rejection, or one was reported of its trace, but no second one."""
        about, is_new = (verdict.run, verdict.trace, verdict.model), verdict.answer == "rejected"
        if (about in self._rejected) != is_new:
            self._rejected ^= {about}
            self._on_verdict(verdict, self._log.number)

    def judge(self) -> None:
        """Judges the log so far, if enough of it is new and there is time."""
        number = self._log.number
        if self._spent + number > TIMES * number:
            return
        if not self._log.waiting(0.0 if number - self._judged >= FEW else SILENCE):
            return
        self._spent, self._judged = self._spent + number, number
        try:
            for run, readings in found_runs([STANDARD_INPUT], self._request):
                once = replace(self._request, events_dir=None, covered=False)
                for verdict in judge_readings(readings, once, again=run.again, alone=run.alone).verdicts:
                    self.report(verdict)
        except InputError:
            pass  # the lines that follow may show what the log is


class LiveLog:
    """Follows an event log event by event, as far as its rules need no later event."""

    def __init__(self, model: str, binding: EventLog) -> None:
        self._model, self._binding = model, binding
        self._known: dict[str, EventLog] = {}
        self._traces: dict[str, _LiveTrace] = {}
        self.is_whole = True
        """Whether all traces are followed; if not, the rules need the whole log."""

    def take(self, event: Event) -> RunVerdict | None:
        """Follows one more event; the verdict on its trace if it is rejected now, or no longer. Raises `InputError`."""
        trace = self._traces.get(event.trace)
        if trace is None:
            stated = None if event.parameters is None else event
            binding = self._binding.stated_in(stated, self._known)
            trace = self._traces[event.trace] = _LiveTrace(event, binding, self._model)
        verdict = trace.take(event)
        self.is_whole = self.is_whole and trace.is_followed
        return verdict

    def verdicts(self) -> list[RunVerdict] | None:
        """The verdicts on all traces, if they are known."""
        if not self.is_whole or not self._traces:
            return None
        return [trace.verdict() for trace in self._traces.values()]


class _LiveTrace:
    """Follows one trace, as long as its events come in the order of one process."""

    def __init__(self, first: Event, binding: EventLog, model: str) -> None:
        unit = binding.case(first.trace, {first.process: (first,)})
        (task,) = unit.tasks
        self._unit, self._binding, self._model, self._first = unit, binding, model, first
        self._tracker = OverlapTracker(replace(task, spans=([],), waits=()), steps=binding.steps)
        self._last: dict[str, int] = {}
        self._clock = self._read = 0
        self._unjudged = True
        self._refused: Tracked | None = None
        self.is_followed = not binding.assumed
        """Whether the verdict so far is that of `judge`."""

    def take(self, event: Event) -> RunVerdict | None:
        """Follows one more event; the verdict if it is rejected now, or no longer."""
        self._read += 1
        if not self.is_followed:
            return None
        self.is_followed = self._is_next(event)
        if not self.is_followed:
            open_again = replace(self.verdict(), answer="inconclusive", reason=LATER, rejection=None, rejected=())
            return open_again if self._refused is not None else None
        observation = self._binding.observation(event)
        self._unjudged = self._unjudged and not any(observation.alternatives)
        if self._refused is not None:
            return None
        try:
            refused = self._tracker.follow(Span(observation, self._read - 1, self._read - 1))
        except StreamproofError:
            self.is_followed = False
            return None
        if refused is None:
            return None
        if refused.rejection is None:
            self.is_followed = False
            return None
        self._refused = refused
        return self.verdict()

    def _is_next(self, event: Event) -> bool:
        """Whether an event happened after all before it, by the order of its process or of the file."""
        last = self._last.get(event.process, -1)
        self._last[event.process] = event.seq
        if event.seq <= last or event.parameters not in (None, self._first.parameters):
            return False
        if self._binding.ordered:
            return True
        count = event.clock.get(event.process, 0) if event.clock else self._clock + 1
        follows = count > self._clock and (event.after is None or event.after >= last)
        self._clock = count if event.clock else self._clock
        return follows and event.process == self._first.process

    def verdict(self) -> RunVerdict:
        """The verdict on the events so far."""
        tracked = self._refused or self._tracker.run()
        reason, rejection = "; ".join(self._unit.notes) or None, tracked.rejection
        found = replace(
            undecided("stdin", self._unit, self._model, "behaviour", self._read),
            matched=self._read if rejection is None else rejection.index,
            behaviours=1,
            followed=Followed.of(self._unit.tasks[0].system, tracked),
        )
        if rejection is not None:
            refused, reason = ((rejection.event, rejection.message),), rejection.message
            rejection = rejection.after(rejection.index, tracked.events)
            return replace(found, answer="rejected", reason=reason, rejection=rejection, rejected=refused)
        if self._unjudged:
            return replace(found, reason="; ".join(UNSAID))
        return replace(found, answer="accepted", reason=reason)
