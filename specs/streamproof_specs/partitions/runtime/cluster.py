"""The behaviour of one cluster partition: the job that makes it, its TaskExecutors, and later jobs that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from streamproof.conformance import Constraint, Event, InputError, Move, Rules, StateReader
from streamproof_specs.partitions.runtime.arguments import copies, listed, number, texts, texts_of, tracked
from streamproof_specs.partitions.runtime.forms import EXECUTOR, FORM
from streamproof_specs.partitions.runtime.reading import LET_GO, DatasetReading, Meaning, Step
from streamproof_specs.partitions.runtime.recorded_machine import RecordedCluster

LOCATED, REQUESTED = "cluster_partition_located", "promotion_requested"
PROMOTED, REFUSED = "partitions_promoted", "promotion_failed"
RELEASED, MANAGER_LOST = "cluster_partition_released", "manager_lost"


@lru_cache(maxsize=64)
def _machine(partitions: int, executors: int, attempts: int, readers: int, room: int) -> Rules:
    sizes = {"partitions": partitions, "executors": executors, "attempts": attempts, "readings": readers, "room": room}
    return Rules(RecordedCluster(**sizes))


class ClusterReading(DatasetReading):
    """The behaviour of what a job stores as a cluster partition."""

    machine = staticmethod(_machine)
    canceled_states = ("PRODUCING", "STORED", "CLUSTER")

    def __init__(
        self,
        trace: str,
        name: str,
        own: Sequence[Event],
        others: tuple[Sequence[Event], Sequence[Event]],
        executors: Iterable[str],
    ) -> None:
        """`own`: the events of the JobMaster that makes it; `others`: those of JobMasters after it, in their order, and those
        of all others. Raises `InputError`."""
        super().__init__(FORM, trace, name, own, executors)
        later, elsewhere = others
        made = [e for e in elsewhere if e.event == "partitions_tracked" and f"{name}/0" in tracked(e)]
        self._foreign = {number(event, "attempt") for event in made}
        """Attempts of other JobMasters."""
        self._is_over = False
        self._reading: frozenset[str] = frozenset()
        """The operators of the region of a later job that reads it."""
        scheduled = 0
        for event in later:
            if event.event == "region_scheduled":
                scheduled = number(event, "attempt")
            elif event.event == "region_deployed" and self._cluster(event) in self.attempts:
                self.told.setdefault(scheduled, self._cluster(event) or 0)

    def _cluster(self, event: Event) -> int | None:
        """The attempt that a later job reads by a deployment."""
        found = event.args.get("cluster", {})
        if not isinstance(found, dict) or not all(type(v) is int for v in found.values()):
            raise InputError(f"{event} needs the argument 'cluster', attempts by partition", loc=event.loc)
        return found.get(self.name)

    # --- JobMasters

    def read(self, step: Step, rest: Sequence[Event]) -> None:
        """The next event of the JobMaster that makes it."""
        event, meaning = step.event, Meaning(step.event)
        moves: Any = None
        if event.event in _OWN and not (self._is_over and event.event in ("registered", "executor_lost")):
            moves = _OWN[event.event](self, event, meaning, rest)
        self._keep(step, meaning, moves)

    def read_later(self, step: Step) -> None:
        """The next event of a JobMaster of a later job."""
        event, meaning = step.event, Meaning(step.event)
        moves: Any = None
        every = range(self.width)
        restart = tuple(Move("fail", {"p": p, "c": 0}, optional=True) for p in every)
        if event.event == "region_scheduled":
            self._reader = number(event, "attempt")
        elif event.event in ("job_started", "job_failed") or self._reading & {*texts_of(event, "restarts")}:
            moves = (restart,)
        elif event.event == LOCATED and event.args.get("dataset") == self.name:
            moves = self._located(event, meaning)
        elif event.event == "region_deployed" and self._cluster(event) in self.attempts:
            self._reading = frozenset(texts(event, "tasks"))
            meaning.needs.add(("located", event.trace, self._cluster(event)))
            meaning.provides.add(("reading", self._reader))
            moves = (tuple(Move("begin", {"p": p, "c": 0}) for p in every),)
        elif event.event == "region_finished" and self._reading & {*texts(event, "tasks")}:
            meaning.needs.update(("consumed", p, self._reader) for p in every)
            told = self.told[self._reader] if self._reader in self.told else self.attempts[0]
            self._reading = frozenset()
            moves = (tuple(Move("consume", {**self._at(p, told), "c": 0}) for p in every),)
        self._keep(step, meaning, moves)

    def _located(self, event: Event, step: Meaning) -> Any:
        """The ResourceManager has said where it is."""
        attempt = number(event, "attempt")
        if attempt not in self.attempts:
            if self.is_own(attempt):
                step.wrong = f"there is no attempt {attempt} of {self.name}"
            return None
        step.needs.update(("promoted", p, attempt) for p in range(self.width))
        step.provides.add(("located", event.trace, attempt))
        if texts(event, "executors") != self.places[attempt]:
            step.wrong = f"{self.name}@{attempt} is at {', '.join(self.places[attempt])}"
        return ((),)

    def requested(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The JobMaster asks for the promotion."""
        if self.name not in texts(event, "datasets"):
            return None
        attempt = number(event, "attempt")
        step.needs.update(("finished", p, attempt) for p in range(self.width))
        step.provides.add(("requested", attempt))
        return (tuple(Move("promote", self._at(p, attempt)) for p in range(self.width)),)

    def answered(self, event: Event, step: Meaning, rest: Any) -> Any:
        """All TaskExecutors have answered."""
        if self.source not in texts(event, "tasks"):
            return None
        step.needs.update(("promoted", p, self._deployed) for p in range(self.width))
        return (tuple(Move("receive_report", self._at(p, self._deployed)) for p in range(self.width)),)

    def ended(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The job has finished: the partition is the cluster's."""
        self._is_over = True
        expected = ("PROMOTED",) * self.width
        step.before.append(
            Constraint(f"{self.name} has not been promoted", lambda look: self._values(look, "tracked") == expected)
        )
        return ((Move("end", {"j": 0}),),)

    def _values(self, look: StateReader, name: str) -> tuple[Any, ...]:
        return tuple(look(name, p) for p in range(self.width))

    def unexpected(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The JobMaster neither loses nor releases it."""
        if self.name in (event.args.get("partition"), event.args.get("dataset")):
            step.wrong = f"{self.name} becomes a cluster partition"
        return None

    # --- TaskExecutors

    def is_own(self, attempt: int) -> bool:
        """Whether an attempt is not of another JobMaster."""
        return attempt not in self._foreign

    def read_there(self, step: Step, executor: str) -> None:
        """The next event of a TaskExecutor; those of other attempts are of another JobMaster."""
        event, meaning = step.event, Meaning(step.event)
        at = self.executors.index(executor)
        attempt = event.args.get("attempt")
        named = [
            a
            for name in ("partition", "promoted", "refused", "lost")
            for of, _, a in listed(event, name)
            if of == self.name
        ]
        is_other = attempt in self._foreign if attempt is not None else bool(named) and {*named} <= self._foreign
        read = None if is_other else _THERE[event.event]
        moves = None if read is None else read(self, event, meaning, at)
        self._keep(step, meaning, moves)

    def dismissed(self, event: Event, step: Meaning, executor: int) -> Any:
        """The ResourceManager releases the TaskExecutor, which stores nothing."""
        self._deletes(event, step, executor)
        return ((Move("report_empty", {"e": executor}), Move("release_executor", {"e": executor})),)

    def promoted(self, event: Event, step: Meaning, executor: int) -> Any:
        """A TaskExecutor promotes what it has, and says so to the JobMaster and the ResourceManager."""
        attempt, here = self._asked(event, step, executor, "promoted")
        if not here:
            return None if step.wrong is None else ((),)
        step.provides.update(("promoted", p, attempt) for p in here)
        states = Constraint(
            f"{self.name}@{attempt} is not stored",
            lambda look: all(look("copy", (p, self.attempts.index(attempt))) == "STORED" for p in here),
        )
        step.before.append(states)
        orders = [Move("receive_order", {"j": 0, "e": executor}) for _ in here]
        return ((*orders, *(Move("report_cluster_partition", self._at(p, attempt)) for p in here)),)

    def refused(self, event: Event, step: Meaning, executor: int) -> Any:
        """A TaskExecutor has lost something that is to be promoted: it promotes nothing, and the attempt fails."""
        attempt, here = self._asked(event, step, executor, "refused")
        missing = [p for name, p, a in copies(event, "missing") if (name, a) == (self.name, attempt)]
        for p in missing:
            lost = Constraint(
                f"{self.name}/{p}@{attempt} is stored",
                lambda look, p=p: look("copy", (p, self.attempts.index(attempt))) != "STORED",  # type: ignore[misc]
            )
            step.before.append(lost)
        if not copies(event, "missing"):
            step.wrong = "nothing is missing"
        if not here:
            return None if step.wrong is None else ((),)
        return (tuple(Move("refuse_order", {"j": 0, "e": executor}) for _ in here),)

    def _asked(self, event: Event, step: Meaning, executor: int, name: str) -> tuple[int, list[int]]:
        """The attempt and the partitions here that an event says were to be promoted; none if it is about others."""
        made = [(p, a) for of, p, a in copies(event, name) if of == self.name]
        if not made:
            return -1, []
        attempt = made[0][1]
        here = self._here(executor, attempt)
        if sorted(made) != [(p, attempt) for p in here]:
            step.wrong = f"partitions {', '.join(map(str, here))} of {self.name}@{attempt} are to be promoted"
            return attempt, []
        step.needs.add(("requested", attempt))
        self._ordered(step, executor, "Promote", attempt)
        return attempt, here

    def manager_lost(self, event: Event, step: Meaning, executor: int) -> Any:
        """A TaskExecutor without ResourceManager deletes its cluster partitions."""
        self._removes(event, step, executor, self.attempts)
        return ((Move("lose_manager", {"e": executor}),),)

    def released_there(self, event: Event, step: Meaning, executor: int) -> Any:
        """The ResourceManager releases it."""
        if event.args.get("dataset") != self.name:
            return None
        attempt = number(event, "attempt")
        self._removes(event, step, executor, [attempt])
        step.needs.update(("promoted", p, attempt) for p in self._here(executor, attempt))
        moves = [Move("release_cluster_partition", self._at(p, attempt)) for p in self._here(executor, attempt)]
        return (tuple(moves),)

    def _removes(self, event: Event, step: Meaning, executor: int, attempts: Sequence[int]) -> None:
        """What is recorded as deleted is what the cluster has there."""
        recorded = sorted((p, a) for name, p, a in copies(event, "deleted") if name == self.name and self.is_own(a))
        where = [(p, a) for a in attempts for p in self._here(executor, a)]

        def there(look: StateReader) -> list[tuple[int, int]]:
            return sorted((p, a) for p, a in where if look("copy", (p, self.attempts.index(a))) == "CLUSTER")

        step.before.append(
            Constraint(
                lambda look: f"cluster partitions {there(look)} are deleted in the model, {recorded} in the log",
                lambda look: there(look) == recorded,
            )
        )


_OWN: Mapping[str, Callable[..., Any]] = {
    "job_started": DatasetReading.replaced,
    "registered": DatasetReading.registered,
    "executor_lost": DatasetReading.executor_lost,
    "partitions_tracked": DatasetReading.tracked,
    REQUESTED: ClusterReading.requested,
    "region_finished": ClusterReading.answered,
    "partition_lost": ClusterReading.unexpected,
    "partitions_released": ClusterReading.unexpected,
    "region_failed": DatasetReading.failed,
    "job_failed": DatasetReading.given_up,
    "job_finished": ClusterReading.ended,
}
"""Events of the JobMaster that makes it."""
_THERE: Mapping[str, Callable[..., Any] | None] = {
    **{name: form.read for name, form in EXECUTOR.items()},
    LET_GO: ClusterReading.dismissed,
    PROMOTED: ClusterReading.promoted,
    REFUSED: ClusterReading.refused,
    MANAGER_LOST: ClusterReading.manager_lost,
    RELEASED: ClusterReading.released_there,
}
"""Events of TaskExecutors."""
