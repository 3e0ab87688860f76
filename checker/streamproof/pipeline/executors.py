"""The executor whose processes are those of a Spark cluster."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from streamproof.base.errors import SystemFailure
from streamproof.explicit.cluster import SHARES, room_of
from streamproof.explicit.level_search import processors
from streamproof.pipeline import session
from streamproof.pipeline.session import Progress, spark_failures, spark_session

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
J = TypeVar("J")

TASK_BYTES = 1 << 30
"""Memory of a task on a cluster, unless ``--memory`` says how much all tasks of this machine have."""
WAIT_SECONDS = 0.1


class SparkExecutor:
    """The processes of a Spark cluster, started with the first jobs."""

    def __init__(self, master: str, stack: ExitStack, *, memory: int | None = None, doing: str = "searching") -> None:
        """`memory`: bytes of all tasks on this machine; `stack`: ends Spark; `doing`: for messages."""
        self._master = master
        self._stack = stack
        self._doing = doing
        self._context: SparkContext | None = None
        self._cores = cores = _local_cores(master)
        self.room = room_of(cores, memory) if cores else TASK_BYTES
        """Memory of a task, in bytes."""

    @property
    def processors(self) -> int:
        """Number of processors. On a cluster Spark starts, since only it knows them."""
        if not self._cores:
            with spark_failures(f"starting on {self._master}"):
                self._spark.parallelize(range(2), 2).count()  # executors have registered when it is done
                self._cores = self._spark.defaultParallelism
        return self._cores

    @property
    def partitions(self) -> int:
        """Number of partitions of the states."""
        return SHARES * max(2, self.processors)

    @property
    def _spark(self) -> SparkContext:
        if self._context is None:
            self._context = self._stack.enter_context(spark_session(self._master)).sparkContext
        return self._context

    @contextmanager
    def reporting(self, progress: Progress | None, doing: str, jobs: int) -> Iterator[Callable[[], None]]:
        """Reports `doing`, and then the number of finished tasks once a second."""
        with spark_failures(f"starting on {self._master}"):
            context = self._spark
        with session.reporting(context, progress, doing):
            yield lambda: None

    def run(self, work: Callable[[J], T], jobs: Sequence[J], pulse: Callable[[], None]) -> list[T]:
        """The results of a function for all jobs, one Spark task each. Calls `pulse` repeatedly. Raises `SystemFailure` if
        Spark fails, and what `pulse` raises."""
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
        with _cancelling(context, group), spark_failures(f"{self._doing} on {self._master}"):
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

    def stream(self, work: Callable[[J], T], jobs: Sequence[J]) -> Iterator[tuple[int, T | Lost]]:
        """The number and the result of each job, in the order of completion, one Spark task each: a slow one delays no other.
        Raises `SystemFailure` if Spark fails."""
        waiting = dict(enumerate(jobs))
        context = self._spark
        while waiting:
            numbers = list(waiting)
            arrived: SimpleQueue[list[tuple[int, T | Failed]]] = SimpleQueue()
            sent = context.accumulator([], _arriving(arrived))
            group = f"streamproof-{uuid.uuid4().hex[:8]}"
            failures: list[BaseException] = []

            def task(some: Iterable[tuple[int, J]], sent: Any = sent) -> Iterator[int]:
                for number, job in some:
                    sent.add([(number, attempt(work, job))])
                    yield number

            def count_tasks(group: str, numbers: list[int], task: Any, failures: list[BaseException]) -> None:
                try:
                    context.setJobGroup(group, "streamproof", interruptOnCancel=True)
                    items = [(number, waiting[number]) for number in numbers]
                    context.parallelize(items, len(items)).mapPartitions(task).count()
                except BaseException as failure:
                    failures.append(failure)

            from pyspark import InheritableThread

            thread = InheritableThread(target=count_tasks, args=(group, numbers, task, failures), daemon=True)
            with _cancelling(context, group), spark_failures(f"{self._doing} on {self._master}"):
                thread.start()
                while thread.is_alive() or not arrived.empty():
                    with suppress(Empty):
                        for number, answer in arrived.get(timeout=WAIT_SECONDS):
                            if isinstance(answer, Failed):
                                raise SystemFailure(answer.message, remedy=answer.remedy)
                            if number in waiting:  # a task can be repeated
                                del waiting[number]
                                yield number, answer
                if failures:
                    died = _WORKER_DIED.search(str(failures[0]))
                    if died is None:
                        raise failures[0]
                    number = numbers[int(died["task"])]
                    del waiting[number]
                    yield number, Lost()


class Lost:
    """In place of a result: the process of a job died `session.ATTEMPTS` times."""


_WORKER_DIED = re.compile(r"Task (?P<task>\d+) in stage .*(?:Python worker (?:exited|failed)|crashed)", re.S)
"""What Spark says of a task that it has given up, whose number is that of its partition."""


def _arriving(queue: SimpleQueue[Any]) -> Any:
    """Puts what tasks add into a queue of the driver, when they have succeeded."""
    from pyspark.accumulators import AccumulatorParam

    class Arriving(AccumulatorParam[list[Any]]):
        queue: SimpleQueue[Any] | None = None

        def zero(self, value: list[Any]) -> list[Any]:
            return []

        def addInPlace(self, some: list[Any], more: list[Any]) -> list[Any]:
            if self.queue is None:
                return some + more
            self.queue.put(more)
            return []

        def __getstate__(self) -> dict[str, Any]:
            return {}  # workers have no queue

    found = Arriving()
    found.queue = queue
    return found


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
