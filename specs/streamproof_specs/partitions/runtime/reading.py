"""The events of the runtime's JobMaster and TaskExecutors as steps of the machine of one dataset's partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from streamproof.conformance import (
    Constraint,
    Event,
    InputError,
    LogForm,
    Move,
    Observation,
    Rules,
    StateReader,
    Stream,
    Task,
)
from streamproof_specs.partitions.runtime.arguments import copies, listed, number, texts, tracked
from streamproof_specs.partitions.runtime.recorded_machine import RecordedPartitions

LISTS = ("created", "deleted", "lost")
"""Arguments of TaskExecutors' events that are lists of copies."""
REGISTERING, MASTER_LOST, LET_GO = "registering", "master_lost", "executor_released"

Key: TypeAlias = tuple[Any, ...]
"""Something that one event provides and another needs."""


@dataclass
class Step:
    """An event, with what must have happened before it, and what it makes possible."""

    event: Event
    needs: set[Key] = field(default_factory=set)
    provides: set[Key] = field(default_factory=set)
    wrong: str | None = None


@dataclass
class Meaning:
    """The meaning of an event for a dataset."""

    event: Event
    alternatives: tuple[tuple[Move, ...], ...] = ((),)
    needs: set[Key] = field(default_factory=set)
    provides: set[Key] = field(default_factory=set)
    before: list[Constraint] = field(default_factory=list)
    after: list[Constraint] = field(default_factory=list)
    wrong: str | None = None

    def observation(self, step: Step) -> Observation:
        """The observation of the event, which may be in the wrong place."""
        wrong = self.wrong or step.wrong
        return Observation(self.event, self.alternatives, tuple(self.after), tuple(self.before), wrong)


@lru_cache(maxsize=64)
def _machine(partitions: int, executors: int, attempts: int, readers: int, room: int) -> Rules:
    sizes = {"partitions": partitions, "executors": executors, "attempts": attempts, "readings": readers, "room": room}
    return Rules(RecordedPartitions(**sizes))


def _rounded(count: int) -> int:
    """The next power of two, so that most datasets of a size have one machine."""
    return 1 << max(1, count - 1).bit_length()


class DatasetReading:
    """The behaviour of one dataset."""

    machine = staticmethod(_machine)
    canceled_states: Sequence[str] = ("PRODUCING", "STORED")
    """States of what is deleted when a producer is stopped."""

    def __init__(
        self,
        form: LogForm,
        trace: str,
        name: str,
        own: Sequence[Event],
        executors: Iterable[str],
        in_memory: bool = False,
    ) -> None:
        """`form`: how each event is read; `own`: the events of the JobMaster; `executors`: those with events; `in_memory`:
        the exchange is memory-only caching. Raises `InputError`."""
        self.form, self.trace, self.name, self.in_memory = form, trace, name, in_memory
        self.source, _, self.target = name.partition(">")
        self.own = own
        self.attempts: list[int] = []
        """The attempts of the producer that were deployed; the machine counts them."""
        self.places: dict[int, list[str]] = {}
        """The TaskExecutor of each partition, by attempt."""
        self.told: dict[int, int] = {}
        """The attempts of the consumer that were deployed, which the machine counts from 1, with that in their descriptor."""
        self._read_own()
        self.executors = sorted({e for places in self.places.values() for e in places} | {*executors})
        self.steps: dict[Any, Meaning] = {}
        """The meaning of each event that concerns the dataset."""
        self._reader = 0
        self._deployed = -1
        """The attempt of the producer that was deployed last, at this point of the JobMaster's log."""
        self._consumptions: Counter[tuple[int, int]] = Counter()

    def _read_own(self) -> None:
        """What the JobMaster has deployed."""
        scheduled: Any = None
        for event in self.own:
            if event.event == "region_scheduled" and self.target in texts(event, "tasks"):
                scheduled = number(event, "attempt")
            elif event.event == "partitions_tracked":
                places = {p: e for p, e in tracked(event).items() if p.rpartition("/")[0] == self.name}
                if not places:
                    continue
                attempt = number(event, "attempt")
                expected = [f"{self.name}/{p}" for p in range(len(places))]
                if {*places} != {*expected} or attempt in self.places:
                    raise InputError(f"{event}: other partitions of {self.name} are expected", loc=event.loc)
                self.attempts.append(attempt)
                self.places[attempt] = [places[p] for p in expected]
            elif event.event == "region_finished" and self.source in texts(event, "tasks") and not self.attempts:
                raise InputError(f"{event} is before the deployment of {self.name}", loc=event.loc)
            elif scheduled is not None and (told := self._descriptor(event)) is not None:
                self.told.setdefault(scheduled, told)
        if len({len(places) for places in self.places.values()}) > 1:
            raise InputError(f"{self.name} has another number of partitions in another attempt", loc=self.own[0].loc)

    def _descriptor(self, event: Event) -> int | None:
        """The attempt of the dataset in a descriptor, if an event has one for the consumer."""
        if event.event not in ("region_deployed", "region_updated") or self.target not in texts(event, "tasks"):
            return None
        found = event.args.get("descriptors")
        if not isinstance(found, dict) or not all(type(v) is int for v in found.values()):
            raise InputError(f"{event} needs the argument 'descriptors', attempts by partition", loc=event.loc)
        return found.get(self.name)

    def task(self, order: Sequence[Step]) -> Task:
        """The behaviour to follow, in an order of all events."""
        sizes = self.width, len(self.executors), _rounded(len(self.attempts)), _rounded(len(self.told) + 1)
        rules = self.machine(*sizes, _rounded(self.width * 3 * (1 + len(self.attempts))))
        observed = [self.steps[step.event.key].observation(step) for step in order if step.event.key in self.steps]
        return Task(f"{self.trace} {self.name}", rules.system, (Stream(observed),), grounding=rules.instances)

    def note(self, step: Step) -> None:
        """An event that is in the wrong place, and concerns no dataset."""
        self.steps.setdefault(step.event.key, Meaning(step.event))

    def read(self, step: Step, rest: Sequence[Event]) -> None:
        """The next event of the JobMaster, with those that follow."""
        meaning = Meaning(step.event)
        self._keep(step, meaning, self.form.read(step.event, self, step.event, meaning, rest))

    def read_there(self, step: Step, executor: str) -> None:
        """The next event of a TaskExecutor."""
        meaning = Meaning(step.event)
        moves = self.form.read(step.event, self, step.event, meaning, self.executors.index(executor))
        if moves is None and any(name == self.name for part in LISTS for name, *_ in listed(step.event, part)):
            meaning.wrong = f"partitions of {self.name} are in an event about other datasets"
        self._keep(step, meaning, moves)

    def _keep(self, step: Step, meaning: Meaning, alternatives: Any) -> None:
        if alternatives is None and meaning.wrong is None:
            return
        meaning.alternatives = alternatives or ((),)
        self.steps[step.event.key] = meaning
        step.needs.update((self.name, *key) for key in meaning.needs)
        step.provides.update((self.name, *key) for key in meaning.provides)

    # --- events of the JobMaster

    def registered(self, event: Event, step: Meaning, rest: Any) -> Any:
        """A TaskExecutor registers: what was known of it is void."""
        name = event.args.get("executor")
        if name not in self.executors:
            return None
        return ((Move("register", {"j": 0, "e": self.executors.index(name)}),),)

    def executor_lost(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The JobMaster loses a TaskExecutor."""
        name = event.args.get("executor")
        if name not in self.executors:
            return None
        action = "close" if event.args.get("closed") else "lose_executor"
        return ((Move(action, {"j": 0, "e": self.executors.index(name)}),),)

    def replaced(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The JobMaster has crashed, and another one begins the job anew; what TaskExecutors still do is of this one."""
        return ((Move("crash", {"j": 0}), Move("recover", {"j": 0})),)

    def scheduled(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The number of the next deployment of the consumer."""
        if self.target in texts(event, "tasks"):
            self._reader = number(event, "attempt")
        return None

    def tracked(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The producer is deployed."""
        attempt = number(event, "attempt")
        if not any(p.rpartition("/")[0] == self.name for p in tracked(event)):
            return None
        step.provides.add(("deployed", attempt))
        self._deployed = attempt
        places = self.places[attempt]
        step.after.append(_is("attempts of the producer", "attempt", [self.attempts.index(attempt) + 1] * len(places)))
        return (tuple(Move("deploy", {"p": p, "e": self.executors.index(e)}) for p, e in enumerate(places)),)

    def described(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The consumer gets the descriptor of the dataset."""
        told = self._descriptor(event)
        if told is None:
            return None
        step.provides.add(("reading", self._reader))
        if told not in self.attempts:
            raise InputError(f"{event}: there is no attempt {told} of {self.name}", loc=event.loc)
        number_of = self.attempts.index(told) + 1
        step.before.append(_is(f"attempt of {self.name} in the descriptor", "attempt", [number_of] * self.width))
        if self.told.get(self._reader) != told:
            step.wrong = f"attempt {self._reader} of the consumer was told of another attempt of {self.name} before"
        return (tuple(Move("begin", {"p": p, "c": 0}) for p in range(self.width)),)

    @property
    def width(self) -> int:
        """The number of partitions."""
        return len(next(iter(self.places.values())))

    def finished(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The producer, or the consumer, has finished."""
        tasks = texts(event, "tasks")
        if {self.source, self.target} <= {*tasks}:
            step.wrong = f"{self.source} and {self.target} are not of one region"
        if self.source in tasks:
            attempt = self._deployed
            for p in range(self.width):
                step.needs.add(
                    (
                        "finished",
                        p,
                        attempt,
                    )
                )
            return (tuple(Move("receive_report", self._at(p, attempt)) for p in range(self.width)),)
        if self.target in tasks:
            for p in range(self.width):
                step.needs.add(
                    (
                        "consumed",
                        p,
                        self._reader,
                    )
                )
            told = self.told.get(self._reader, self.attempts[0])
            return (tuple(Move("consume", {**self._at(p, told), "c": 0}) for p in range(self.width)),)
        return None

    def lost(self, event: Event, step: Meaning, rest: Sequence[Event]) -> Any:
        """The dataset is gone: with a TaskExecutor, or because its consumer has missed a partition."""
        if event.args.get("partition") != self.name:
            return None
        every = range(self.width)
        following = next(iter(rest), None)
        is_cause = following is not None and following.event in ("region_failed", "job_failed")
        if following is not None and is_cause and following.args.get("missing") == self.name:
            step.needs.add(
                (
                    "missing",
                    self._reader,
                )
            )
            told = self.told.get(self._reader, self.attempts[0])
            first = [[Move("miss", {**self._at(p, told), "c": 0})] for p in every]
        else:
            first = [[]]
        rest_of = [Move("write_off", {"p": p}, optional=True) for p in every]
        step.after.append(_all(f"all partitions of {self.name} are gone", "tracked", ("GONE",), self.width))
        return tuple((*moves, *rest_of) for moves in first)

    def failed(self, event: Event, step: Meaning, rest: Any) -> Any:
        """What restarts: a producer at work is canceled, a consumer reads again."""
        restarts = texts(event, "restarts")
        moves = []
        if self.source in restarts:
            step.provides.add(("canceled", self._deployed))
            for a in self.attempts:
                moves += [Move("cancel_producer", self._at(p, a), optional=True) for p in range(self.width)]
        if self.target in restarts:
            moves += [Move("fail", {"p": p, "c": 0}, optional=True) for p in range(self.width)]
        return (tuple(moves),) if moves else None

    def given_up(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The job has failed: all producers are canceled."""
        step.provides.update(("canceled", a) for a in self.attempts)
        moves = [Move("abandon", self._at(p, a), optional=True) for a in self.attempts for p in range(self.width)]
        return (tuple(moves),)

    def released(self, event: Event, step: Meaning, rest: Any) -> Any:
        """The dataset is released, or is to be made again."""
        if event.args.get("dataset") != self.name:
            return None
        attempt = number(event, "attempt")
        if attempt not in self.places:
            raise InputError(f"{event}: there is no attempt {attempt} of {self.name}", loc=event.loc)
        places = self.places[attempt]
        step.provides.add(("released", attempt))
        step.before.append(self._connected(event, places))
        action = "discard" if event.args.get("needed") else "release"
        return (tuple(Move(action, self._at(p, attempt)) for p in range(self.width)),)

    def _connected(self, event: Event, places: Sequence[str]) -> Constraint:
        recorded = texts(event, "executors")

        def expected(look: StateReader) -> list[str]:
            return [e for at, e in enumerate(self.executors) if e in places and look("registered", (0, at))]

        return Constraint(
            lambda look: f"the release is sent to {', '.join(expected(look))} in the model, to {recorded} in the log",
            lambda look: sorted(recorded) == expected(look),
        )

    # --- events of TaskExecutors

    def _at(self, p: int, attempt: int) -> dict[str, int]:
        if attempt not in self.attempts:
            raise InputError(f"attempt {attempt} of {self.name} was never deployed", loc=self.own[0].loc)
        return {"p": p, "a": self.attempts.index(attempt)}

    def _here(self, executor: int, attempt: int) -> list[int]:
        """The partitions of an attempt on a TaskExecutor."""
        name = self.executors[executor]
        return [p for p, e in enumerate(self.places.get(attempt, ())) if e == name]

    def registering(self, event: Event, step: Meaning, executor: int) -> Any:
        """A connection begins; with the first one of another process, the process before has crashed."""
        if number(event, "connection") == 0 and not event.process.endswith(".0"):
            return ((Move("crash_executor", {"e": executor}),),)
        return ((Move("lose_master", {"j": 0, "e": executor}, optional=True),),)

    def master_lost(self, event: Event, step: Meaning, executor: int) -> Any:
        """All partitions are deleted."""
        self._deletes(event, step, executor)
        return ((Move("lose_master", {"j": 0, "e": executor}, optional=True),),)

    def let_go(self, event: Event, step: Meaning, executor: int) -> Any:
        """The ResourceManager releases the TaskExecutor, which stores nothing."""
        self._deletes(event, step, executor)
        step.before.append(
            Constraint("the TaskExecutor has ended", lambda look: bool(look("connected", (0, executor))))
        )
        return ((Move("report_empty", {"e": executor}), Move("release_executor", {"e": executor})),)

    def is_own(self, attempt: int) -> bool:
        """Whether an attempt is not of another JobMaster: always, as connections are of one."""
        return True

    def _deletes(
        self,
        event: Event,
        step: Meaning,
        executor: int,
        attempt: int | None = None,
        states: Sequence[str] = ("PRODUCING", "STORED"),
    ) -> None:
        """What is recorded as deleted is what was stored, of one attempt or of all."""
        recorded = sorted((p, a) for name, p, a in copies(event, "deleted") if name == self.name and self.is_own(a))
        where = [(p, a) for a in self.attempts for p in self._here(executor, a) if attempt is None or a == attempt]

        def stored(look: StateReader) -> list[tuple[int, int]]:
            return sorted((p, a) for p, a in where if look("copy", (p, self.attempts.index(a))) in states)

        def shown(found: Iterable[tuple[int, int]]) -> str:
            return ", ".join(f"{p}@{a}" for p, a in found) or "nothing"

        step.before.append(
            Constraint(
                lambda look: (
                    f"{shown(stored(look))} of {self.name} is deleted in the model, {shown(recorded)} in the log"
                ),
                lambda look: stored(look) == recorded,
            )
        )

    def created(self, event: Event, step: Meaning, executor: int) -> Any:
        """A producer is started, or cannot be."""
        if self.name not in texts(event, "datasets"):
            return None
        attempt = number(event, "attempt")
        here = self._here(executor, attempt)
        made = [(p, a) for name, p, a in copies(event, "created") if name == self.name]
        if not set(made) <= {(p, attempt) for p in here} or len({*made}) < len(made):
            step.wrong = f"partitions of {self.name} are created that were not deployed here"
        if any(name == self.name for name, *_ in copies(event, "deleted")):
            step.wrong = f"a deployment does not delete partitions of {self.name}"
        step.needs.add(
            (
                "deployed",
                attempt,
            )
        )
        order = {"j": 0, "e": executor}
        self._ordered(step, executor, "Deploy", attempt)
        return (tuple(Move("receive_order" if (p, attempt) in made else "refuse_order", order) for p in here),)

    def _ordered(self, step: Meaning, executor: int, kind: str, attempt: int) -> None:
        """The next messages are these orders."""
        here = self._here(executor, attempt)
        index = self.attempts.index(attempt) if attempt in self.attempts else -1

        expected = tuple((kind, (p, index)) for p in here)

        def is_next(look: StateReader) -> bool:
            found = look("to_executor", (0, executor))[: len(here)]
            return bool(found == expected and look("connected", (0, executor)))

        if here:
            step.before.append(Constraint(f"the TaskExecutor has no such order for {self.name}@{attempt}", is_next))

    def producer_finished(self, event: Event, step: Meaning, executor: int) -> Any:
        """A partition is stored."""
        found = self._copy(event, executor, step)
        if found is None:
            return None
        p, attempt = found
        step.provides.add(("finished", p, attempt))
        return ((Move("finish", self._at(p, attempt)),),)

    def _copy(self, event: Event, executor: int, step: Meaning) -> tuple[int, int] | None:
        """The partition of an event, if it is one of this dataset."""
        ((name, p, attempt),) = copies(event, "partition")
        if name != self.name:
            return None
        if p not in self._here(executor, attempt):
            step.wrong = f"no such partition was deployed at {self.executors[executor]}"
            return None if attempt not in self.attempts or p >= self.width else (p, attempt)
        return p, attempt

    def _read(self, event: Event, step: Meaning, executor: int, action: str) -> Any:
        found = self._copy(event, executor, step)
        if found is None:
            return None if step.wrong is None else ((),)
        reader = number(event, "reader")
        step.needs.add(
            (
                "reading",
                reader,
            )
        )
        if self.told.get(reader) != found[1]:
            step.wrong = f"attempt {reader} of the consumer was not told to read {self.name}@{found[1]}"
            return ((),)
        args = {**self._at(*found), "r": [*self.told].index(reader) + 1}
        if action == "read_to_end":
            del args["a"]
        return ((Move(action, args),),)

    def opened(self, event: Event, step: Meaning, executor: int) -> Any:
        """A reader begins."""
        return self._read(event, step, executor, "open")

    def consumed(self, event: Event, step: Meaning, executor: int) -> Any:
        """A reader has read all of it."""
        found = self._read(event, step, executor, "read_to_end")
        if found is not None and found[0]:
            ((_, p, attempt),) = copies(event, "partition")
            step.provides.add(("consumed", p, event.args["reader"]))
            self._consumptions[p, attempt] += 1
            if event.args.get("consumptions") != self._consumptions[p, attempt]:
                step.wrong = f"this is consumption {self._consumptions[p, attempt]} of the partition"
        return found

    def missing(self, event: Event, step: Meaning, executor: int) -> Any:
        """A reader does not find it."""
        found = self._read(event, step, executor, "find_missing")
        if found is not None and found[0]:
            step.provides.add(("missing", event.args["reader"]))
        return found

    def release_received(self, event: Event, step: Meaning, executor: int) -> Any:
        """A release is carried out."""
        if event.args.get("dataset") != self.name:
            return None
        attempt = number(event, "attempt")
        step.needs.add(
            (
                "released",
                attempt,
            )
        )
        here = self._here(executor, attempt)
        if not here:
            step.wrong = f"no partition of {self.name}@{attempt} was deployed at {self.executors[executor]}"
        self._deletes(event, step, executor, attempt)
        self._ordered(step, executor, "Release", attempt)
        return (tuple(Move("receive_order", {"j": 0, "e": executor}) for _ in here),)

    def canceled(self, event: Event, step: Meaning, executor: int) -> Any:
        """A producer is stopped; what it has stored is deleted."""
        if self.name not in texts(event, "datasets"):
            return None
        attempt = number(event, "attempt")
        self._deletes(event, step, executor, attempt, self.canceled_states)
        here = self._here(executor, attempt)
        if not here:
            return ((),)
        step.needs.add(
            (
                "canceled",
                attempt,
            )
        )
        self._ordered(step, executor, "CancelProducer", attempt)
        return (tuple(Move("receive_order", {"j": 0, "e": executor}) for _ in here),)

    def abandoned(self, event: Event, step: Meaning, executor: int) -> Any:
        """An attempt has failed here."""
        if self.name not in texts(event, "datasets"):
            return None
        attempt = number(event, "attempt")
        self._deletes(event, step, executor, attempt)
        here = self._here(executor, attempt)
        full = [(p, a) for name, p, a in listed(event, "full") if name == self.name]
        if any(a != attempt or p not in here for p, a in full):
            step.wrong = f"no such partition was deployed at {self.executors[executor]}"
            return ((),)
        moves = [Move("fill_disk", self._at(*found)) for found in full]
        return ((*moves, *(Move("abort", self._at(p, attempt), optional=True) for p in here)),)

    def vanished(self, event: Event, step: Meaning, executor: int) -> Any:
        """The environment has deleted partitions."""
        lost = [(p, a) for name, p, a in copies(event, "lost") if name == self.name]
        return (tuple(Move("vanish", self._at(p, a)) for p, a in lost),) if lost else None

    def of_cluster(self, event: Event, step: Meaning, *_: Any) -> None:
        """Cluster partitions are other datasets."""

    def discarded(self, event: Event, step: Meaning, executor: int) -> Any:
        """Memory is full: what has been read of a memory-only caching exchange is discarded."""
        gone = [(p, a) for name, p, a in copies(event, "discarded") if name == self.name]
        if not gone:
            return None
        stored, room = event.args.get("stored"), event.args.get("room")
        if type(stored) is not int or type(room) is not int or stored <= room:
            step.wrong = f"nothing has to be discarded: {stored} is stored, and there is room for {room}"
        elif not self.in_memory:
            step.wrong = f"{self.name} is no memory-only caching exchange"
        for p, attempt in gone:
            if p not in self._here(executor, attempt) or not self._consumptions[p, attempt]:
                step.wrong = f"{self.name}/{p}@{attempt} is discarded, and nobody has read it to its end"
                return ((),)
        return (tuple(Move("vanish", self._at(p, a)) for p, a in gone),)


def _is(text: str, name: str, expected: list[int]) -> Constraint:
    return Constraint(
        lambda look: f"{text}: {[*look(name)]} in the model, {expected} in the log",
        lambda look: [*look(name)] == expected,
    )


def _all(text: str, name: str, values: Sequence[str], count: int) -> Constraint:
    return Constraint(text, lambda look: all(look(name, p) in values for p in range(count)))
