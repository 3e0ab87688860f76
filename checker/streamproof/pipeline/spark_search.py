"""A search of all states by the processes of a Spark cluster: the engine ``spark``."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from streamproof.base.errors import SystemFailure, UsageError
from streamproof.base.optional import expect_pyarrow
from streamproof.base.options import DEFAULTS, SearchOptions, memory_of_machine
from streamproof.base.records import replace
from streamproof.explicit.cluster import Cluster
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.level_search import processors
from streamproof.pipeline.session import LOCAL, require_pyspark, spark_failures, spark_session
from streamproof.system.model import System
from streamproof.system.verdict import Finding, Progress

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
J = TypeVar("J")

SHARES = 2
"""Number of partitions for each processor of the cluster, so that an uneven one delays the others less."""
TASK_BYTES = 1 << 30
"""Memory of a task on a cluster, unless ``--memory`` says how much all tasks of this machine have."""
LOCAL_SHARE = 0.4
"""Share of this machine's memory that its tasks have together."""
WAIT_SECONDS = 0.1


def explore_on_spark(
    system: System,
    options: SearchOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_violation: Callable[[Finding], None] | None = None,
) -> Exploration:
    """Search the reachable states as `explore` does, the wide levels on Spark.

    `SearchOptions.master` is Spark's master, `spill` the folder of states and `resume` the one to continue in. Spark starts
    with the first wide level. Raises `UsageError` without a folder.
    """
    folder = options.spill or options.resume
    if folder is None:
        raise UsageError(
            "a search on Spark needs a folder that all of its processes share", remedy="name one with --spill DIR"
        )
    expect_pyarrow("a search on Spark", "spark")
    require_pyspark()
    master = options.master or LOCAL
    plain = replace(options, master=None, spill=None, resume=None)
    with ExitStack() as stack:
        executor = SparkExecutor(master, options.memory, stack)
        cluster = Cluster(executor, _place(folder), resume=options.resume is not None)
        return explore(system, plain, on_progress=on_progress, on_violation=on_violation, cluster=cluster)


def _place(folder: Path) -> str:
    """The folder as `SharedFolder` names it: an address of a file system, from which a path drops a slash, or a full path."""
    address = re.fullmatch(r"([a-z][a-z0-9+]+):/+(.*)", str(folder))
    if address is None:
        return str(folder.absolute())
    scheme = "s3" if address[1] in ("s3a", "s3n") else address[1]
    return f"/{address[2]}" if scheme == "file" else f"{scheme}://{address[2]}"


class SparkExecutor:
    """The processes of a Spark cluster, started with the first jobs."""

    def __init__(self, master: str, memory: int | None, stack: ExitStack) -> None:
        """`memory`: bytes of all tasks on this machine; `stack`: ends Spark."""
        self._master = master
        self._stack = stack
        self._context: SparkContext | None = None
        self._cores = cores = _local_cores(master)
        whole = memory or int((memory_of_machine() or 4 << 30) * LOCAL_SHARE)
        self.room = whole // max(1, cores) if cores else TASK_BYTES
        """Memory of a task, in bytes."""

    @property
    def partitions(self) -> int:
        """Number of partitions of the states. On a cluster Spark starts, since only it knows the processors."""
        cores = self._cores
        if not cores:
            with spark_failures(f"starting on {self._master}"):
                self._spark.parallelize(range(2), 2).count()  # executors have registered when it is done
                cores = self._spark.defaultParallelism
        return SHARES * max(2, cores)

    @property
    def _spark(self) -> SparkContext:
        if self._context is None:
            self._context = self._stack.enter_context(spark_session(self._master)).sparkContext
        return self._context

    def run(self, work: Callable[[J], T], jobs: Sequence[J], pulse: Callable[[], None]) -> list[T]:
        """The results of a function for all jobs, one Spark task each. Raises `SystemFailure` if Spark fails, and what
        `pulse` raises."""
        context = self._spark
        group = f"streamproof-{uuid.uuid4().hex[:8]}"
        found: list[list[T | Failed]] = []
        failures: list[BaseException] = []

        def collect() -> None:
            try:
                context.setJobGroup(group, "streamproof", interruptOnCancel=True)
                answers = context.parallelize(jobs, len(jobs)).map(lambda job: attempt(work, job)).collect()
                found.append(answers)
            except BaseException as failure:
                failures.append(failure)

        from pyspark import InheritableThread

        thread = InheritableThread(target=collect, daemon=True)
        with _cancelling(context, group), spark_failures(f"searching on {self._master}"):
            thread.start()
            while thread.is_alive():
                thread.join(WAIT_SECONDS)
                pulse()
            if failures:
                raise failures[0]
        results: list[T] = []
        for answer in found[0]:
            if isinstance(answer, Failed):
                raise SystemFailure(answer.message, remedy=answer.remedy)
            results.append(answer)
        return results


@contextmanager
def _cancelling(context: SparkContext, group: str) -> Iterator[None]:
    """Ends the jobs of a group if the block raises."""
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        raise


class Failed:
    """What a task answers in place of a result when a folder cannot be used: another attempt would fail, too."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message, self.remedy = message, remedy


def attempt(work: Callable[[J], T], job: J) -> T | Failed:
    """The result of a job, on a worker."""
    try:
        return work(job)
    except SystemFailure as failure:
        return Failed(failure.message, failure.remedy)


def _local_cores(master: str) -> int:
    """The number of processors that an embedded master uses; 0 for other masters."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if found is None:
        return 0
    return processors() if found[1] == "*" else int(found[1] or 1)
