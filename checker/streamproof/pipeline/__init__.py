"""Spark jobs over what is wide: many runs, many logs, many configurations.

Importing this package does not import Spark; the functions do, and say what to install when it is missing.
"""

from __future__ import annotations

from streamproof.pipeline.report import ReportResult, build_report
from streamproof.pipeline.session import LOCAL, spark_session
from streamproof.pipeline.validate import validate_many

__all__ = ["LOCAL", "ReportResult", "build_report", "spark_session", "validate_many"]
