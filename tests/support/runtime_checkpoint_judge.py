"""A second judge of the checkpoints in the runtime's logs: plain sets and counters, without a machine.

The first event of a run is the beginning of the job. Of every process the events are in their order. JobMasters are judged
one after the other: each has the checkpoint that the one before has left.
Kept beside the sabotage of rules: most actions of the machine are hidden, and changed logs that are right must be accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]


_SILENT = ("jobmaster", "buffers_logged")
"""What sends no buffers."""


_SENDS = ("record_produced", "record_processed", "buffers_flushed", "buffers_replayed")


class Refused(Exception):
    """An event that no run has."""


def refuse(condition: Any, why: str) -> None:
    """Raises `Refused` if the condition holds."""
    if condition:
        raise Refused(why)


def pairs(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The buffers of an event: the channel, and what is in them."""
    refuse(len(args["channels"]) != len(args["contents"]), "channels without contents")
    return [*zip(args["channels"], args["contents"], strict=True)]


def arranged(logs: Mapping[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """The buffers of a checkpoint, those at the receiver of their channel first."""
    found = [(task, channel, content) for task, own in logs.items() for channel, content in own]
    first = [(c, content) for task, c, content in found if c.partition(">")[2] == task]
    return first + [(c, content) for task, c, content in found if c.partition(">")[0] == task]


class CheckpointJudge:
    """Reads the events of the JobMasters of a job one by one."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.snapshots: dict[tuple[int, int], dict[str, tuple[Counter[str], Counter[str], int]]] = {}
        """By attempt and checkpoint: what each subtask had sent and received, and the buffers that it held."""
        self.tasks: set[str] = set()
        sent: dict[tuple[str, str], Counter[str]] = {}
        received: dict[tuple[str, str], Counter[str]] = {}
        held: Counter[tuple[str, str]] = Counter()
        feedback: dict[tuple[str, str], list[str]] = {}
        self.logs: dict[tuple[int, int], dict[str, list[tuple[str, str]]]] = {}
        """By attempt and checkpoint: what each loop head has logged."""
        self.replays: dict[int, dict[str, list[tuple[str, str]]]] = {}
        """By attempt: what each loop head has begun with."""
        self.unlogged: dict[tuple[int, int], set[str]] = {}
        """By attempt and checkpoint: loop heads whose log is not complete."""
        self.sent: dict[tuple[int, int], dict[str, list[str]]] = {}
        """By attempt and checkpoint, if barriers overtake buffers: what had been sent on each channel."""
        contents: dict[tuple[str, str], dict[str, list[str]]] = {}
        taken_from: dict[tuple[str, str], list[str]] = {}
        self.unaligned = False
        open_logs: dict[tuple[str, str], tuple[tuple[int, int], set[str], list[tuple[str, str]]]] = {}
        early: dict[tuple[str, str], set[str]] = {}
        for record in records:
            trace, process, event = (record[k] for k in ("trace", "process", "event"))
            who = trace, process
            args = record.get("args", {})
            self.unaligned |= event == "job_started" and args.get("unaligned") is True
            if "#" not in trace:
                continue
            if event in _SENDS and process != "jobmaster":
                for channel, content in [(args["channel"], args["content"])] if "channel" in args else pairs(args):
                    contents.setdefault(who, {}).setdefault(channel, []).append(content)
            elif event == "record_received":
                taken_from.setdefault(who, []).append(args["channel"])
            if event == "deployed":
                self.tasks = {*args["placement"]}
            attempt = int(trace.rpartition("#")[2])
            if event == "loop_opened":
                feedback[who] = args["feedback"]
            elif event == "buffers_replayed":
                self.replays.setdefault(attempt, {}).setdefault(process, sorted(pairs(args)))
            elif event == "barrier_received" and args["channel"] in feedback.get(who, ()):
                away = open_logs[who][1] if who in open_logs else set()
                (away.discard if args["channel"] in away else early.setdefault(who, set()).add)(args["channel"])
            elif event == "buffers_logged" and self.unaligned:
                key = attempt, args["checkpoint"]
                refuse(process not in self.unlogged.get(key, ()), "no snapshot, or logged twice")
                self.unlogged[key].discard(process)
                self.logs.setdefault(key, {})[process] = pairs(args)
            elif event == "buffers_logged":
                refuse(who not in open_logs, "no snapshot")
                key, _, taken = open_logs.pop(who)
                refuse(key != (attempt, args["checkpoint"]), "another checkpoint")
                if sorted(taken) == sorted(pairs(args)):
                    self.unlogged[key].discard(process)
                self.logs.setdefault(key, {})[process] = sorted(pairs(args))
            if event == "record_received":
                received.setdefault(who, Counter())[args["channel"]] += 1
                if who in open_logs and args["channel"] in open_logs[who][1]:
                    open_logs[who][2].append((args["channel"], args["content"]))
            elif event == "snapshot_taken":
                key = attempt, args["checkpoint"]
                known = self.snapshots.setdefault(key, {})
                refuse(process in known, "two snapshots")
                known[process] = Counter(sent.get(who)), Counter(received.get(who)), held[who]
                if self.unaligned:
                    done = taken_from.get(who, [])[: len(taken_from.get(who, [])) - held[who]]
                    known[process] = Counter(), Counter(done), 0
                    self.unlogged.setdefault(key, set()).add(process)
                    for channel, found in contents.get(who, {}).items():
                        self.sent.setdefault(key, {})[channel] = [*found]
                elif who in feedback:
                    open_logs[who] = key, {*feedback[who]} - early.pop(who, set()), []
                    self.unlogged.setdefault(key, set()).add(process)
            else:
                made = [args["channel"]] if event == "record_produced" else args.get("channels", [])
                sent.setdefault(who, Counter()).update(made if {process, event}.isdisjoint(_SILENT) else [])
            held[who] = (record.get("state") or {}).get("held", held[who])
        self.stage, self.attempt, self.pending, self.last, self.latest = "CREATED", -1, 0, 0, -1
        self.acknowledged: set[str] = set()
        self.possible = {0}
        """What the present JobMaster may find as the latest checkpoint."""
        self.triggered: set[tuple[int, int]] = set()

    def next_master(self) -> None:
        """The JobMaster is lost; it may have stored a checkpoint that all have acknowledged."""
        if self.latest >= 0:
            self.possible = {self.latest}
        if self.pending and self.acknowledged == self.tasks:
            self.possible = {*self.possible, self.pending}
        self.stage, self.pending, self.latest = "CREATED", 0, -1

    def read(self, event: str, args: Mapping[str, Any]) -> None:
        """The next event of the JobMaster; raises `Refused` if it cannot be."""
        refuse(self.stage == "OVER", "after the end")
        complete = bool(self.pending) and self.acknowledged == self.tasks
        ends = event in ("checkpoint_completed", "checkpoint_aborted")
        refuse(complete and not ends, "completes, or cannot be stored, when all have acknowledged")
        refuse(event == "checkpoint_completed" and not complete, "completes when all have acknowledged")
        getattr(self, event)(args)

    def _goes(self, before: str, after: str) -> None:
        refuse(self.stage not in before.split(), f"not {before}")
        self.stage = after

    def region_scheduled(self, args: Mapping[str, Any]) -> None:
        """A new attempt."""
        self._goes("CREATED", "SCHEDULED")
        self.attempt = args["attempt"]

    def checkpoint_restored(self, args: Mapping[str, Any]) -> None:
        """It begins from the latest checkpoint."""
        self._goes("SCHEDULED", "DEPLOYING")
        if self.latest < 0:
            refuse(args["checkpoint"] not in self.possible, "not the latest of the JobMasters before")
            self.latest = self.last = args["checkpoint"]
        refuse(args["checkpoint"] != self.latest, "not the latest")
        before = [n for n, c in self.logs if c == self.latest and n < self.attempt]
        kept = self.logs[max(before), self.latest] if before else {}
        for task, replayed in self.replays.get(self.attempt, {}).items():
            if self.unaligned:
                mine = [(c, content) for c, content in arranged(kept) if c.partition(">")[0] == task]
                refuse(replayed != sorted(mine), "other buffers than those of the checkpoint")
            else:
                refuse(replayed != kept.get(task, []), "another log")

    def region_running(self, _: Mapping[str, Any]) -> None:
        """It runs."""
        self._goes("DEPLOYING", "RUNNING")

    def region_failed(self, _: Mapping[str, Any]) -> None:
        """The pending checkpoint has been aborted before."""
        self._goes("DEPLOYING RUNNING", "CREATED")
        refuse(self.pending, "pending")

    def region_finished(self, _: Mapping[str, Any]) -> None:
        """The same."""
        self._goes("RUNNING", "FINISHED")
        refuse(self.pending, "pending")

    def job_finished(self, _: Mapping[str, Any]) -> None:
        """The end."""
        self._goes("FINISHED", "OVER")

    def job_failed(self, _: Mapping[str, Any]) -> None:
        """Another end."""
        self._goes("DEPLOYING RUNNING", "OVER")
        refuse(self.pending, "pending")

    def checkpoint_triggered(self, args: Mapping[str, Any]) -> None:
        """One at a time, in order."""
        self._goes("RUNNING", "RUNNING")
        refuse(self.pending or args["checkpoint"] != self.last + 1, "not the next")
        self.pending = self.last = args["checkpoint"]
        self.acknowledged = set()
        self.triggered.add((self.attempt, self.last))

    def checkpoint_acknowledged(self, args: Mapping[str, Any]) -> None:
        """After a snapshot, once."""
        refuse(args["checkpoint"] != self.pending or not self.pending, "not pending")
        refuse(args["task"] in self.acknowledged, "twice")
        refuse(args["task"] not in self.snapshots.get((self.attempt, self.pending), {}), "without snapshot")
        self.acknowledged.add(args["task"])

    def checkpoint_aborted(self, args: Mapping[str, Any]) -> None:
        """The pending one."""
        refuse(args["checkpoint"] != self.pending or not self.pending, "not pending")
        self.pending = 0

    def checkpoint_completed(self, args: Mapping[str, Any]) -> None:
        """It is a consistent cut."""
        refuse(args["checkpoint"] != self.pending, "not pending")
        cut = self.snapshots[self.attempt, self.pending]
        sent: Counter[str] = Counter()
        received: Counter[str] = Counter()
        refuse(self.unlogged.get((self.attempt, self.pending)), "a log is not complete, or another one")
        for made, got, held in cut.values():
            refuse(held, "held")
            sent += made
            received += got
        for logged in self.logs.get((self.attempt, self.pending), {}).values():
            received += Counter(channel for channel, _ in logged)
        if self.unaligned:
            logs = self.logs.get((self.attempt, self.pending), {})
            of: dict[str, list[str]] = {}
            for channel, content in arranged(logs):
                of.setdefault(channel, []).append(content)
            everywhere = self.sent.get((self.attempt, self.pending), {})
            got = sum((got for _, got, _ in cut.values()), Counter[str]())
            for channel in {*everywhere, *got, *of}:
                refuse(everywhere.get(channel, [])[got[channel] :] != of.get(channel, []), "other buffers")
                refuse(got[channel] > len(everywhere.get(channel, [])), "not sent")
        else:
            refuse(sent != received, "no cut")
        self.latest, self.pending = self.pending, 0


def accepts(records: list[Record]) -> bool:
    """Whether the log of a job is that of a run."""
    try:
        judge = CheckpointJudge(records)
        own = [r for r in records if r["process"] == "jobmaster" and "#" not in r["trace"]]
        job, first = records[0]["trace"], True
        masters = sorted({r["trace"] for r in own}, key=lambda trace: int(trace[len(job) + 1 :] or 0))
        for master in masters:
            if not first:
                judge.next_master()
            first = False
            mine = [r for r in own if r["trace"] == master]
            begins = [n for n, r in enumerate(mine) if r["event"] == "job_started"]
            refuse(begins != [0], "one beginning")
            for record in mine:
                if hasattr(judge, record["event"]):
                    judge.read(record["event"], record.get("args", {}))
        refuse(judge.snapshots.keys() - judge.triggered, "a snapshot without a trigger")
    except (Refused, KeyError):
        return False
    return True
