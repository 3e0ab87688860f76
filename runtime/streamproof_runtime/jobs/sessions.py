"""Sessions: jobs that one cluster runs one after the other, of which later ones read what earlier ones have promoted."""

from __future__ import annotations

from collections.abc import Sequence

from streamproof_runtime.errors import JobError
from streamproof_runtime.jobs.api import Job


def expect_session(jobs: Sequence[Job]) -> None:
    """Raises `JobError` for jobs of one name, for unbounded sources beside other jobs, for a cluster partition that two jobs
    promote, and for one that is read and that no earlier job promotes with as many subtasks."""
    promoted: dict[str, tuple[str, int]] = {}
    names = set[str]()
    for job in jobs:
        if job.name in names:
            raise JobError(f"two jobs of the session are named {job.name}; give them different names")
        names.add(job.name)
        if job.unbounded and len(jobs) > 1:
            raise JobError(f"source {job.unbounded[0]} of job {job.name} has no end: run it alone, without a session")
        for operator in job.operators.values():
            if not operator.takes:
                continue
            maker, parallelism = promoted.get(operator.takes, ("", 0))
            if not maker:
                raise JobError(
                    f"job {job.name} reads the cluster partition {operator.takes}, which no job before it promotes"
                )
            if operator.parallelism != parallelism:
                raise JobError(
                    f"job {job.name} reads the cluster partition {operator.takes} with parallelism {operator.parallelism}; "
                    f"job {maker} stores it with {parallelism}: give both the same"
                )
        for operator in job.operators.values():
            if (
                operator.promotes
                and promoted.setdefault(operator.promotes, (job.name, operator.parallelism))[0] != job.name
            ):
                maker = promoted[operator.promotes][0]
                raise JobError(f"jobs {maker} and {job.name} both promote {operator.promotes}; give it another name")


def last_readers(jobs: Sequence[Job]) -> list[list[str]]:
    """For each job the cluster partitions that no job after it reads, of those that it or an earlier one has promoted."""
    last: dict[str, int] = {}
    for number, job in enumerate(jobs):
        for operator in job.operators.values():
            for name in (operator.promotes, operator.takes):
                if name:
                    last[name] = number
    return [[name for name, at in last.items() if at == number] for number in range(len(jobs))]
