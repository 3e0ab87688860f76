"""The plan of a run with recorded credit-based flow control: one case for both ends of each channel."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from streamproof.conformance import Event, Loc, Observation, Plan, Rules, Span, Task, Unit
from streamproof.conformance.flink import Problem, find_copies, problem_lines, read_lines
from streamproof_models.credit_channel import PRIORITY
from streamproof_specs.credit_channel.flink.calls import Call, Reading
from streamproof_specs.credit_channel.flink.explain import CreditExplainer
from streamproof_specs.credit_channel.flink.nesting import Nesting, by_channel, nested
from streamproof_specs.credit_channel.flink.outline import outlines
from streamproof_specs.credit_channel.flink.recorded_machine import RecordedChannel
from streamproof_specs.credit_channel.flink.records import (
    ONE_END,
    Recorded,
    Recording,
    TraceRun,
    first_record,
    is_outline,
    read_recording,
)
from streamproof_specs.credit_channel.flink.spans import spans

ARRIVING = frozenset({"c.buffer_taken", "c.recv", "c.recv_empty", "c.backlog", "c.blocked"})
"""Calls in the network thread."""

FIRST_CALLS = frozenset({"c.excl_request", "c.request"})
"""The first call of a consumer."""

UNRECORDED = "no process recorded the calls of credit-based flow control; start Flink with the agent"


@lru_cache(maxsize=32)
def channel_rules(exclusive: int, pipelined: bool, threads: int, release_recorded: bool) -> Rules:
    """The machine of a channel with a number of exclusive buffers and threads."""
    return Rules(
        RecordedChannel(exclusive=exclusive, pipelined=pipelined, threads=threads, late_release=not release_recorded)
    )


@dataclass(frozen=True, slots=True)
class _Channel:
    """The records of one channel, by process, with the position of each call in its thread."""

    id: str
    records: Mapping[str, Sequence[Recorded]]
    nesting: Mapping[str, Mapping[int, Nesting]]
    recording: Recording

    def of(self, end: str) -> list[Recorded]:
        """The records of one end, or of one kind of call."""
        return [r for records in self.records.values() for r in records if r.name.startswith(end)]

    def case(self) -> Unit:
        """The channel as one behaviour, or the reason why it is not judged."""
        title = f"{self._source()} to {self._reader()}"
        unjudged = self._unjudged()
        if unjudged:
            return Unit(self.id, title, (), False, (unjudged,))
        reading = self._reading()
        network = next((r for r in self.of("c.") if r.name in ARRIVING), None)
        threads = {} if network is None else {(network.event.process, network.thread, "c."): 0}
        accounts = tuple(spans(reading, [self._call(r, threads) for r in records]) for _, records in self._in_order())
        accounts = tuple(tuple(self._checked(span) for span in account) for account in accounts)
        rules = channel_rules(reading.exclusive, reading.pipelined, max(4, len(threads)), reading.release_recorded)
        wording = CreditExplainer(reading)
        ends = {
            number: self.recording.unreturned(process)
            for number, (process, records) in enumerate(self._in_order())
            if not _is_whole(records)
        }
        task = Task(self.id, rules.system, spans=accounts, ends=ends, grounding=rules.instances, explainer=wording)
        return Unit(self.id, title, (task,), damage=self._damage(), partial=self._partial(reading))

    def _in_order(self) -> list[tuple[str, Sequence[Recorded]]]:
        """The producer's process first: it is followed as far as possible before the consumer."""
        return sorted(self.records.items(), key=lambda item: not any(r.name.startswith("p.") for r in item[1]))

    def _call(self, record: Recorded, threads: dict[tuple[str, str, str], int]) -> Call:
        place = self.nesting[record.event.process][record.done]
        thread = threads.setdefault((record.event.process, record.thread, record.name[:2]), len(threads))
        return Call(record, place.inner, place.outer, place.before, thread, self._emptying(record, place))

    def _emptying(self, record: Recorded, place: Nesting) -> bool:
        around = place.outer
        while around is not None:
            if around.name == "c.release_buffers" and around.channel == record.channel:
                return True
            around = self.nesting[record.event.process][around.done].outer
        return False

    def _checked(self, span: Span) -> Span:
        event = span.observation.event
        wrong = self.recording.wrong.get(event.loc) if event.loc is not None else None
        return span if wrong is None else replace(span, observation=Observation(event, impossible=wrong))

    def _reading(self) -> Reading:
        said = [r.number("n") for r in self.of("c.excl_request")]
        said += [r.number("initial") for name in ("c.request", "p.request") for r in self.of(name)]
        initial = Counter(n for n in said if n is not None).most_common(1)
        produced = self.of("p.")
        used = [
            r.done
            for r in produced
            if (r.name == "p.send" and r.event.args.get("got") is not False)
            or (r.name == "p.enqueue" and r.number("ret") != -1)
        ]
        return Reading(
            exclusive=initial[0][0] if initial else 0,
            pipelined=any(r.name == "p.enqueue" or "backlog_now" in r.event.args for r in produced),
            release_recorded=bool(self.of("c.release")),
            last_use=max(used, default=-1),
        )

    def _unjudged(self) -> str | None:
        cut = [p for p in self.records if p in self.recording.cut]
        if cut:
            return f"the record of {cut[0]} was truncated: a missing record may mean that the call did not happen"
        if any(r.event.args.get("thrown") is True for r in self.of("")):
            return "a call ended with an exception, so that its effect is unknown"
        urgent = [r.name for name in ("p.send", "p.enqueue") for r in self.of(name) if r.text("type") == PRIORITY]
        if self.of("p.enqueue") and urgent.count("p.send") > urgent.count("p.enqueue"):
            return "a barrier has overtaken what was queued before it at the producer, which is not followed"
        if not self.of("p.") and self.of("c.recv"):
            return ONE_END.format("producer")
        if not self.of("c.") and self.of("p.request"):
            return ONE_END.format("consumer")
        return None

    def _partial(self, reading: Reading) -> str | None:
        """Whether a process's record may lack the channel's first calls: not if it begins with the partition request,
        unless the producer has a queue, which is filled before."""
        for process, records in self.records.items():
            first = min(records, key=lambda r: r.begun).name
            requested = first in FIRST_CALLS or (first == "p.request" and not reading.pipelined)
            if not requested and self.recording.begins_late(process):
                return f"the record of {process} does not go back to its first call"
        return None

    def _damage(self) -> tuple[Loc, ...]:
        damaged = self.recording.damage()
        files = {r.event.file for records in self.records.values() for r in records if r.event.file}
        others = [Loc(file, 0) for file in sorted(files) if any(d.file != file for d in damaged)]
        return (*damaged, *others)

    def _reader(self) -> str:
        requested = next((r.text("task") for r in self.of("c.request")), "")
        return requested.partition("#")[0] or "a consumer"

    def _source(self) -> str:
        task = next((r.thread for r in self.of("p.enqueue")), "")
        partition = next((r.text("partition") for r in self.of("p.request") + self.of("c.request")), "")
        return task.partition("#")[0] or f"partition {partition.partition('@')[0]}"


def _is_whole(records: Sequence[Recorded]) -> bool:
    """Whether a process's record of a channel continues until its ends there are released."""
    names = {r.name for r in records}
    ends = {name[:2] for name in names} & {"p.", "c."}
    return all(f"{end}release" in names for end in ends)


def plan(run: TraceRun) -> Plan:
    """One case per channel of a run."""
    without_process = [file for file in run.files if is_outline(first_record(file) or {})]
    # Records of this form do not name their process: the file represents it.
    copies = find_copies(without_process, lambda file: read_lines(file, lambda problem: None), bytes.strip)
    outlined, seen, unread = outlines([file for file in without_process if file not in copies])
    recording = read_recording(replace(run, files=tuple(f for f in run.files if f not in without_process)))
    recording.problems += [
        Problem(str(file), 0, f"all that it holds is in {original.name}; it is left out")
        for file, original in copies.items()
    ]
    nesting = {process: nested(records) for process, records in recording.processes.items()}
    channels = dict(by_channel(recording))
    cases = tuple(_Channel(name, records, nesting, recording).case() for name, records in channels.items())
    events = tuple(merged([r for records in channels.values() for rs in records.values() for r in rs]))
    problems = problem_lines((*recording.problems, *unread))
    return Plan(run.name, (*cases, *outlined), (*events, *seen), 0, problems, unit="channel", nothing=UNRECORDED)


def channel_case(name: str, records: Mapping[str, Sequence[Recorded]], recording: Recording) -> Unit:
    """One channel of a recording."""
    nesting = {process: nested(recording.processes[process]) for process in records}
    return _Channel(name, records, nesting, recording).case()


def merged(records: Iterable[Recorded]) -> Iterator[Event]:
    """All events of a run: those of one process in its order, processes relative to each other by the clock."""
    processes: dict[str, list[Recorded]] = {}
    for record in records:
        processes.setdefault(record.event.process, []).append(record)
    streams = []
    for process, calls in sorted(processes.items()):
        latest, timed = 0, []
        for at, call in enumerate(sorted(calls, key=lambda r: r.done)):
            latest = max(latest, call.ns)
            timed.append((latest, process, at, call.event))
        streams.append(timed)
    for *_, event in heapq.merge(*streams, key=lambda t: t[:3]):
        yield event
