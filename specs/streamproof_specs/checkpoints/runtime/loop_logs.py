"""The binding of the runtime's event logs to the log of a feedback edge: each feedback channel of a job is one behaviour.

The machine is `loop_checkpoint_counts`, the loop of one head and one body. The head is the subtask that reads the channel,
the body the one that writes it, and a record is a buffer. The rest of the loop is not followed: a buffer for which the body
has received nothing that is followed is one that the head has read from the source, and what the body does not send back
leaves the loop. Of two events of head and body neither of which knows the other the order is free: the departure of a barrier
is taken before the snapshot of the body.

What a log says of its log, of its replay and of completed checkpoints must be what the machine has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from streamproof import System
from streamproof.conformance import (
    NUMBER,
    TEXTS,
    Constraint,
    Event,
    EventForm,
    LogForm,
    Move,
    Observation,
    Plan,
    Stream,
    Task,
    Unit,
    compile_model,
    may_have_event,
)
from streamproof_models.checkpoints.loop_counts import LoopCheckpointCounts
from streamproof_specs.baton.runtime import EMITS, REPLAYED
from streamproof_specs.checkpoints.runtime.binding import INTERVAL
from streamproof_specs.checkpoints.runtime.snapshots import (
    LOGGED,
    RETURNED,
    SNAPSHOT,
    buffers,
    by_subtask,
    ends,
    feedback_of,
    number,
)
from streamproof_specs.cyclic.runtime.binding import OPENED, heads_of
from streamproof_specs.runtime.instances import Instances
from streamproof_specs.runtime.logs import JOBMASTER, JobMasterLogs, attempts, first_event, parts, unopened, without
from streamproof_specs.runtime.sessions import session
from streamproof_specs.runtime.vocabulary import (
    ATTEMPT,
    BY_CHANNEL,
    BY_NUMBER,
    CHANNEL,
    CHANNELS,
    CHECKPOINT,
    CONTENTS,
    GRAPH,
    LACKING,
    OF_ATTEMPT,
    OF_JOB,
    SUBTASK,
    TITLE,
)

_Attempts = Mapping[int, Mapping[str, Sequence[Event]]]
"""The events of each subtask, by attempt."""


class RuntimeLoopLogs(JobMasterLogs):
    """Follows every feedback channel of every job with checkpoints."""

    def recognises(self, path: Path) -> bool:
        """Whether a path has a log of the runtime, of a job with checkpoints and a loop."""
        if INTERVAL not in (first_event(path).get("args") or {}):
            return False
        files = [file for run in self.runs(path) for file in parts(run)]
        return any(may_have_event(file, OPENED) or may_have_event(file, "deployed", "~") for file in files)

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each feedback channel of a job. Raises `InputError` for a log that is no runtime's."""
        found = attempts(events)
        jobs: dict[str, dict[int, dict[str, list[Event]]]] = {}
        for trace, own in found.items():
            job, _, attempt = trace.rpartition("#")
            if attempt.isdecimal():
                jobs.setdefault(job, {})[int(attempt)] = by_subtask(own)
        followed = [
            Feedback(job, channel, head, dict(sorted(own.items())), _completed(job, events))
            for job, own in jobs.items()
            for channel, head in sorted(_channels(own).items())
        ]
        silent = (u for t, own in found.items() for u in unopened(own, "log of", without(own, OPENED, heads_of)))
        cases = (*(each.unit() for each in followed), *silent)
        read = tuple(event for each in followed for event in each.events)
        return Plan(name, cases, read, unit="feedback channel", nothing="no job with a loop takes checkpoints")


def _channels(own: _Attempts) -> dict[str, str]:
    """The feedback channels of a job, with their heads."""
    return {c: task for by_task in own.values() for task, events in by_task.items() for c in feedback_of(events)}


def _completed(job: str, events: Iterable[Event]) -> dict[tuple[int, int], Event]:
    """The completed checkpoints, by attempt and number: what the JobMasters record, and what a restart begins from."""
    found: dict[tuple[int, int], Event] = {}
    logged: dict[int, set[int]] = {}
    by_master: dict[int, list[Event]] = {}
    for event in events:
        if event.process == JOBMASTER and "#" not in event.trace and session(event.trace)[0] == job:
            by_master.setdefault(session(event.trace)[1], []).append(event)
        elif event.event == LOGGED and event.trace.startswith(f"{job}#"):
            logged.setdefault(number(event, "checkpoint"), set()).add(int(event.trace.rpartition("#")[2]))
    for _, own in sorted(by_master.items()):
        attempt = 0
        for event in sorted(own, key=lambda e: e.seq):
            if event.event == "region_scheduled":
                attempt = number(event, "attempt")
            elif event.event == "checkpoint_completed":
                found[attempt, number(event, "checkpoint")] = event
            elif event.event == "checkpoint_restored" and (c := number(event, "checkpoint")):
                last = max((a for a in logged.get(c, ()) if a < attempt), default=None)
                if last is not None and not any((a, c) in found for a in range(attempt)):
                    found[last, c] = event
    return found


@lru_cache(maxsize=64)
def _machine(records: int, failures: int) -> tuple[System, Instances]:
    system = compile_model(LoopCheckpointCounts(records=records, failures=failures), without_properties=True)
    return system, Instances(system)


def _power(least: int) -> int:
    return 1 << (max(1, least) - 1).bit_length()


class Feedback:
    """One feedback channel of a job, in all its attempts."""

    def __init__(
        self, job: str, channel: str, head: str, attempts: _Attempts, completed: Mapping[tuple[int, int], Event]
    ) -> None:
        self.trace, self._title = f"{job} {channel}", f"feedback channel {channel} of {job}"
        self._channel, self._head, self._body = channel, head, ends(channel)[0]
        self._completed = completed
        read = [_Attempt(self, n, own) for n, own in attempts.items() if {head, self._body} & own.keys()]
        self._sent = sum(each.sent for each in read)
        self._restarts = len(read) - 1
        self._observations = [o for at, each in enumerate(read) for o in each.observations(is_first=not at)]
        self.events = [observation.event for observation in self._observations]

    @property
    def channel(self) -> str:
        """The channel."""
        return self._channel

    @property
    def ends(self) -> tuple[str, str]:
        """Its head and its body."""
        return self._head, self._body

    def completion(self, attempt: int, checkpoint: int) -> Event | None:
        """The event by which a checkpoint of an attempt is known to have completed, if there is one."""
        return self._completed.get((attempt, checkpoint))

    def completions(self, attempt: int) -> Iterator[tuple[int, Event]]:
        """The completed checkpoints of an attempt."""
        return ((c, event) for (a, c), event in self._completed.items() if a == attempt)

    def unit(self) -> Unit:
        """The behaviour to follow."""
        system, instances = _machine(_power(self._sent), _power(self._restarts))
        task = Task(self.trace, system, (Stream(self._observations),), grounding=instances)
        return Unit(self.trace, self._title, (task,))


class _Attempt:
    """The events of head and body in one attempt, in an order in which the machine can follow them."""

    def __init__(self, of: Feedback, attempt: int, own: Mapping[str, Sequence[Event]]) -> None:
        self._of, self._attempt = of, attempt
        head, body = of.ends
        self._own_loop = head == body
        self._head = [e for e in own.get(head, ()) if self._concerns_head(e) or (self._own_loop and self._sends(e))]
        self._body = [] if self._own_loop else [e for e in own.get(body, ()) if e.event == SNAPSHOT or self._sends(e)]
        self._replayed = next((buffers(e).get(of.channel, []) for e in self._head if e.event == REPLAYED), [])
        self._logged = {number(e, "checkpoint"): buffers(e) for e in self._head if e.event == LOGGED}
        self.sent = sum(self._sends(e) for e in (*self._head, *self._body) if e.event in EMITS)
        """Buffers that the body sends on the channel."""
        self._at = 0
        """The next event of the body."""
        self._arrived = len(self._replayed)
        """Buffers that have been sent, or replayed, by the events before."""
        self._inner = self._behind = 0
        """Records of the machine between head and body, before and behind the barrier."""
        self._barrier = 0
        """The checkpoint whose barrier is between the departure from the head and its return."""
        self._passed = False
        """Whether the body has its snapshot for it."""
        self._done: set[int] = set()
        """Checkpoints that the machine has completed."""
        self._early: set[int] = set()
        """Checkpoints whose barrier has come before the head's snapshot."""

    def _concerns_head(self, event: Event) -> bool:
        of_channel = event.event in ("record_received", RETURNED) and event.args.get("channel") == self._of.channel
        return of_channel or event.event in (SNAPSHOT, LOGGED, REPLAYED, OPENED)

    def _sends(self, event: Event) -> int:
        channels = event.args.get("channels") if event.event in EMITS else None
        return channels.count(self._of.channel) if isinstance(channels, list) else 0

    # --- observations

    def observations(self, *, is_first: bool) -> Iterator[Observation]:
        """In an order that agrees with the messages of the channel. The first event of another attempt is the restart."""
        begins = [] if is_first else [Move("fail")]
        reads = 0
        for event in self._head:
            if begins and event.event in (OPENED, REPLAYED):
                after = (_is("back", len(self._replayed), f"buffers of {self._of.channel} are replayed"),)
                yield self._seen(event, begins, after=after)
                begins = []
                continue
            if begins:  # the log has no event of the beginning
                yield self._seen(event, begins)
                begins = []
            if event.event == "record_received":
                reads += 1
                yield from self._body_until(reads)
                yield self._seen(event, [Move("read_back")])
                self._to_body()
            elif event.event == SNAPSHOT:
                yield from self._departs(event, number(event, "checkpoint"))
            elif event.event == RETURNED:
                yield from self._returns(event, number(event, "checkpoint"))
            elif event.event == LOGGED and number(event, "checkpoint") == self._barrier:
                yield from self._returns(event, self._barrier)
            elif sends := self._sends(event):
                yield self._seen(event, self._sending(sends))
        if begins and self._body:
            yield self._seen(self._body[0], begins, constraint=())
            self._at = 0
        while self._at < len(self._body):
            yield from self._next_of_body()
        for checkpoint, event in self._of.completions(self._attempt):
            if checkpoint not in self._done:
                head, _ = self._of.ends
                yield self._impossible(event, f"the log of {head} for checkpoint {checkpoint} is not complete")

    def _seen(
        self,
        event: Event,
        moves: Sequence[Move],
        after: tuple[Constraint, ...] = (),
        constraint: tuple[Constraint, ...] = (),
    ) -> Observation:
        return Observation(replace(event, trace=self._of.trace), (tuple(moves),), after, constraint)

    def _impossible(self, event: Event, why: str) -> Observation:
        return Observation(replace(event, trace=self._of.trace), impossible=why)

    # --- the body

    def _body_until(self, reads: int) -> Iterator[Observation]:
        """The events of the body by which so many buffers have been sent."""
        while self._arrived < reads and self._at < len(self._body):
            event = self._body[self._at]
            if event.event == SNAPSHOT and number(event, "checkpoint") != self._barrier and not self._is_over(event):
                return  # behind a barrier that the head has not sent: the machine has no such buffer
            yield from self._next_of_body()

    def _is_over(self, event: Event) -> bool:
        """Whether the head takes no snapshot for the checkpoint any more."""
        mine = (number(e, "checkpoint") for e in self._head if e.event == SNAPSHOT)
        return number(event, "checkpoint") not in mine

    def _next_of_body(self) -> Iterator[Observation]:
        event = self._body[self._at]
        self._at += 1
        if event.event != SNAPSHOT:
            yield self._seen(event, self._sending(self._sends(event)))
        elif number(event, "checkpoint") == self._barrier and not self._passed:
            yield self._seen(event, self._passing())
        else:
            yield self._seen(event, ())

    def _sending(self, sends: int) -> list[Move]:
        moves: list[Move] = []
        self._arrived += sends
        for _ in range(sends):
            if not self._inner and (not self._barrier or self._passed):
                moves.append(Move("emit"))
                self._inner += 1
            moves.append(Move("process", {"branch": "returns"}))
            self._inner = max(0, self._inner - 1)
        return moves

    def _passing(self) -> list[Move]:
        leaving = [Move("process", {"branch": "leaves"})] * self._inner
        self._inner, self._behind, self._passed = self._behind, 0, True
        return [*leaving, Move("pass_barrier")]

    # --- the head

    def _to_body(self) -> None:
        if self._barrier and not self._passed:
            self._behind += 1
        else:
            self._inner += 1

    def _departs(self, event: Event, checkpoint: int) -> Iterator[Observation]:
        if self._barrier:  # of a checkpoint that the body has no snapshot for
            yield self._seen(event, ())
            return
        ahead = self._body[self._at :]
        until = next((at for at, e in enumerate(ahead) if _of(e) == checkpoint), None)
        needed = sum(map(self._sends, ahead[:until]))
        completes = self._of.completion(self._attempt, checkpoint) is not None
        supplied = max(0, needed - self._inner)
        self._inner += supplied
        branch = {"branch": "pending" if completes else "aborted"}
        moves = [*[Move("emit")] * supplied, Move("depart", branch)]
        self._barrier, self._passed = checkpoint, False
        yield self._seen(event, [*moves, *(self._passing() if self._own_loop else ())])
        if checkpoint in self._early:
            yield from self._returns(event, checkpoint)

    def _returns(self, event: Event, checkpoint: int) -> Iterator[Observation]:
        """The barrier is back, or the loop has ended: the log is complete."""
        if checkpoint != self._barrier:
            self._early.add(checkpoint)
            yield self._seen(event, ())
            return
        if not self._passed and any(_of(e) == checkpoint for e in self._body[self._at :]):
            while not self._passed:
                yield from self._next_of_body()
        if not self._passed:
            _, body = self._of.ends
            wrong = f"the barrier of checkpoint {checkpoint} returns, and {body} has taken no snapshot"
            yield self._impossible(event, wrong) if event.event == RETURNED else self._seen(event, ())
            return
        moves = [Move("return_barrier")]
        if self._of.completion(self._attempt, checkpoint) is not None:
            moves.append(Move("complete"))
            self._done |= {checkpoint} & self._logged.keys()
        self._barrier = 0
        before: tuple[Constraint, ...] = ()
        if checkpoint in self._logged:
            logged = len(self._logged[checkpoint].get(self._of.channel, []))
            before = (_is("log", logged, f"buffers of {self._of.channel} are logged"),)
        yield self._seen(event, moves, constraint=before)


def _of(event: Event) -> int | None:
    """The checkpoint of a snapshot."""
    return number(event, "checkpoint") if event.event == SNAPSHOT else None


def _is(name: str, recorded: int, what: str) -> Constraint:
    return Constraint(
        lambda look: f"{recorded} {what}; in the model {look(name)}", lambda look: bool(look(name) == recorded)
    )


_OF_CHECKPOINT = {"checkpoint": CHECKPOINT}
_SENT = {"channels": CHANNELS, "contents": CONTENTS}
_RETURNS = ("fail", "return_barrier", "complete")
_SENDS = EventForm(
    None,
    SUBTASK,
    ("fail", "emit", "process"),
    {"channels": CHANNELS},
    meaning="Buffers leave; a record has been processed, or held buffers are flushed.",
)
_FORM = LogForm(
    TITLE,
    {
        "job_started": EventForm(
            None,
            OF_JOB,
            args={INTERVAL: NUMBER("nanoseconds between two checkpoints").or_none("the job takes no checkpoints")},
            meaning="The job begins at this JobMaster.",
        ),
        "region_scheduled": EventForm(
            None, OF_JOB, args={"attempt": ATTEMPT}, meaning="The region, which is the whole job, begins an attempt."
        ),
        "deployed": EventForm(
            None, OF_ATTEMPT, args={"graph": GRAPH}, meaning="The JobMaster deploys the subtasks of this graph."
        ),
        "checkpoint_completed": EventForm(
            None, OF_JOB, args=_OF_CHECKPOINT, meaning="All snapshots have arrived, and are stored."
        ),
        "checkpoint_restored": EventForm(
            None, OF_JOB, args=_OF_CHECKPOINT, meaning="An attempt goes on from the latest checkpoint."
        ),
        OPENED: EventForm(
            None,
            SUBTASK,
            ("fail",),
            {"feedback": TEXTS("its feedback channels")},
            meaning="The head of a loop opens its inputs; in a later attempt it has failed before.",
        ),
        REPLAYED: EventForm(
            None, SUBTASK, ("fail",), _SENT, meaning="A head goes on from a checkpoint: its feedback begins with this."
        ),
        "record_received": EventForm(
            None, SUBTASK, ("fail", "read_back"), {"channel": CHANNEL}, meaning="A head takes a buffer of feedback."
        ),
        **dict.fromkeys(EMITS, _SENDS),
        SNAPSHOT: EventForm(
            None,
            SUBTASK,
            (*_RETURNS, "emit", "depart", "process", "pass_barrier"),
            _OF_CHECKPOINT,
            meaning="A subtask has taken its snapshot: the barrier departs from a head, or passes the body.",
        ),
        RETURNED: EventForm(
            None, SUBTASK, _RETURNS, {"channel": CHANNEL, **_OF_CHECKPOINT}, meaning="A barrier comes back to a head."
        ),
        LOGGED: EventForm(
            None,
            SUBTASK,
            _RETURNS,
            {**_OF_CHECKPOINT, **_SENT},
            meaning="The log of a head for a checkpoint is complete.",
        ),
    },
    (BY_NUMBER, BY_CHANNEL),
    LACKING,
)

BINDING = RuntimeLoopLogs(_FORM)
