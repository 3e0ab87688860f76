"""The runtime for a command line: plain values in, plain values out. Errors that a user can correct are `Problem`."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof_runtime.api import Job
from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.event_log import lines
from streamproof_runtime.faults import MOST, Fault
from streamproof_runtime.graph import ExecutionGraph
from streamproof_runtime.shrink import shrink
from streamproof_runtime.simulation import Outcome, Simulation
from streamproof_runtime.tape import STREAMS
from streamproof_runtime.variants import SOUND, VARIANTS

Problem = RuntimeFailure
SCRIPT = "streamproof.run-script/1"
"""The schema of a script: the faults and choices of a run."""
LEVELS = tuple(MOST)
"""Levels of faults."""
LIMIT = 500_000
"""Largest number of steps of a run."""


class JobFile:
    """A Python file with `job()`, and, if results are to be checked, `expected()` and `TOLERANCE`."""

    def __init__(self, path: Path) -> None:
        """Raises `RuntimeFailure` for a file that cannot be run, or has no job."""
        spec = importlib.util.spec_from_file_location(f"streamproof_job_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise Problem(f"{path} is not a Python file")
        self.path, self.module = path, importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = self.module
        try:
            spec.loader.exec_module(self.module)
        except Exception as error:
            raise Problem(f"{path}: {type(error).__name__}: {error}") from error
        if not callable(getattr(self.module, "job", None)):
            raise Problem(f"{path} has no function job()")

    def job(self) -> Job:
        """The job; raises `RuntimeFailure` if the function returns something else."""
        job = self._call("job")
        if not isinstance(job, Job):
            raise Problem(f"{self.path}: job() returns {type(job).__name__}, not a Job")
        return job

    def wrong(self, results: Mapping[str, Any]) -> str:
        """How results differ from the expected ones; empty if they do not, or nothing is expected."""
        if not self.is_checked:
            return ""
        tolerance = getattr(self.module, "TOLERANCE", 0)
        expected = self._call("expected")
        return next(_differences(results, expected, tolerance, "result"), "")

    @property
    def is_checked(self) -> bool:
        """Whether the file says what is expected."""
        return callable(getattr(self.module, "expected", None))

    def _call(self, name: str) -> Any:
        try:
            return getattr(self.module, name)()
        except RuntimeFailure:
            raise
        except Exception as error:
            raise Problem(f"{self.path}: {name}(): {type(error).__name__}: {error}") from error


def _differences(found: Any, expected: Any, tolerance: float, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in [*expected, *(k for k in found if k not in expected)]:
            if key not in found or key not in expected:
                yield f"{place}[{key!r}] is {'missing' if key not in found else 'not expected'}"
            else:
                yield from _differences(found[key], expected[key], tolerance, f"{place}[{key!r}]")
    elif isinstance(expected, float) and isinstance(found, int | float):
        if abs(found - expected) > tolerance:
            yield f"{place} is {found:g}, not {expected:g} within {tolerance:g}"
    elif found != expected:
        yield f"{place} is {found!r}, not {expected!r}"


class Simulated:
    """Simulated runs of one job file."""

    def __init__(self, path: Path, *, level: str, variant: str | None, executors: int, slots: int) -> None:
        """Raises `RuntimeFailure` for an unknown variant, and as `JobFile`."""
        if variant is not None and variant not in VARIANTS:
            raise Problem(f"no variant {variant!r}; there are {', '.join(VARIANTS)}")
        self.file, self._level = JobFile(path), level
        self._more: dict[str, Any] = {
            "executors": executors,
            "slots": slots,
            "subtask_type": VARIANTS[variant] if variant else SOUND,
        }
        most = max(o.parallelism for o in ExecutionGraph(self.file.job()).job.operators.values())
        if most > executors * slots:
            raise Problem(f"the job needs {most} slots; there are {executors * slots}")

    def seed(self, seed: int) -> dict[str, Any]:
        """The run of a seed."""
        return {"seed": seed, **self._run(seed=seed, level=self._level)}

    def script(self, path: Path) -> dict[str, Any]:
        """The run of a script; raises `RuntimeFailure` for a file that is none."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["schema"] != SCRIPT:
                raise ValueError(f"its schema is {record['schema']!r}")
            faults = [Fault.of(fault) for fault in record["faults"]]
            choices = {s: [int(c) for c in record["choices"].get(s, ())] for s in STREAMS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Problem(f"{path} is not a script of a run: {error}") from error
        known = {f"tm-{i}" for i in range(1, self._more["executors"] + 1)} | {"jobmaster"}
        for node in (node for fault in faults for node in fault.nodes):
            if node not in known:
                raise Problem(f"{path}: there is no process {node!r}")
        return {"script": str(path), **self._run(script=choices, faults_given=faults)}

    def shrunk(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """The smallest failing script found for a failing run, as a run."""
        faults = [Fault.of(fault) for fault in run["faults"]]

        def fails(choices: dict[str, list[int]], script: Sequence[Fault]) -> bool:
            return bool(self._run(script=choices, faults_given=script)["wrong"])

        found = shrink(run["choices"], faults, fails)
        again = self._run(script=found.choices, faults_given=found.faults)
        return {
            "seed": run.get("seed"),
            "runs": found.runs,
            "deviations": found.deviations,
            **again,
            "choices": found.choices,
        }

    def _run(self, **more: Any) -> dict[str, Any]:
        outcome = Simulation(self.file.job(), **self._more, **more).run(LIMIT)
        return {
            "wrong": self._wrong(outcome),
            "stuck": not outcome.finished and not outcome.errors,
            "checked": self.file.is_checked,
            "attempts": outcome.attempts,
            "steps": outcome.steps,
            "events": len(outcome.entries),
            "virtual_ns": outcome.time,
            "digest": outcome.digest,
            "faults": [fault.record() for fault in outcome.faults],
            "fault_texts": [str(fault) for fault in outcome.faults if fault.at <= outcome.time],
            "choices": outcome.choices,
            "lines": lambda: lines(outcome.entries),
        }

    def _wrong(self, outcome: Outcome) -> str:
        if not outcome.finished:
            return outcome.reason
        if outcome.lost:
            some = "1 record" if outcome.lost == 1 else f"{outcome.lost} records"
            return f"{some} arrived at subtasks that had terminated"
        return self.file.wrong(outcome.results)


def script_text(run: Mapping[str, Any]) -> str:
    """The file of a script that repeats a run."""
    record = {"schema": SCRIPT, "faults": run["faults"], "choices": run["choices"]}
    return json.dumps(record) + "\n"
