"""Work that a time limit breaks off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamproof.interrupts import TimeUp, busy, doing, limit
from streamproof.interrupts import answer as answer_of
from streamproof.system.errors import OutOfTime

__all__ = ["answer_of", "timely"]


@contextmanager
def timely(what: str, *, silent: bool = False) -> Iterator[None]:
    """Raises `OutOfTime` when the time limit of the command is met in the block; `what` says what it does.

    Unless `silent`, people are told when it takes long.

    Within another such block, or one of `doing`, it is part of that one.
    """
    if busy():
        yield
        return
    try:
        with doing(what, silent=silent):
            yield
    except TimeUp:
        raise OutOfTime(
            f"time limit of {limit():g} s reached while {what}", remedy="nothing was decided; raise the limit"
        ) from None
