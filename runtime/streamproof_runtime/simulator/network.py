"""The simulated network: FIFO in each connection, any delay, reordering between connections, loss of connections.

A connection behaves like TCP: it never loses or reorders single messages. A partition holds messages back. A lost
connection loses what is under way, and each end learns of it later; the next message opens a new connection.
"""

from __future__ import annotations

from typing import Any, Protocol

from streamproof_runtime.durations import MICROSECOND
from streamproof_runtime.simulator.loop import EventLoop
from streamproof_runtime.simulator.tape import Draw

DELAY = 20 * MICROSECOND
"""Least delay of a message."""
SPREAD = 100
"""Number of choices of a further delay."""


class Node(Protocol):
    """A process on the network."""

    name: str

    def receive(self, peer: str, message: Any) -> None:
        """A message arrives."""

    def connection_lost(self, peer: str) -> None:
        """The process learns that the connection to a peer is lost."""


class Network:
    """Connections between nodes by name. `spread` is the unit of the further delay."""

    def __init__(self, loop: EventLoop, choose: Draw) -> None:
        self.loop, self._choose = loop, choose
        self.nodes: dict[str, Node] = {}
        self.unit = MICROSECOND
        self.slow: dict[frozenset[str], int] = {}
        """Factors of the delay of a pair."""
        self.held_until: dict[frozenset[str], int] = {}
        """Partitions: no message of the pair arrives before this time."""
        self._last: dict[tuple[str, str], int] = {}
        self._pairs: dict[tuple[str, str], frozenset[str]] = {}
        self._epoch: dict[frozenset[str], int] = {}
        self._seen: dict[tuple[str, str], int] = {}

    def send(self, source: str, target: str, message: Any) -> None:
        """Sends a message; it is lost if the connection is lost before it arrives."""
        ends = source, target
        pair = self._pairs.get(ends)
        if pair is None:
            pair = self._pairs[ends] = frozenset(ends)
        delay = (DELAY + self._choose(SPREAD) * self.unit) * self.slow.get(pair, 1)
        time = max(self.loop.now + delay, self._last.get(ends, 0), self.held_until.get(pair, 0))
        self._last[ends] = time
        self.loop.call_at(time, self._deliver, pair, target, source, self._seen.get(ends, 0), message)

    def disconnect(self, one: str, other: str) -> None:
        """The connection between two nodes is lost; each learns of it after a delay of its own."""
        pair = frozenset((one, other))
        self._epoch[pair] = self._epoch.get(pair, 0) + 1
        for node, peer in ((one, other), (other, one)):
            time = self.loop.now + DELAY + self._choose(SPREAD) * self.unit
            self.loop.call_at(max(time, self.held_until.get(pair, 0)), self._notify, pair, node, peer)

    def restarted(self, node: str) -> None:
        """A node has lost everything, its connections included; its peers learn of that."""
        for peer in self.nodes:
            if peer != node:
                pair = frozenset((node, peer))
                self._epoch[pair] = self._epoch.get(pair, 0) + 1
                self._seen[node, peer] = self._epoch[pair]
                self.loop.call_later(DELAY + self._choose(SPREAD) * self.unit, self._notify, pair, peer, node)

    def _deliver(self, pair: frozenset[str], node: str, peer: str, epoch: int, message: Any) -> None:
        if epoch == self._epoch.get(pair, 0):
            self._notify(pair, node, peer)
            self.nodes[node].receive(peer, message)

    def _notify(self, pair: frozenset[str], node: str, peer: str) -> None:
        epoch = self._epoch.get(pair, 0)
        if self._seen.get((node, peer), 0) < epoch:
            self._seen[node, peer] = epoch
            self.nodes[node].connection_lost(peer)
