"""The limit of recursion, which all threads share: raised while a block needs it, and then as before."""

from __future__ import annotations

import sys
from threading import Event, Thread

from streamproof.base.options import deep_stack


def test_the_last_of_two_threads_restores_the_limit() -> None:
    """The block that began first ends first; the other one still has its frames."""
    before = sys.getrecursionlimit()
    inside, leave = Event(), Event()
    later: list[int] = []

    def other() -> None:
        with deep_stack(before + 200):
            inside.set()
            leave.wait()
            later.append(sys.getrecursionlimit())

    thread = Thread(target=other)
    with deep_stack(before + 100):
        thread.start()
        inside.wait()
    leave.set()
    thread.join()
    assert later == [before + 200]
    assert sys.getrecursionlimit() == before


def test_a_block_never_lowers_the_limit() -> None:
    """A host that permits more keeps it; an exception restores it, too."""
    before = sys.getrecursionlimit()
    try:
        with deep_stack(1):
            assert sys.getrecursionlimit() == before
            with deep_stack(before + 50):
                raise KeyError
    except KeyError:
        pass
    assert sys.getrecursionlimit() == before
