"""The actions of a machine by their arguments and choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof import System
from streamproof.conformance import Instance


class Instances:
    """The instances of all actions of a small machine; those of choices, too."""

    def __init__(self, system: System) -> None:
        self._found: dict[tuple[str, frozenset[tuple[str, Any]]], tuple[Instance, ...]] = {}
        for action in system.actions:
            for instance in action.instances:
                key = action.name, frozenset((*instance.args, *instance.picks))
                self._found[key] = (*self._found.get(key, ()), instance)

    def __call__(self, action: str, args: Mapping[str, Any], /) -> tuple[Instance, ...]:
        """The instances of a move."""
        return self._found.get((action, frozenset(args.items())), ())
