"""Spark jobs for many runs, many logs, and many configurations.

Importing this package does not import Spark; its functions do, and report how to install it if it is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamproof.pipeline.report import ReportResult, build_report
    from streamproof.pipeline.session import LOCAL, spark_session
    from streamproof.pipeline.validate import validate_many

_LATER = {
    "LOCAL": "session",
    "ReportResult": "report",
    "build_report": "report",
    "spark_session": "session",
    "validate_many": "validate",
}


def __getattr__(name: str) -> Any:
    """Each name is loaded on first use: a process that explores points needs neither Arrow nor templates."""
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["LOCAL", "ReportResult", "build_report", "spark_session", "validate_many"]
