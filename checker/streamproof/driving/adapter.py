"""An adapter in Python: what an implementation is driven through. It needs the standard library only.

Write a class with a method for each action, named as the action::

    class LeaseAdapter(Adapter):
        own = ("expire",)                      # actions that the implementation takes by its own decision

        def reset(self, parameters, seed):
            self.leases = Leases()

        def grant(self, client):
            if not self.leases.acquire(client):
                raise Refused("the lease is taken")

        def observe(self, of):
            return {"stored": self.leases.stored}

`streamproof drive MODEL --adapter file.py:LeaseAdapter` calls it in its own process; ``serve(LeaseAdapter)`` makes it a
program for ``--adapter "python file.py"``. The messages are described in ``docs/how-to-drive.md``.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

PROTOCOL = "streamproof.drive/1"
State = Mapping[str, Any]


class Refused(Exception):
    """The implementation does not do the action now, and nothing has changed."""


class Unsupported(Exception):
    """The adapter cannot make this call here, and nothing has changed."""


class Happened:
    """What happened in place of the call: another `event`, other `args`, known `picks`; all may be left out."""

    def __init__(
        self,
        event: str | None = None,
        args: State | None = None,
        *,
        picks: State | None = None,
        state: State | None = None,
        process: str | None = None,
    ) -> None:
        self.fields = {"event": event, "args": args, "picks": picks, "state": state, "process": process}


class Adapter:
    """Base of adapters. A method with an action's name does it, with the action's parameters as keywords.

    It returns None, values after it by variable of the model, or a `Happened`; or raises `Refused` or `Unsupported`. Any
    other exception is a failure of the implementation.
    """

    own: tuple[str, ...] = ()
    """Actions that the implementation takes by its own decision: it may refuse one that is possible."""
    hidden: tuple[str, ...] = ()
    """Actions that the implementation takes and the adapter does not report."""
    unsupported: tuple[str, ...] = ()
    """Actions that cannot happen here; they are never asked for."""
    picks: Mapping[str, Any] = {}
    """The choices that the driver proposes for the current call."""

    events: list[dict[str, Any]]
    """Events that were not written yet."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Classes of adapters need not call a constructor of this one."""
        made = super().__new__(cls)
        made.events = []
        return made

    def reset(self, parameters: Mapping[str, Any], seed: int) -> State | None:
        """Begin again in an initial state of the model. Values of it may be returned."""
        raise Unsupported("an adapter needs reset(self, parameters, seed)")

    def do(self, action: str, args: Mapping[str, Any]) -> State | Happened | None:
        """Do an action; by default by the method of its name, in which dots and brackets are underscores."""
        name = _name(action)
        method: Callable[..., Any] | None = None if name in _OWN else getattr(self, name, None)
        if method is None:
            taken = " of its own: every adapter has one; override do" if name in _OWN else ""
            raise Unsupported(f"the adapter has no method {name}{taken}")
        result: State | Happened | None = method(**args)
        return result

    def observe(self, of: list[str] | None) -> State:
        """Values by variable of the model, any part; `of` are the variables wanted, None: all."""
        return {}

    def close(self) -> None:
        """Ends the implementation."""

    def event(
        self, event: str, args: State | None = None, *, state: State | None = None, process: str | None = None
    ) -> None:
        """Reports an action that happened without being asked for, or in addition to it. In `reset`: after it."""
        fields = {"event": event, "args": args, "state": state, "process": process}
        self.events.append({name: value for name, value in fields.items() if value is not None})

    def taken(self) -> list[dict[str, Any]]:
        """The events that were not written yet, which are removed; other threads may add some meanwhile."""
        return [self.events.pop(0) for _ in range(len(self.events))] if self.events else []

    def answer(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call, without its number."""
        try:
            match call["call"]:
                case "reset":
                    self.taken()  # events of what ends now
                    state = self.reset(call["parameters"], call["seed"])
                    lists = {name: [*getattr(self, name)] for name in ("own", "hidden", "unsupported")}
                    found = {name: names for name, names in lists.items() if names}
                    return {"ready": True, **found, **({} if state is None else {"state": state})}
                case "do":
                    self.picks = call.get("picks") or {}
                    return accepted(self.do(call["action"], call["args"]))
                case _:
                    return {"state": self.observe(call.get("of"))}
        except FAILURES as error:
            return failed(error)


FAILURES = (Exception, SystemExit, GeneratorExit)
"""What is raised instead of an answer."""


def accepted(done: State | Happened | None) -> dict[str, Any]:
    """The answer of a method that returned this."""
    fields = done.fields if isinstance(done, Happened) else {"state": done}
    return {"accepted": True, **{name: value for name, value in fields.items() if value is not None}}


def failed(error: BaseException) -> dict[str, Any]:
    """The answer of a method that raised this."""
    if isinstance(error, Refused):
        return {"accepted": False, "because": str(error)}
    if isinstance(error, Unsupported):
        return {"unsupported": str(error)}
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if len(frames) > 1 else ""
    with suppress(Exception):
        return {"error": f"{type(error).__name__}: {error}".removesuffix(": ") + place}
    return {"error": type(error).__name__ + place}


def answers_plainly(adapter: object) -> bool:
    """Whether an adapter has the `answer` of `Adapter`, so that its methods may be called without it."""
    return getattr(type(adapter), "answer", None) is Adapter.answer and "answer" not in vars(adapter)


def direct_method(adapter: Adapter, action: str) -> str:
    """The name of the method that `Adapter.do` calls for an action; empty if there is none, or another `do`."""
    name = _name(action)
    return name if type(adapter).do is Adapter.do and "do" not in vars(adapter) and name not in _OWN else ""


def _name(action: str) -> str:
    return action.replace("[", "_").replace("]", "").replace(".", "_")


_OWN = {name for name in (*vars(Adapter), *Adapter.__annotations__) if not name.startswith("__")}
"""Names that are not those of actions."""


def plain(value: Any) -> Any:
    """The value as JSON has it: lists for tuples and sets, text as keys. Other objects become text, which no variable has."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else _key(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=repr)
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else value if isinstance(value, float) else repr(value)


def _key(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def serve(adapter: Callable[[], Adapter]) -> None:
    """Answers the calls of standard input on standard output until `quit` or the end of input.

    What the implementation prints goes to standard error.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    made = adapter()
    try:
        for line in sys.stdin:
            call = json.loads(line)
            if call["call"] == "quit":
                return
            answer = {"id": call["id"], **made.answer(call)}
            every = (answer, *made.taken()) if call["call"] == "reset" else (*made.taken(), answer)
            out.write("".join(json.dumps(plain(each)) + "\n" for each in every))
            out.flush()
    finally:
        made.close()
