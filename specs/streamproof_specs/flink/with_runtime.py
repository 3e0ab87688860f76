"""Bindings of Flink's logs that read the event logs of the reference runtime, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamproof.conformance import InputError
from streamproof_specs.failover import runtime
from streamproof_specs.flink.scope import FlinkLogs


class FlinkOrRuntimeLogs(FlinkLogs):
    """A binding of the logs of Flink's processes, and of those of the runtime's."""

    def runs(self, path: Path) -> list[Any]:
        """The runs of Flink, or of the runtime, under a path."""
        return runtime.runs(path) if runtime.is_runtime(path) else super().runs(path)

    def recognises(self, path: Path) -> bool:
        """Whether there are logs of Flink, or of the runtime, under a path."""
        return self.reads(path) or super().recognises(path)

    def reads(self, path: Path) -> bool:
        """Whether there is a log of the runtime that has what the binding follows: by default any."""
        return runtime.is_runtime(path)

    def is_of_runtime(self, run: Any, job_graph: Path | None) -> bool:
        """Whether a run is one of the runtime. Raises `InputError` for a job graph that is given beside it."""
        if not isinstance(run, Path) or not runtime.is_runtime(run):
            return False
        if job_graph is not None:
            raise InputError(f"{job_graph}: the log has the job graph", remedy="leave out --job-graph")
        return True
