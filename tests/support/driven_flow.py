"""An adapter over the flow control of the reference runtime, for the model `credit`, variant `runtime`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from streamproof.driving import Adapter, Happened, Refused, Unsupported
from streamproof_runtime.subtasks.flow import Gate, Outputs


class FlowAdapter(Adapter):
    """The sending and the receiving ends of channels; the messages between them wait until they are asked for."""

    own = ("send", "request_floating_buffer", "announce_credit")
    unsupported = ("stall",)
    outputs_of: type[Outputs] = Outputs
    gate_of: type[Gate] = Gate

    def reset(self, parameters: Mapping[str, Any], seed: int) -> None:
        """New channels."""
        names = [str(c) for c in range(parameters["channels"])]
        self.outputs = self.outputs_of(names, parameters["exclusive"])
        self.gate = self.gate_of(names, parameters["exclusive"], parameters["floating"])
        self.left = dict.fromkeys(names, parameters["depth"])
        self.wire: dict[str, deque[int]] = {name: deque() for name in names}
        self.announced: dict[str, deque[int]] = {name: deque() for name in names}
        self.credits = dict.fromkeys(names, 0)
        self.received = dict.fromkeys(names, 0)

    def in_order(self, happened: list[tuple[str, int]]) -> Happened:
        """Several actions in one call: all but the last are events before the answer."""
        for action, c in happened[:-1]:
            self.event(action, {"c": c})
        action, c = happened[-1]
        return Happened(action, {"c": c})

    def sent(self, leaving: list[Any]) -> list[tuple[str, int]]:
        """Buffers that leave, with the backlog that stays."""
        for channel, _, backlog in leaving:
            self.wire[channel].append(backlog)
        return [("send", int(channel)) for channel, _, _ in leaving]

    def produce(self, c: int) -> Happened:
        """A buffer is full; it leaves if there is a credit."""
        name = str(c)
        if not self.left[name] or name in self.gate.released:
            raise Unsupported("the task produces no more")
        self.left[name] -= 1
        self.outputs.offer([(name, ("item",))])
        return self.in_order([("produce", c), *self.sent(self.outputs.send(name))])

    def send(self, c: int) -> None:
        """Buffers leave as soon as they may."""
        raise Refused("it has left, or has no credit")

    def announce_backlog(self, c: int) -> None:
        """A sender without credit announces its backlog."""
        waiting = len(self.outputs.waiting[str(c)])
        if not waiting or self.outputs.credit[str(c)]:
            raise Refused("there is no backlog without credit")
        self.announced[str(c)].append(waiting)

    def add_credit(self, c: int) -> Happened:
        """An announced credit arrives."""
        if not self.credits[str(c)]:
            raise Refused("no credit is on its way")
        self.credits[str(c)] -= 1
        return self.in_order([("add_credit", c), *self.sent(self.granted(str(c)))])

    def granted(self, name: str) -> list[Any]:
        """What leaves with one more credit."""
        return self.outputs.grant(name, 1)

    def receive(self, c: int) -> None:
        """A buffer arrives."""
        name = str(c)
        if name in self.gate.released or not self.wire[name]:
            raise Refused("nothing arrives")
        self.gate.receive(name, self.wire[name].popleft())
        self.received[name] += 1

    def receive_backlog(self, c: int) -> None:
        """An announced backlog arrives."""
        if not self.announced[str(c)]:
            raise Refused("no backlog is on its way")
        self.gate.backlog[str(c)] = self.announced[str(c)].popleft()

    def consume(self, c: int) -> None:
        """A buffer is consumed."""
        name = str(c)
        if not self.received[name] or name in self.gate.released:
            raise Refused("there is no buffer")
        self.received[name] -= 1
        self.gate.consume(name)

    def announce_credit(self, c: int) -> Happened:
        """The gate lends buffers, and announces credits, of all its channels."""
        happened: list[tuple[str, int]] = []
        for channel, credits, lent in self.gate.announcements():
            happened += [("request_floating_buffer", int(channel))] * lent
            if credits:
                happened.append(("announce_credit", int(channel)))
                self.credits[channel] += credits if self.gate.is_sent() else 0
        if not happened:
            raise Refused("no credit is announced yet")
        return self.in_order(happened)

    def request_floating_buffer(self, c: int) -> Happened:
        """The same."""
        return self.announce_credit(c)

    def release(self, c: int) -> Happened:
        """END, the last buffer, is taken."""
        name = str(c)
        if self.received[name] != 1 or name in self.gate.released:
            raise Unsupported("END is not the only buffer")
        self.received[name] = 0
        self.gate.release(name)
        return self.in_order([("consume", c), ("release", c)])

    def observe(self, of: list[str] | None) -> dict[str, Any]:
        """The counters of both ends."""
        gate, outputs = self.gate, self.outputs
        return {
            "buffers_in_backlog": {name: len(items) for name, items in outputs.waiting.items()},
            "num_credits_available": {**outputs.credit},
            "available_buffers": {**gate.free},
            "received_buffers": {**self.received},
            "floating_buffers": {**gate.floating},
            "unannounced_credit": {**gate.unannounced},
            "pool": gate.pool,
        }
