"""The file of a job: `job()`, and what its results should be."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.functions import MODULE, place_of
from streamproof_runtime.jobs.sessions import expect_session


class JobFile:
    """A Python file with `job()`, and, if results are to be checked, `expected()` and `TOLERANCE`."""

    def __init__(self, path: Path) -> None:
        """Raises `RuntimeFailure` for a file that cannot be run, or has no job."""
        spec = importlib.util.spec_from_file_location(f"{MODULE}{path.stem}", path)
        if spec is None or spec.loader is None:
            raise RuntimeFailure(f"{path} is not a Python file")
        self.path, self.module = path, importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = self.module
        try:
            spec.loader.exec_module(self.module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise RuntimeFailure(f"{path}{_line(error)}: {type(error).__name__}: {error}") from error
        if not callable(getattr(self.module, "job", None)):
            raise RuntimeFailure(f"{path} has no function job()")

    def jobs(self) -> list[Job]:
        """The job, or those of a session, a list, in their order. Raises `RuntimeFailure` if the function returns something
        else."""
        found = self._call("job")
        jobs = [found] if isinstance(found, Job) else found
        if not (isinstance(jobs, list) and jobs and all(isinstance(job, Job) for job in jobs)):
            raise RuntimeFailure(f"{self.path}: job() returns {type(found).__name__}, neither a Job nor a list of jobs")
        try:
            expect_session(jobs)
        except RuntimeFailure as error:
            raise RuntimeFailure(f"{self.path}: {error}") from error
        return jobs

    def job(self) -> Job:
        """The job, or the first one of a session. Raises as `jobs`."""
        return self.jobs()[0]

    def wrong(self, results: Mapping[str, Any]) -> str:
        """How results differ from the expected ones; empty if they do not, or nothing is expected. The order of a list
        counts unless it depends on the run (`Job.keeps_order`). Of a session, both have those of each job by name."""
        if not self.is_checked:
            return ""
        tolerance = getattr(self.module, "TOLERANCE", 0)
        expected = self._call("expected")
        jobs = self.jobs() if isinstance(self._call("job"), list) else []
        if len(jobs) > 1 and isinstance(expected, Mapping):
            pairs = ((job, results.get(job.name), expected.get(job.name)) for job in jobs)
            ordered: Any = {job.name: _ordered(lambda job=job: job, *pair) for job, *pair in pairs}  # type: ignore[misc]
        else:
            ordered = _ordered(self.job, results, expected)
        return next(_differences(ordered, expected, tolerance, "result"), "")

    @property
    def is_checked(self) -> bool:
        """Whether the file says what is expected."""
        return callable(getattr(self.module, "expected", None))

    def _call(self, name: str) -> Any:
        try:
            return getattr(self.module, name)()
        except KeyboardInterrupt:
            raise
        except RuntimeFailure as error:
            raise RuntimeFailure(f"{self.path}{_line(error)}: {error}") from error
        except BaseException as error:
            raise RuntimeFailure(f"{self.path}{_line(error)}: {name}(): {type(error).__name__}: {error}") from error


def _ordered(job: Callable[[], Job], results: Any, expected: Any) -> Any:
    """The results of a job, those that are as expected but for an order that depends on the run in the expected one."""
    if not (isinstance(results, Mapping) and isinstance(expected, Mapping)):
        return results
    return {
        name: expected[name] if _is_reordered(job, name, found, expected.get(name)) else found
        for name, found in results.items()
    }


def _is_reordered(job: Callable[[], Job], name: str, found: Any, expected: Any) -> bool:
    """Whether a list has the expected elements in another order, and its order depends on the run."""
    if not (isinstance(found, list) and isinstance(expected, list)) or found == expected:
        return False
    return sorted(map(repr, found)) == sorted(map(repr, expected)) and not job().keeps_order(name)


def _line(error: BaseException) -> str:
    _, _, line = place_of(error).rpartition(":")
    return line and f":{line}"


def _differences(found: Any, expected: Any, tolerance: float, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in [*expected, *(k for k in found if k not in expected)]:
            if key not in found or key not in expected:
                yield f"{place}[{key!r}] is {'missing' if key not in found else 'not expected'}"
            else:
                yield from _differences(found[key], expected[key], tolerance, f"{place}[{key!r}]")
    elif isinstance(expected, list | tuple) and type(found) is type(expected) and len(found) == len(expected):
        for at, pair in enumerate(zip(found, expected, strict=True)):
            yield from _differences(*pair, tolerance, f"{place}[{at}]")
    elif isinstance(expected, float) and isinstance(found, int | float):
        is_same = found == expected or (found != found and expected != expected)
        if not is_same and not abs(found - expected) <= tolerance:
            yield f"{place} is {found:g}, not {expected:g} within {tolerance:g}"
    elif found != expected:
        yield f"{place} is {found!r}, not {expected!r}"
