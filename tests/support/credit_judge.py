"""A second opinion on flow control in logs of the runtime: counters by channel, and none of the code of streamproof.

It takes the events of all processes in the order of the file, which for a simulated run is the order in which they happened.
Kept beside the sabotage of rules: the binding has to find this order, from the accounts of single processes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any


class Wrong(Exception):
    """An event that flow control does not allow."""


def wrong(records: Iterable[Mapping[str, Any]]) -> str | None:
    """The first event that the rules of flow control do not allow, or whose numbers are not those of the rules."""
    books: dict[str, Book] = defaultdict(Book)
    for record in records:
        book = books[record["trace"]]
        try:
            book.read(record)
        except Wrong as error:
            return f"{record['process']}#{record['seq']} {record['event']}: {error}"
    return None


def check(condition: bool, text: str) -> None:
    """Raises `Wrong` if it is false."""
    if not condition:
        raise Wrong(text)


class Book:
    """The counters of one attempt; a pool has the name of the first channel of its gate."""

    def __init__(self) -> None:
        self.exclusive: dict[str, int] = {}
        self.gate: dict[str, str] = {}
        self.pool: dict[str, int] = {}
        self.zero: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.wire: dict[str, deque[int]] = defaultdict(deque)
        self.notices: dict[str, deque[int]] = defaultdict(deque)
        self.ended: set[str] = set()

    def read(self, record: Mapping[str, Any]) -> None:
        """One event."""
        args, state = record.get("args", {}), record.get("state", {})
        count, event = self.zero, record["event"]
        channel = args.get("channel")
        if event == "gate_opened":
            for c in args["channels"]:
                self.exclusive[c], self.gate[c] = args["exclusive"], args["channels"][0]
                count["credit"][c] = count["free"][c] = args["exclusive"]
            self.pool[args["channels"][0]] = args["floating"]
        elif event == "buffers_sent":
            for c, n in args["produced"].items():
                count["waiting"][c] += n
            for c, n in args["sent"].items():
                self.send(c, n)
            self.sender_state(args["produced"], state)
        elif event == "credits_received":
            check(count["announced"][channel] >= args["credits"], "these credits were not announced")
            count["announced"][channel] -= args["credits"]
            count["credit"][channel] += args["credits"]
            self.send(channel, args["sent"])
            self.sender_state([channel], state)
        elif event == "backlog_announced":
            check(count["credit"][channel] == 0 < count["waiting"][channel] == args["backlog"], "no such backlog")
            self.notices[channel].append(args["backlog"])
        elif event == "backlog_received":
            check(bool(self.notices[channel]), "not announced")
            self.learn(channel, self.notices[channel].popleft(), args, state)
        elif event == "buffer_received":
            check(channel not in self.ended, "the channel has ended")
            check(bool(self.wire[channel]), "nothing is on the wire")
            check(count["free"][channel] > 0, "no buffer is free")
            count["free"][channel] -= 1
            count["queued"][channel] += 1
            self.learn(channel, self.wire[channel].popleft(), args, state)
        elif event == "credits_announced":
            for _ in range(args["requested"]):
                need = count["free"][channel] < count["backlog"][channel] + self.exclusive[channel]
                check(need and self.pool[self.gate[channel]] > 0, "no floating buffer is due")
                self.pool[self.gate[channel]] -= 1
                for what in ("floating", "free", "new"):
                    count[what][channel] += 1
            check(0 < count["new"][channel] == args["credits"], "other new credits")
            count["announced"][channel] += args["credits"]
            count["new"][channel] = 0
            self.gate_state(channel, state)
        elif event in ("record_received", "baton_received") and channel in self.gate:
            self.consume(channel)
        elif event == "channel_released":
            self.consume(channel)
            check(channel not in self.ended and not count["queued"][channel], "the channel cannot end here")
            self.ended.add(channel)
            self.pool[self.gate[channel]] += count["floating"][channel]
            count["floating"][channel] = 0
            self.gate_state(channel, state)

    def send(self, channel: str, number: int) -> None:
        """Buffers leave."""
        for _ in range(number):
            check(self.zero["credit"][channel] > 0, "sent without credit")
            check(self.zero["waiting"][channel] > 0, "sent without a buffer")
            self.zero["credit"][channel] -= 1
            self.zero["waiting"][channel] -= 1
            self.wire[channel].append(self.zero["waiting"][channel])

    def learn(self, channel: str, backlog: int, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """The receiver learns of the sender's backlog."""
        check(args["backlog"] == backlog, "another backlog")
        self.zero["backlog"][channel] = backlog
        self.gate_state(channel, state)

    def consume(self, channel: str) -> None:
        """A buffer has been consumed."""
        count = self.zero
        check(count["queued"][channel] > 0, "nothing is there to take")
        count["queued"][channel] -= 1
        if count["floating"][channel] and count["free"][channel] >= count["backlog"][channel] + self.exclusive[channel]:
            count["floating"][channel] -= 1
            self.pool[self.gate[channel]] += 1
        else:
            count["free"][channel] += 1
            count["new"][channel] += 1

    def sender_state(self, channels: Iterable[str], state: Mapping[str, Mapping[str, int]]) -> None:
        """Recorded numbers by channel, of these channels."""
        for name, what in (("credit", "credit"), ("backlog", "waiting")):
            check({c: self.zero[what][c] for c in channels} == state.get(name), what)

    def gate_state(self, channel: str, state: Mapping[str, int]) -> None:
        """Recorded numbers of a channel and its gate."""
        own = {
            "free": self.zero["free"][channel],
            "floating": self.zero["floating"][channel],
            "pool": self.pool[self.gate[channel]],
        }
        check(own == dict(state), f"{own} is due")
