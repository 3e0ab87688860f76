"""Connections to adapters: a process that is written to and read from with a time limit, or an object of this process."""

from __future__ import annotations

import json
import marshal
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final, Protocol, TypeAlias

from streamproof.base.errors import UsageError, text_of
from streamproof.base.records import dataclass
from streamproof.driving.adapter import (
    FAILURES,
    Adapter,
    Refused,
    accepted,
    answers_plainly,
    direct_method,
    failed,
    plain,
)
from streamproof.driving.messages import AdapterFailure, Message, garbage, parsed, understood
from streamproof.driving.script import Asked
from streamproof.user_code import import_file, import_module

ANSWER_SECONDS = 10.0
"""Default time limit of one answer."""
START_SECONDS = 60.0
"""Least time limit of the first answer, for which an adapter has to start."""
LONGEST = 16 << 20
"""Largest number of bytes of a line of an adapter."""
KEPT = 4096
"""Number of bytes kept of what an adapter writes to standard error."""
LINES_SHOWN = 16
GRACE = 1.0
"""Seconds for an adapter to end after `quit`, before it is killed."""
MOST_KNOWN, LONGEST_KNOWN = 20_000, 4096
"""Largest number of answers of an object that are remembered, and of bytes of one."""
MOST_EVENTS = 100_000
"""Largest number of events before one answer."""
FORMS = (
    "a method returns None, values by variable as a dict, or a Happened, and raises Refused where nothing was done;\n"
    "  reset and observe return values by variable"
)
"""What the methods of an adapter return."""


Answered: TypeAlias = "tuple[Sequence[Message], Message]"
"""The events that an adapter wrote since its last answer, and the answer."""
NO_EVENTS: tuple[Message, ...] = ()
OBSERVE: Final[Mapping[str, Any]] = {"call": "observe"}


class Connection(Protocol):
    """An adapter that answers calls."""

    equal_answers_are_one: bool = False
    """Whether equal answers, without events, are the same object, so that what was concluded from one holds of it again."""

    def call(self, call: Mapping[str, Any]) -> Answered:
        """The answer to a call. Raises `AdapterFailure`."""

    def do(self, asked: Asked) -> Answered:
        """The answer to a call of a script. Raises `AdapterFailure`."""
        return self.call(asked.call())

    def observe(self) -> Answered:
        """The values of the state. Raises `AdapterFailure`."""
        return self.call(OBSERVE)

    def close(self) -> None:
        """Ends the adapter."""


class ProcessConnection(Connection):
    """An adapter in a process of its own, which ends with its children when the connection is closed."""

    def __init__(self, command: str, seconds: float = ANSWER_SECONDS) -> None:
        self.command, self.seconds = command, seconds
        self._number, self._rest, self._said = 0, bytearray(), b""
        try:
            words = shlex.split(command)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            self._process = subprocess.Popen(words, start_new_session=True, bufsize=0, **pipes)  # type: ignore[call-overload]
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or text_of(error) or "it is empty"
            raise AdapterFailure("start", f"the adapter {command!r} cannot be started: {why}") from None
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            os.set_blocking(stream.fileno(), False)
        self._in, self._out, self._err = (
            self._process.stdin.fileno(), self._process.stdout.fileno(), self._process.stderr.fileno()
        )  # fmt: skip
        self._poll = select.poll()
        for handle in (self._out, self._err):
            self._poll.register(handle, select.POLLIN)

    def call(self, call: Mapping[str, Any]) -> Answered:
        """As `Connection`."""
        self._number += 1
        what = _shown(call)
        end = time.monotonic() + (self.seconds if self._number > 1 else max(self.seconds, START_SECONDS))
        self._write(json.dumps({"id": self._number, **call}).encode() + b"\n", end, what)
        events: list[Message] = []
        while True:
            number, message = parsed(self._line(end, what))
            if number is None:
                events.append(message)
                if len(events) > MOST_EVENTS:
                    raise AdapterFailure("garbage", f"the adapter wrote more than {MOST_EVENTS:,} events and no answer")
            elif number != self._number:
                text, why = json.dumps({"id": number, **message.fields}), f"answers the call {number}, and the call is"
                raise garbage(
                    text, f"{why} {self._number}", "answer each call once, with its id, before the next one is read"
                )
            elif call["call"] == "reset":
                return [], message  # what was written before is of the execution that has ended
            else:
                return events, message

    def close(self) -> None:
        """Ends the adapter: by `quit`, and by a signal if it does not end."""
        process = self._process
        with suppress(OSError):
            os.write(self._in, json.dumps({"id": self._number + 1, "call": "quit"}).encode() + b"\n")
        process.stdin.close()
        end = time.monotonic() + GRACE
        while process.poll() is None and time.monotonic() < end:
            self._listen(0.02)
        self._kill()
        process.stdout.close()
        process.stderr.close()

    def _kill(self) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _write(self, data: bytes, end: float, what: str) -> None:
        while data:
            try:
                data = data[os.write(self._in, data) :]
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise self._hang(what) from None
                self._listen(0.01)
            except OSError:
                raise self._ended(what) from None

    def _line(self, end: float, what: str) -> bytes:
        """The next line. What comes late is read until the time is over."""
        at = 0
        while True:
            found = self._rest.find(b"\n", at)
            if found >= 0:
                line = bytes(self._rest[:found])
                del self._rest[: found + 1]
                return line
            at = len(self._rest)
            if at > LONGEST:
                raise AdapterFailure("garbage", f"a line of the adapter has more than {LONGEST:,} bytes")
            left = end - time.monotonic()
            if left <= 0:
                raise self._hang(what)
            if not self._listen(left):
                if self._rest:
                    raise garbage(bytes(self._rest), "has no end")
                raise self._ended(what)

    def _listen(self, seconds: float) -> bool:
        """Reads what there is, after at most `seconds`; False if the standard output is closed."""
        open_ = True
        for handle, _ in self._poll.poll(seconds * 1000):
            try:
                data = os.read(handle, 1 << 16)
            except BlockingIOError:
                continue
            if not data:
                self._poll.unregister(handle)
                open_ = open_ and handle != self._out
            elif handle == self._out:
                self._rest += data
            else:
                self._said = (self._said + data)[-KEPT:]
        return open_

    def _ended(self, what: str) -> AdapterFailure:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._listen(0)
        code = self._process.returncode
        how = "closed its standard output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by the signal {signal.Signals(-code).name}"
        return AdapterFailure("crash", f"the adapter {how} during {what}", self.said())

    def _hang(self, what: str) -> AdapterFailure:
        if self._process.poll():  # it failed, and a child of it still has its standard output
            return self._ended(what)
        remedy = "\n  ".join(filter(None, ("raise --answer-seconds if it needs more time", self.said())))
        return AdapterFailure("hang", f"the adapter did not answer {what} in {self.seconds:g} s", remedy)

    def said(self) -> str:
        """The last lines of its standard error."""
        lines = self._said.decode(errors="replace").splitlines()[-LINES_SHOWN:]
        return "\n  ".join(["its last lines on standard error:", *(f"  {line}" for line in lines)] if lines else [])


class ObjectConnection(Connection):
    """An adapter in this process. Its methods are called directly, unless it has an `answer` or a `do` of its own."""

    equal_answers_are_one = True

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._answers: dict[bytes, Answered] = {}
        """What is answered, by the content of the answer, which is known of values of Python's own types."""
        self._states: dict[bytes, Answered] = {}
        """The same by the content of observed values."""
        self._refusals: dict[str, Answered] = {}
        """The same by the reason of a refusal."""
        self._methods: dict[str, str] = {}
        """The names of the methods of actions; of one that cannot be called directly, no name."""
        self._is_plain = False
        """Whether the adapter answers as `Adapter` does, as far as it is known."""
        self._accepted = self._understood({"accepted": True}, {})

    def call(self, call: Mapping[str, Any]) -> Answered:
        """As `Connection`; there is no time limit, except that of the program."""
        answered = self._answered(self.adapter.answer(call), call)
        if call["call"] == "reset":  # where an adapter may have replaced its methods
            self._is_plain = answers_plainly(self.adapter)
            self._methods.clear()
        return answered

    def do(self, asked: Asked) -> Answered:
        """As `Connection`."""
        adapter, name = self.adapter, self._methods.get(asked.action)
        if name is None:
            name = direct_method(adapter, asked.action) if self._is_plain else ""
            self._methods[asked.action] = name
        method = getattr(adapter, name, None) if name else None
        if method is None:
            return self.call(asked.call())
        try:
            adapter.picks = deepcopy(asked.picks) if asked.picks else {}
            done = method(**(deepcopy(asked.args) if asked.nested else asked.args))
        except Refused as refused:
            found = self._refusals.get(text := str(refused))
            if found is None or adapter.events:
                found = self._answered(failed(refused), asked)
                if found[0] is NO_EVENTS:
                    _keep(self._refusals, text, found)
            return found
        except FAILURES as error:
            return self._answered(failed(error), asked)
        return self._accepted if done is None and not adapter.events else self._answered(accepted(done), asked)

    def observe(self) -> Answered:
        """As `Connection`."""
        if not self._is_plain:
            return self.call(OBSERVE)
        adapter = self.adapter
        try:
            state: Any = adapter.observe(None)
        except FAILURES as error:
            return self._answered(failed(error), OBSERVE)
        try:
            content = marshal.dumps(state, 2)  # as `_content`
        except ValueError:
            content = b""
        found = self._states.get(content)
        if found is None or adapter.events:
            found = self._answered({"state": state}, OBSERVE)
            if found[0] is NO_EVENTS:
                _keep(self._states, content, found)
        return found

    def close(self) -> None:
        """Ends the implementation."""
        self.adapter.close()

    def _answered(self, answer: Mapping[str, Any], call: Mapping[str, Any] | Asked) -> Answered:
        """The answer with the events before it; those of a reset begin what follows it."""
        is_reset = isinstance(call, dict) and call["call"] == "reset"
        events = self.adapter.taken() if self.adapter.events and not is_reset else ()
        content = _content(answer)
        found = self._answers.get(content)
        if found is None:
            found = self._understood(answer, call)
            _keep(self._answers, content, found)
        return ([self._message(event, call) for event in events], found[1]) if events else found

    def _understood(self, answer: Mapping[str, Any], call: Mapping[str, Any] | Asked) -> Answered:
        return NO_EVENTS, self._message({"id": 1, **answer}, call)

    def _message(self, fields: Mapping[str, Any], call: Mapping[str, Any] | Asked) -> Message:
        try:
            data = plain(fields)
            json.dumps(data)  # as a process would have written it
            return understood(data)[1]
        except (RecursionError, ValueError) as error:
            why = "is nested too deeply" if isinstance(error, RecursionError) else f"is no JSON: {error}"
            raise AdapterFailure("garbage", f"the answer of the adapter to {_shown(call)} {why}", FORMS) from None
        except AdapterFailure as failure:
            text = failure.message.replace("a line of the adapter", f"the answer of the adapter to {_shown(call)}", 1)
            raise AdapterFailure(failure.kind, text, FORMS) from None


def _content(value: Any) -> bytes:
    """What equal values of Python's own types have in common, and other values do not; of others, nothing."""
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return b""


def _keep(known: dict[Any, Answered], content: bytes | str, answered: Answered) -> None:
    """Remembers what is answered, if its content is known and not too long."""
    if 0 < len(content) <= LONGEST_KNOWN:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[content] = answered


def _shown(call: Mapping[str, Any] | Asked) -> str:
    if isinstance(call, Asked):
        return f"do {call}"
    if call["call"] != "do":
        return str(call["call"])
    args = ", ".join(f"{name}={value}" for name, value in call["args"].items())
    return f"do {call['action']}({args})"


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """Where an adapter comes from: a command line, or a function that makes an `Adapter`. `text` names it."""

    text: str
    connect: Callable[[], Connection]


def adapter_source(text: str, seconds: float = ANSWER_SECONDS) -> AdapterSource:
    """The adapter named by ``module:Class``, ``file.py:Class``, or a command line. Raises `UsageError`."""
    place, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or any(c.isspace() for c in place):
        return AdapterSource(text, lambda: ProcessConnection(text, seconds))
    from pathlib import Path

    module = import_file(Path(place)) if place.endswith(".py") else import_module(place)
    cls = getattr(module, name, None)
    if cls is None:
        raise UsageError(f"{place} has no {name}", remedy="name the class of the adapter, or a command line")
    return of_class(cls, text)


def of_class(cls: Callable[[], Any], text: str = "") -> AdapterSource:
    """The adapter of a class, or of a function that makes one. Raises `UsageError` if it makes something else."""

    def connect() -> Connection:
        try:
            made = cls()
        except TypeError as error:
            remedy = "give a class whose constructor needs no arguments"
            raise UsageError(f"no adapter can be made of {text or cls!r}: {error}", remedy=remedy) from None
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise AdapterFailure("start", f"the adapter {text or cls!r} cannot be made: {why}") from error
        if not callable(getattr(made, "answer", None)):
            raise UsageError(
                f"{text or cls!r} makes a {type(made).__name__}, not an adapter",
                remedy="derive it from streamproof.driving.Adapter",
            )
        return ObjectConnection(made)

    return AdapterSource(text or getattr(cls, "__name__", repr(cls)), connect)
