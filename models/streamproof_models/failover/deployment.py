"""Deployment descriptors: what a task is told of the partitions that it reads, made once for each group.

The *shuffle descriptor* of a partition names the attempt of its producer, and where its data is. All tasks of a group
(`Connection`) read the same partitions, so their descriptors are serialised and compressed once, as one *block*, and
cached until a producer of the group restarts: an all-to-all edge between n and n tasks costs n descriptors instead of n².
A block goes into the message of each task, or, if descriptors times readers reach a threshold, to the blob server, and
the message has its key. Flink 2.3's `TaskDeploymentDescriptorFactory` does the same.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import TypeAlias

from streamproof_models.failover.graph import Task
from streamproof_models.failover.topology import Connection, Topology

THRESHOLD = 2048 * 2048
"""Descriptors times readers of a group from which its block goes to the blob server: Flink 2.3's default."""

_ID = 16
"""Bytes of an identifier (Flink's `AbstractID`)."""
_HEAD = struct.Struct(">IB")
_TEXTS = struct.Struct(">BB")
_PORT = struct.Struct(">H")


class AttemptIds(Enum):
    """How an attempt is identified."""

    STRUCTURED = "structured"
    """Execution graph, vertex, subtask and number of the attempt: Flink 2.3."""
    RANDOM = "random"
    """16 bytes that nothing else determines, which compression cannot shorten: Flink 1.14."""


@dataclass(frozen=True, slots=True)
class Place:
    """The TaskManager that runs a task, with the address of its data; names have at most 255 bytes."""

    resource: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ShuffleDescriptor:
    """One partition: its dataset and number, the attempt of its producer, and where its data is."""

    dataset: bytes
    number: int
    attempt: bytes
    place: Place

    def serialised(self) -> bytes:
        """As bytes, without compression."""
        resource, host = self.place.resource.encode(), self.place.host.encode()
        head = _HEAD.pack(self.number, len(self.attempt))
        texts = _TEXTS.pack(len(resource), len(host)) + resource + host
        return self.dataset + head + self.attempt + texts + _PORT.pack(self.place.port)


def block_of(descriptors: Iterable[ShuffleDescriptor]) -> bytes:
    """Descriptors, serialised one after the other and compressed."""
    return zlib.compress(b"".join(d.serialised() for d in descriptors))


def read_block(block: bytes) -> list[ShuffleDescriptor]:
    """The descriptors of a block. Raises `zlib.error` or `struct.error` for bytes that are none."""
    data, at, found = zlib.decompress(block), 0, []

    def taken(length: int) -> bytes:
        nonlocal at
        at += length
        return data[at - length : at]

    while at < len(data):
        dataset = taken(_ID)
        number, length = _HEAD.unpack(taken(_HEAD.size))
        attempt = taken(length)
        resource, host = (taken(n).decode() for n in _TEXTS.unpack(taken(_TEXTS.size)))
        (port,) = _PORT.unpack(taken(_PORT.size))
        found.append(ShuffleDescriptor(dataset, number, attempt, Place(resource, host, port)))
    return found


@dataclass(frozen=True, slots=True)
class BlobKey:
    """Names a block on the blob server by the hash of its bytes."""

    digest: bytes


Input: TypeAlias = bytes | BlobKey
"""What a task is sent of one edge: the block of its group, or the block's key."""


class Deployment:
    """The descriptors of all tasks of a job, with the cache of blocks and the blobs on the server.

    Raises:
        ValueError: `places` does not have one place for each task number.
    """

    def __init__(
        self,
        topology: Topology,
        places: Sequence[Place],
        ids: AttemptIds = AttemptIds.STRUCTURED,
        threshold: int = THRESHOLD,
    ) -> None:
        if len(places) != len(topology.tasks):
            raise ValueError(f"{len(places)} places for {len(topology.tasks)} tasks; give one for each task")
        self.topology, self.ids, self.threshold = topology, ids, threshold
        self.places = list(places)
        self.attempts = [0] * len(places)
        """The number of the current attempt of each task, from 0."""
        self.blobs: dict[BlobKey, bytes] = {}
        """The blocks on the blob server."""
        self.made = 0
        """The number of blocks made so far."""
        self._cached: dict[tuple[int, int], Input] = {}
        self._read: dict[str, list[int]] = {vertex.name: [] for vertex in topology.graph.vertices}
        self._written: dict[str, list[int]] = {vertex.name: [] for vertex in topology.graph.vertices}
        for edge, connection in enumerate(topology.connections):
            self._read[connection.edge.target].append(edge)
            self._written[connection.edge.source].append(edge)

    def inputs(self, task: Task) -> tuple[Input, ...]:
        """What a task is sent, for each edge that it reads, in the order of the job graph.

        Raises `JobGraphError` if the graph has no such task.
        """
        number = self.topology.number(task)
        edges = ((edge, self.topology.connections[edge]) for edge in self._read[task[0]])
        return tuple(self._input(edge, c, c.group_of_consumer(number)) for edge, c in edges)

    def restart(self, tasks: Iterable[Task], places: Mapping[Task, Place] | None = None) -> None:
        """Begins a new attempt of each task, perhaps at another place: blocks that name earlier ones are discarded,
        also on the blob server. Raises `JobGraphError` if the graph has no such task."""
        for task in tasks:
            number = self.topology.number(task)
            self.attempts[number] += 1
            if places and task in places:
                self.places[number] = places[task]
            for edge in self._written[task[0]]:
                group = self.topology.connections[edge].group_of_producer(number)
                stale = self._cached.pop((edge, group), None)
                if isinstance(stale, BlobKey) and stale not in self._cached.values():
                    del self.blobs[stale]

    def descriptors(self, connection: Connection, group: int) -> Iterator[ShuffleDescriptor]:
        """The descriptors of the partitions that a group reads."""
        dataset = _identifier(connection.edge.dataset)
        vertex = _identifier(connection.edge.source)
        for producer in connection.group_producers(group):
            subtask = producer - connection.producers.start
            yield ShuffleDescriptor(dataset, subtask, self._attempt(vertex, subtask, producer), self.places[producer])

    def edge_by_edge(self, task: Task) -> list[bytes]:
        """The serialised descriptors of a task made for it alone, pair by pair: for comparison, and small graphs.

        Raises `JobGraphError` if the graph has no such task.
        """
        number = self.topology.number(task)
        connections = (self.topology.connections[edge] for edge in self._read[task[0]])
        return [b"".join(d.serialised() for d in self.descriptors(c, c.group_of_consumer(number))) for c in connections]

    def _input(self, edge: int, connection: Connection, group: int) -> Input:
        found = self._cached.get((edge, group))
        if found is None:
            found = block_of(self.descriptors(connection, group))
            self.made += 1
            pairs = len(connection.group_producers(group)) * len(connection.group_consumers(group))
            if pairs >= self.threshold:
                key = BlobKey(blake2b(found, digest_size=20).digest())
                self.blobs[key] = found
                found = key
            self._cached[edge, group] = found
        return found

    def _attempt(self, vertex: bytes, subtask: int, task: int) -> bytes:
        structured = _GRAPH + vertex + struct.pack(">II", subtask, self.attempts[task])
        return structured if self.ids is AttemptIds.STRUCTURED else blake2b(structured, digest_size=_ID).digest()


def _identifier(name: str) -> bytes:
    """An identifier for a name, always the same."""
    return blake2b(name.encode(), digest_size=_ID).digest()


_GRAPH = _identifier("execution graph")
