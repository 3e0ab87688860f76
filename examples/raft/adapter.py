"""An adapter over PySyncObj (the package pysyncobj), an implementation of Raft: its elections, with the network in our hands.

A transport of our own keeps every message; the driver decides which one arrives, when a time-out comes, and when a server
crashes and starts again from its journal.

``streamproof drive election.py --adapter adapter.py:PySyncObjRaft --no-suite`` drives it.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.node import Node
from pysyncobj.transport import Transport

from streamproof.driving import Adapter, Happened, Refused

NEVER = 1e9
"""Seconds that no drive lasts: time-outs come when they are asked for."""
ROLES = ("follower", "candidate", "leader")


class Wire(Transport):
    """Keeps what a server sends."""

    def __init__(self, sent: list[tuple[str, str, dict[str, Any]]], own: str, others: list[str]) -> None:
        super().__init__(None, None, [])
        self.sent, self.own, self.others = sent, own, others

    def send(self, node: Any, message: dict[str, Any]) -> bool:
        """Keeps a message: sender, receiver, content."""
        self.sent.append((self.own, node.id, message))
        return True

    def deliver(self, sender: str, message: dict[str, Any]) -> None:
        """A message arrives."""
        self._onMessageReceived(Node(sender), message)

    def connect(self) -> None:
        """All other servers are connected."""
        for other in self.others:
            self._onNodeConnected(Node(other))


class PySyncObjRaft(Adapter):
    """Servers of PySyncObj in one process."""

    def reset(self, parameters: dict[str, Any], seed: int) -> None:
        """New servers without journals."""
        self.close()
        self.folder = tempfile.TemporaryDirectory(prefix="raft-")
        self.random = random.Random(seed)
        self.names = [f"server{at + 1}" for at in range(parameters["servers"])]
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self.servers: dict[str, SyncObj] = {}
        self.wires: dict[str, Wire] = {}
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        """A server starts with what is in its journal."""
        others = [other for other in self.names if other != name]
        wire = self.wires[name] = Wire(self.sent, name, others)
        conf = SyncObjConf(
            autoTick=False,
            raftMinTimeout=NEVER,
            raftMaxTimeout=2 * NEVER,
            leaderFallbackTimeout=NEVER,
            connectionTimeout=2 * NEVER,
            journalFile=str(Path(self.folder.name) / name),
        )
        self.servers[name] = SyncObj(Node(name), [Node(other) for other in others], conf, transport=wire)
        wire.connect()

    def private(self, name: str, field: str) -> Any:
        """A private field of a server."""
        return getattr(self.servers[name], f"_SyncObj__{field}")

    def role(self, name: str) -> str:
        """Follower, candidate or leader."""
        return ROLES[self.private(name, "raftState")]

    def messages(self, kind: str, to: str, proposed: Any, at_least: int) -> tuple[str, dict[str, Any]]:
        """A sent message to a server, the proposed one if it was sent. Raises `Refused` if there is none."""
        found = [(a, m) for a, b, m in self.sent if b == to and m["type"] == kind and m["term"] >= at_least]
        if not found:
            raise Refused("no such message was sent")
        wanted = [(a, m) for a, m in found if proposed and [m["term"], a] == proposed[:2]]
        return (wanted or [self.random.choice(found)])[0]

    def time_out(self, i: str) -> None:
        """The election time-out of a server comes."""
        if self.role(i) == "leader":
            raise Refused("a leader has no election time-out")
        self.servers[i]._SyncObj__raftElectionDeadline = 0
        self.servers[i].doTick()

    def receive_request(self, i: str) -> Happened:
        """A request for a vote arrives, in the term of the server or a later one."""
        sender, message = self.messages(
            "request_vote", i, self.picks.get("request"), self.private(i, "raftCurrentTerm")
        )
        self.wires[i].deliver(sender, message)
        return Happened(picks={"request": [message["term"], sender]})

    def receive_vote(self, i: str) -> Happened:
        """A vote arrives at a candidate in the term that it was given for."""
        term = self.private(i, "raftCurrentTerm")
        if self.role(i) != "candidate":
            raise Refused("it is no candidate")
        votes = [(a, m) for a, b, m in self.sent if b == i and m["type"] == "response_vote" and m["term"] == term]
        if not votes:
            raise Refused(f"no vote was sent to {i}")
        proposed = self.picks.get("grant", [None, None])
        voter, message = next((v for v in votes if v[0] == proposed[1]), self.random.choice(votes))
        self.wires[i].deliver(voter, message)
        return Happened(picks={"grant": [term, voter, i]})

    def restart(self, i: str) -> None:
        """A server crashes, and starts with its journal."""
        self.servers[i].destroy()
        self.start(i)

    def observe(self, of: list[str] | None) -> dict[str, Any]:
        """Roles, terms, votes given, and the requests sent."""
        requests = {(m["term"], a) for a, _, m in self.sent if m["type"] == "request_vote"}
        return {
            "role": {name: self.role(name) for name in self.names},
            "term": {name: self.private(name, "raftCurrentTerm") for name in self.names},
            "voted_for": {name: self.private(name, "votedForNodeId") for name in self.names},
            "requests": [{"term": term, "candidate": name} for term, name in sorted(requests)],
        }

    def close(self) -> None:
        """Ends the servers."""
        for server in getattr(self, "servers", {}).values():
            server.destroy()
        if hasattr(self, "folder"):
            self.folder.cleanup()
