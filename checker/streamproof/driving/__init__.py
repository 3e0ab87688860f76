"""Driving implementations of a model through adapters: scripts, the driver, suites of scripts, contracts.

An adapter needs `Adapter`, `Refused`, `Unsupported`, `Happened` and `serve`. In tests: `assert_no_difference` runs an
implementation, `rule_based` makes a stateful Hypothesis machine of a model and an adapter.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamproof.driving.adapter import Adapter, Happened, Refused, Unsupported, serve

if TYPE_CHECKING:
    from streamproof.driving.testing import assert_no_difference, rule_based

_LATER = {"assert_no_difference": "streamproof.driving.testing", "rule_based": "streamproof.driving.testing"}
"""Names that are loaded when they are used: an adapter needs neither."""


def __getattr__(name: str) -> "Any":
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


__all__ = ["Adapter", "Happened", "Refused", "Unsupported", "assert_no_difference", "rule_based", "serve"]
