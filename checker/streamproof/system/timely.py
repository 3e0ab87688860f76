"""Time limits on blocks of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamproof.interrupts import TimeUp, busy, doing, limit
from streamproof.interrupts import answer as answer_of
from streamproof.system.errors import OutOfTime

__all__ = ["answer_of", "timely"]


@contextmanager
def timely(what: str, *, silent: bool = False) -> Iterator[None]:
    """Raises `OutOfTime` when the command's time limit is reached in the block; `what` describes the work.

    Unless `silent`, a long block is reported to the user. A block nested in another one, or in one of `doing`, is part
    of that one.
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
