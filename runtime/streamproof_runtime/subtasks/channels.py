"""The channels of one attempt of a region on a TaskExecutor: what their ends do, what they record, and what they send.

An end is that of a subtask, so that its events are the subtask's. Channels between subtasks of one TaskExecutor have the same
credits as those of the network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.jobs.graph import Channel
from streamproof_runtime.subtasks.buffers import BYTES
from streamproof_runtime.subtasks.flow import BUFFERS, FLOATING, FlowRules, Gate, Leaving
from streamproof_runtime.subtasks.items import BARRIER, Item, kind_of
from streamproof_runtime.subtasks.sender_pools import LARGEST_SHARE
from streamproof_runtime.subtasks.spanning import is_too_large, parts
from streamproof_runtime.subtasks.subtask import Subtask


class ChannelHost(Protocol):
    """What the ends of channels need of the region."""

    subtasks: dict[str, Subtask]

    def send_about(self, channel: str, to: str, kind: str, *more: Any) -> bool:
        """Sends a message to the TaskExecutor of a subtask; False if it is this one."""

    def is_congested(self, to: str) -> bool:
        """Whether the connection to the TaskExecutor of a subtask takes no more."""

    def deliver(self, channel: str, item: Any, backlog: int) -> None:
        """An item has arrived."""

    def wake(self, task: str) -> None:
        """A subtask may have something to do."""


class Channels:
    """The ends of channels; those of feedback have no limit and no events here, unless they are bounded."""

    def __init__(
        self,
        host: ChannelHost,
        channels: Mapping[str, Channel],
        rules: FlowRules,
        exclusive: int = BUFFERS,
        floating: int = FLOATING,
        *,
        bounds_feedback: bool = False,
        size: int = BYTES,
        sender_buffers: int | None = None,
    ) -> None:
        """`exclusive` and `floating`: buffers at a receiver; `size` of a buffer in bytes; `sender_buffers`: those of the
        pool of a subtask for what it sends, None: as many as it needs."""
        self._host, self._channels, self._rules, self._size = host, channels, rules, size
        self.depend_on_connections = rules.stops_reading
        """Whether a subtask waits for connections, of which nobody says that they are free again."""
        exclusive = exclusive if rules.has_exclusive else 0
        own = host.subtasks
        limited = {n: channel for n, channel in channels.items() if bounds_feedback or not channel.edge.feedback}
        self._limited = limited.keys()
        self._outputs_of = {t: tuple(n for n, c in limited.items() if c.source == t) for t in own}
        self.outputs = rules.outputs((n for n, c in limited.items() if c.source in own), exclusive)
        self.gates: dict[str, Gate] = {}
        for task, subtask in own.items():
            if inputs := [n for n, c in limited.items() if c.target == task]:
                self.gates[task] = rules.gate(inputs, exclusive, floating)
                subtask.note("gate_opened", {"channels": inputs, "exclusive": exclusive, "floating": floating}, {})
        for task, names in self._outputs_of.items():
            if sender_buffers is not None and names:
                pool = rules.pool(names, sender_buffers)
                self.outputs.pools |= dict.fromkeys(names, pool)
                about = {"channels": names, "buffers": sender_buffers, "largest": LARGEST_SHARE}
                own[task].note("pool_opened", about, {"sizes": pool.sizes})
        self._leaving: deque[Leaving] = deque()
        self._is_carrying = False

    def is_blocked(self, subtask: Subtask) -> bool:
        """Whether an output of a subtask waits for credit."""
        outputs = self._outputs_of[subtask.name]
        if self.depend_on_connections and any(self._host.is_congested(self._channels[c].target) for c in outputs):
            return True
        return self.outputs.is_blocked(outputs)

    def full(self) -> list[str]:
        """The subtasks whose channels to this TaskExecutor have more items than buffers."""
        return [self._channels[c].source for gate in self.gates.values() for c, free in gate.free.items() if free < 0]

    # --- the sending end

    def sent(self, subtask: Subtask) -> None:
        """A subtask has made items: they leave, or wait for credit."""
        items, subtask.sent = subtask.sent, []
        barriers = [(c, item) for c, item in items if item[0] == BARRIER] if subtask.is_unaligned else []
        if barriers:
            items = [(c, item) for c, item in items if item[0] != BARRIER]
        if [item for _, item in items if is_too_large(item, self._size)]:
            items = [(c, part) for c, item in items for part in self._parts(subtask, c, item)]
        unlimited, written = self.outputs.offer(items)
        leaving, stalled = self._sent(subtask, written)
        self._leaving += unlimited
        self._leaving += leaving
        for channel, item in barriers:  # they overtake what waits for credit, and need none
            subtask.in_flight.overtaken(channel, self.outputs.overtaken(channel))
            self._leaving.append((channel, item, len(self.outputs.waiting[channel])))
        for channel in stalled:
            self._announce_backlog(subtask, channel)
        self._carry()

    def _parts(self, subtask: Subtask, channel: str, item: Item) -> list[Item]:
        """The buffers of an item."""
        found = parts(item, self._size) if is_too_large(item, self._size) else [item]
        if len(found) > 1:
            subtask.note("record_spans", {"channel": channel, "parts": len(found)}, {})
            self.outputs.span(channel, item)
        return found

    def _sent(self, subtask: Subtask, written: dict[str, int]) -> tuple[list[Leaving], list[str]]:
        """Buffers have been written, by channel: they leave if there is credit, and as long as they do, others are written.
        Returns what leaves, and the channels whose receiver does not know of what waits."""
        leaving: list[Leaving] = []
        stalled: list[str] = []
        while written:
            sent = {}
            for channel in written:
                if new := self.outputs.send(channel):
                    sent[channel] = len(new)
                    leaving += new
            subtask.note("buffers_sent", {"produced": written, "sent": sent}, self._output_state(written))
            credit, waiting = self.outputs.credit, self.outputs.waiting
            stalled += [c for c in written if not credit[c] and waiting[c] and c not in sent]
            written = {c: count for c in sent if (count := self.outputs.write(c))} if self.outputs.pools else {}
        return leaving, stalled

    def _announce_backlog(self, subtask: Subtask, channel: str) -> None:
        if self._rules.announces_backlog:
            backlog = len(self.outputs.waiting[channel])
            subtask.note("backlog_announced", {"channel": channel, "backlog": backlog}, {})
            if not self._host.send_about(channel, self._channels[channel].target, m.BACKLOG, backlog):
                self.backlogged(channel, backlog)

    def granted(self, channel: str, credits: int) -> None:
        """Credits have arrived."""
        subtask = self._host.subtasks[self._channels[channel].source]
        leaving = self.outputs.grant(channel, credits)
        about = {"channel": channel, "credits": credits, "sent": len(leaving)}
        subtask.note("credits_received", about, self._output_state((channel,)))
        written = self.outputs.write(channel)
        more, stalled = self._sent(subtask, {channel: written} if written else {})
        self._leaving += leaving
        self._leaving += more
        for each in stalled:
            self._announce_backlog(subtask, each)
        if leaving or more or self.depend_on_connections:  # else nothing that waited has left
            self._carry()
            self._host.wake(subtask.name)

    def _output_state(self, channels: Iterable[str]) -> dict[str, Any]:
        credit, waiting = self.outputs.credit, self.outputs.waiting
        return {"credit": {c: credit[c] for c in channels}, "backlog": {c: len(waiting[c]) for c in channels}}

    def _carry(self) -> None:
        """Takes items to their receivers in order: a local receiver may grant credits while it gets one."""
        if self._is_carrying:
            return
        self._is_carrying = True
        try:
            while self._leaving:
                channel, item, backlog = self._leaving.popleft()
                if not self._host.send_about(channel, self._channels[channel].target, m.DATA, item, backlog):
                    self._host.deliver(channel, item, backlog)
        finally:
            self._is_carrying = False
            self._leaving.clear()

    # --- the receiving end

    def received(self, subtask: Subtask, channel: str, backlog: int) -> None:
        """A buffer has arrived."""
        gate = self._gate(channel)
        if gate is not None:
            gate.receive(channel, backlog)
            of_head = {} if subtask.head is None else {"item": kind_of(subtask.queues[channel][-1])}
            self._changed(subtask, gate, "buffer_received", channel, backlog=backlog, **of_head)

    def backlogged(self, channel: str, backlog: int) -> None:
        """A sender without credit has announced its backlog."""
        gate = self._gate(channel)
        if gate is not None:
            gate.backlog[channel] = backlog
            subtask = self._host.subtasks[self._channels[channel].target]
            self._changed(subtask, gate, "backlog_received", channel, backlog=backlog)

    def taken(self, subtask: Subtask, channel: str) -> None:
        """A subtask has taken an item: its buffer is free. With END the channel is released."""
        gate = self._gate(channel)
        if gate is None:
            return
        if channel in subtask.ended and channel not in gate.released:
            gate.release(channel)
            self._changed(subtask, gate, "channel_released", channel)
        else:
            gate.consume(channel)
            self._announce(subtask, gate)

    def _gate(self, channel: str) -> Gate | None:
        return self.gates[self._channels[channel].target] if channel in self._limited else None

    def _changed(self, subtask: Subtask, gate: Gate, event: str, channel: str, **more: object) -> None:
        subtask.note(event, {"channel": channel, **more}, _gate_state(gate, channel))
        self._announce(subtask, gate)

    def _announce(self, subtask: Subtask, gate: Gate) -> None:
        """Announces new credits, all of them before the first can have an effect here."""
        announced = []
        for channel, credits, lent in gate.announcements():
            about = {"channel": channel, "credits": credits, "requested": lent}
            subtask.note("credits_announced", about, _gate_state(gate, channel))
            announced.append((channel, credits))
        for channel, credits in announced:
            if gate.is_sent() and not self._host.send_about(channel, self._channels[channel].source, m.CREDIT, credits):
                self.granted(channel, credits)


def _gate_state(gate: Gate, channel: str) -> dict[str, int]:
    return {"free": gate.free[channel], "floating": gate.floating[channel], "pool": gate.pool}
