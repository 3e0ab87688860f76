"""The binding of recorded credit-based flow control to the machine of one channel, for both ends of every channel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamproof.conformance import Binding, InputError, LogForm, Plan
from streamproof.conformance.flink import find_runs
from streamproof_specs.credit_channel.flink.records import TraceRun, is_outline, trace_runs


class FlinkCreditChannel(Binding):
    """Follows every recorded channel of a run through the machine of one channel."""

    @property
    def form(self) -> LogForm:
        """The records of the agent."""
        from streamproof_specs.credit_channel.flink.form import FORM  # as for `plan`

        return FORM

    def runs(self, path: Path) -> list[Any]:
        """The runs under a path; a run with logs only is included. Raises `InputError` if there is none."""
        found = trace_runs(path, is_outline)
        return list(found or [TraceRun(r.name, r.folder, ()) for r in find_runs(path)])

    def recognises(self, path: Path) -> bool:
        """Whether there are records under a path for this binding."""
        return bool(trace_runs(path, is_outline))

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case per channel. Raises `InputError` for a job graph, which has no information about channels."""
        if job_graph is not None:
            raise InputError(f"{job_graph}: a job graph says nothing about channels", remedy="leave out --job-graph")
        from streamproof_specs.credit_channel.flink.following import plan  # most runs have no records

        return plan(run)


BINDING = FlinkCreditChannel()
