"""The time limit of a block, wherever in it the signal arrives."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from streamproof import interrupts


class Endless:
    """An argument of a C function whose conversion never ends."""

    @classmethod
    def from_param(cls, _: Any) -> Any:
        """Convert it."""
        while True:
            pass


def test_a_limit_ends_the_conversion_of_an_argument() -> None:
    """ctypes wraps whatever is raised there in an exception of its own, which would pass for a defect."""
    function = ctypes.CFUNCTYPE(ctypes.c_int)(("Py_IsInitialized", ctypes.pythonapi))
    function.argtypes = [Endless]
    with pytest.raises(interrupts.TimeUp), interrupts.limited(0.05), interrupts.doing("converting"):
        function(0)


def test_an_object_that_an_interrupt_left_half_built_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its destructor misses attributes; before any interrupt that is said."""

    class Half:
        def __del__(self) -> None:
            del self.owner  # type: ignore[attr-defined]

    received: list[Any] = []
    monkeypatch.setattr(interrupts._run, "broken", False)
    monkeypatch.setattr("sys.unraisablehook", interrupts._dropped)
    monkeypatch.setattr(interrupts._run, "hook", lambda what: received.append(str(what.exc_value)))
    Half()
    assert len(received) == 1
    monkeypatch.setattr(interrupts._run, "broken", True)
    Half()
    assert len(received) == 1
