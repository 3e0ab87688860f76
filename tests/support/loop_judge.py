"""A second opinion on loops in logs of the runtime: counts and lists by channel, and none of the code of streamproof.

It takes the events of each process in the order of the file. On which channels a head awaits a baton is given.
Kept beside the sabotage of rules: the binding puts the events of a head and its channels together, and some guards are not
shown by any walk.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

Records = Iterable[Mapping[str, Any]]
Awaited = Mapping[tuple[str, str], Collection[str]]
"""For each head and baton the channels on which the baton arrives."""
POLICIES = ("any", "feedback-first", "feedback-first-when-utilised", "fair", "forward-first")


class Wrong(Exception):
    """An event that the rules of loops do not allow."""


def wrong(records: Records, awaited: Awaited) -> str | None:
    """The first event of a head that the rules do not allow, or whose numbers are not those of the rules."""
    traces: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        traces[record["trace"]].append(record)
    for own in traces.values():
        written: dict[str, Counter[str]] = defaultdict(Counter)
        heads: dict[str, Head] = {}
        for record in own:
            if record["event"] in ("record_processed", "buffers_flushed"):
                written[record["process"]].update(record["args"]["channels"])
            if record["event"] == "loop_opened":
                if record["process"] in heads:
                    return f"{record['process']}#{record['seq']}: the loop is open already"
                heads[record["process"]] = Head(record["process"], record["args"], awaited)
        for record in own:
            head = heads.get(record["process"])
            try:
                if head is not None:
                    head.read(record, written)
                elif record["event"] in ("feedback_received", "spill_read"):
                    raise Wrong("no loop was opened")
                elif record["event"] == "finished" and record["process"] == "jobmaster":
                    for each in heads.values():
                        each.finished(written)
            except (Wrong, KeyError, TypeError, IndexError) as error:
                return f"{record['process']}#{record['seq']} {record['event']}: {error!r}"
    return None


def check(condition: bool, text: str) -> None:
    """Raises `Wrong` if it is false."""
    if not condition:
        raise Wrong(text)


class Head:
    """One head of one attempt."""

    def __init__(self, task: str, opened: Mapping[str, Any], awaited: Awaited) -> None:
        self.task, self.awaited = task, awaited
        self.forward, self.feedback = opened["forward"], opened["feedback"]
        self.policy, self.buffers, self.most = opened["policy"], opened["buffers"], opened["held"]
        self.spilling = opened["spilling"]
        self.waiting: dict[str, list[str]] = {c: [] for c in (*self.forward, *self.feedback)}
        self.memory: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self.records: Counter[str] = Counter()
        self.own: Counter[str] = Counter()
        self.batons: set[tuple[str, str]] = set()
        self.held = 0
        self.over = False
        self.last = "feedback"

    def read(self, record: Mapping[str, Any], written: Mapping[str, Counter[str]]) -> None:
        """One event of its process."""
        event, args, state = record["event"], record.get("args", {}), record.get("state", {})
        channel = args.get("channel")
        if event == "loop_opened":
            check(self.policy in POLICIES, "no such policy")
        elif event in ("buffer_received", "feedback_received"):
            check((channel in self.feedback) == (event == "feedback_received") or not self.spilling, "another side")
            self.arrives(channel, args, state, written)
        elif event == "spill_read":
            count = len(args["numbers"])
            on_disk = len(self.waiting[channel]) - self.memory[channel]
            check(0 < count <= on_disk and self.memory[channel] + count <= self.buffers, "nothing to read, or no place")
            first = self.taken[channel] + self.memory[channel]
            check(args["numbers"] == [*range(first, first + count)], "other items")
            self.memory[channel] += count
            self.places(channel, state)
        elif event in ("record_received", "baton_received", "channel_released"):
            kind = {"record_received": "record", "channel_released": "end"}.get(event, f"baton {args.get('baton')}")
            self.take(channel, kind, args)
        elif event in ("record_processed", "buffers_flushed"):
            done = args.get("done", 1)
            check(self.held >= done, "nothing is held")
            self.held -= done
            self.own.update(c for c in args["channels"] if c in self.feedback)
        self.over = self.over or (
            state.get("phase") == "TERMINATED"
            and event in ("record_received", "baton_received", "record_processed", "buffers_flushed", "terminated")
        )

    def arrives(self, channel: str, args: Mapping[str, Any], state: Mapping[str, Any], written: Any) -> None:
        """An item arrives."""
        item, queue = args["item"], self.waiting[channel]
        check(item in ("record", "end") or (self.task, item[6:]) in self.awaited, "no such item")
        if channel in self.feedback:
            self.records[channel] += item == "record"
            others = sum(counts[channel] for task, counts in written.items() if task != self.task)
            check(self.records[channel] <= others + self.own[channel], "a record that nobody has written")
        if channel in self.feedback and self.spilling:
            check(args["number"] == self.arrived[channel], "another number")
            self.arrived[channel] += 1
            in_order = self.memory[channel] == len(queue)
            self.memory[channel] += in_order and self.memory[channel] < self.buffers
            queue.append(item)
            self.places(channel, state)
        else:
            queue.append(item)

    def places(self, channel: str, state: Mapping[str, Any]) -> None:
        """The recorded places."""
        own = {"memory": self.memory[channel], "spilled": len(self.waiting[channel]) - self.memory[channel]}
        check(own == dict(state), f"{own} is due")

    def take(self, channel: str, kind: str, args: Mapping[str, Any]) -> None:
        """An item is taken."""
        queue = self.waiting[channel]
        check(bool(queue) and queue[0] == kind, "another item is first")
        is_feedback = channel in self.feedback
        if self.policy != "any":
            other = any(self.ready(c, kind) for c in (self.forward if is_feedback else self.feedback))
            check(not other or self.prefers_feedback() == is_feedback, f"{self.policy} takes the other input")
        check(self.over or (channel, kind) not in self.batons, "the same baton waits for other channels")
        queue.pop(0)
        if is_feedback and self.spilling:
            check(self.memory[channel] > 0, "it is on disk")
            check(args["number"] == self.taken[channel] and type(args["number"]) is int, "another item is due")
            self.memory[channel] -= 1
            self.taken[channel] += 1
        self.last = "feedback" if is_feedback else "forward"
        if kind == "record":
            check(self.over or not self.most or self.held < self.most, "no place")
            self.held += not self.over
        elif kind != "end":
            self.batons.add((channel, kind))
            together = {(c, kind) for c in self.awaited[self.task, kind[6:]]}
            if together <= self.batons:
                self.batons -= together

    def ready(self, channel: str, instead: str) -> bool:
        """Whether the first item of a channel can be taken instead of one of another kind."""
        if not (self.memory[channel] if self.spilling and channel in self.feedback else self.waiting[channel]):
            return False
        kind = self.waiting[channel][0]
        if kind == "record":
            return instead == "record" or 0 < self.most > self.held
        return kind == "end" or self.over or (channel, kind) not in self.batons

    def prefers_feedback(self) -> bool:
        """By the policy, if both inputs have something."""
        if self.policy in ("fair", "forward-first"):
            return self.policy == "fair" and self.last == "forward"
        full = any(len(self.waiting[c]) >= self.buffers for c in self.feedback)
        return self.policy == "feedback-first" or full or self.last == "forward"

    def finished(self, written: Mapping[str, Counter[str]]) -> None:
        """The job has finished: no record is anywhere."""
        check(not self.held and not any("record" in queue for queue in self.waiting.values()), "a record is left")
        for channel in self.feedback:
            all_written = sum(counts[channel] for counts in written.values())
            check(all_written == self.records[channel], "a record has not arrived")
