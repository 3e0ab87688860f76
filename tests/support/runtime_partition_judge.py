"""A second judge of stored partitions in the runtime's logs: what must have happened before what, without a machine.

Each fact about a copy of a partition is an event at one place. The judge reads each log by itself, keeps the set of copies
that a TaskExecutor stores, and requires for each event that concerns another process one there that can be its cause. Causes
and the order in each process must have no cycle.
Kept beside the sabotage of rules: each partition has a machine of its own, and nothing else compares how the binding divides
a log among them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

Record = Mapping[str, Any]


MASTER = (
    *("registered", "executor_lost", "region_scheduled", "partitions_tracked", "region_deployed", "region_updated"),
    *("region_finished", "partition_lost", "region_failed", "job_failed", "partitions_released"),
)
"""The events of a JobMaster that are judged."""


class Refused(Exception):
    """An event that no run has."""


def refuse(condition: Any, why: str) -> None:
    """Raises `Refused` if the condition holds."""
    if condition:
        raise Refused(why)


def split(copy: str) -> tuple[str, int, int]:
    """Dataset, partition and attempt of a copy."""
    match = re.fullmatch(r"(.+)/(\d+)@(\d+)", copy, re.ASCII)
    if match is None:
        raise Refused("no copy")
    return match[1], int(match[2]), int(match[3])


class Master:
    """What one JobMaster has sent, as numbered facts, and what it relies on."""

    def __init__(self, records: list[Record]) -> None:
        self.placed: dict[str, str] = {}
        """The TaskExecutor of each copy."""
        self.deployed_at: dict[tuple[str, int], int] = {}
        """The event that deploys an attempt of a dataset."""
        self.orders: dict[tuple[str, int, int], list[tuple[str, str, int, int]]] = defaultdict(list)
        """What was sent by each connection: kind, dataset, attempt, and the number of the event."""
        self.now = 0
        self.told_at: dict[tuple[str, int], int] = {}
        self.registered_at: dict[tuple[str, int, int], int] = {}
        self.told: dict[tuple[str, int], int] = {}
        """The attempt of the dataset that an attempt of its reader was given."""
        self.relies: list[tuple[tuple[str, str, int], int]] = []
        """Finished or consumed or missed: what TaskExecutors must have reported, with the copy, and the reader's attempt."""
        self.missed: list[tuple[str, int, int]] = []
        self.known: set[str] = set()
        """Copies whose end it knows."""
        self.connections: list[tuple[str, int, int]] = []
        self.readers_of: dict[str, set[int]] = defaultdict(set)
        self._width: dict[str, int] = {}
        self._at: dict[str, tuple[str, int, int]] = {}
        self._attempt: dict[str, int] = {}
        self._scheduled: dict[str, int] = {}
        self._reader: dict[str, str] = {}
        self._consumer: dict[str, int] = {}
        self._state: dict[str, str] = {}
        self._gone: set[tuple[str, int, str]] = set()
        """Datasets with attempts, and TaskExecutors that were lost with a part of them."""
        self.in_memory: list[str] = records[0]["args"].get("memory_only", [])
        datasets = [(f"{a}>{b}", a, b) for a, b, kind in records[0]["args"]["exchanges"] if kind != "PIPELINED"]
        self._by_source, self._by_target = defaultdict(list), defaultdict(list)
        for name, source, target in datasets:
            self._by_source[source].append(name)
            self._by_target[target].append(name)
            self._state[name] = "NONE"
        records = [r for r in records if r["event"] in MASTER]
        for at, record in enumerate(records):
            args = record.get("args", {})
            self.now = at
            if record["event"] in ("region_finished", "region_deployed", "region_updated"):
                args = {**args, "tasks": [*dict.fromkeys(args["tasks"])]}
            follow = records[at + 1] if at + 1 < len(records) else None
            self._read(record["event"], args, follow)

    def _copies(self, name: str, attempt: int) -> list[str]:
        return [f"{name}/{p}@{attempt}" for p in range(self._width.get(name, 0))]

    def _send(self, kind: str, name: str, attempt: int, peers: Iterable[str] | None = None) -> set[str]:
        sent = set()
        for peer in {self.placed[c] for c in self._copies(name, attempt) if c in self.placed}:
            if peer in self._at and (peers is None or peer in peers):
                self.orders[self._at[peer]].append((kind, name, attempt, self.now))
                sent.add(peer)
        return sent

    def _read(self, event: str, args: Record, follow: Record | None) -> None:
        if event == "registered":
            self._forget(args["executor"])
            key = args["executor"], args["incarnation"], args["connection"]
            refuse(key in self.connections, "registered twice")
            self.connections.append(key)
            self.registered_at[key] = self.now
            self._at[args["executor"]] = key
        elif event == "executor_lost":
            refuse(args["executor"] not in self._at, "not registered")
            refuse(args.get("closed") and self._relies_on(args["executor"]), "closed, with partitions there")
            self._forget(args["executor"])
            del self._at[args["executor"]]
        elif event == "region_scheduled":
            for task in args["tasks"]:
                self._scheduled[task] = args["attempt"]
        elif event == "partitions_tracked":
            self._tracked(args)
        elif event in ("region_deployed", "region_updated"):
            for task in args["tasks"]:
                for name in self._by_target[task]:
                    if name in args["descriptors"]:
                        self._told(name, self._scheduled[task], args["descriptors"][name])
        elif event == "region_finished":
            for task in args["tasks"]:
                self._finished(task)
        elif event == "partition_lost":
            self._lost(args["partition"], follow)
        elif event == "region_failed":
            for task in args["restarts"]:
                for name in self._by_source[task]:
                    if self._state[name] in ("PRODUCING", "FORGOTTEN"):
                        if self._state[name] == "PRODUCING":
                            self._send("CANCEL", name, self._attempt[name], self._alive(name))
                        self._state[name] = "NONE"
                for name in self._by_target[task]:
                    if self._consumer.get(name) == 2 and self._state[name] == "RELEASED":
                        self._state[name] = "NONE"
                    self._consumer[name] = 0
        elif event == "job_failed":
            for name, attempt in self._attempt.items():
                self._send("CANCEL", name, attempt)
        elif event == "partitions_released":
            self._released(args)

    def _alive(self, name: str) -> set[str]:
        """The TaskExecutors that have not been lost since the producer was deployed there."""
        return {p for p in self._at if (name, self._attempt[name], p) not in self._gone}

    def _relies_on(self, peer: str) -> bool:
        """Whether partitions on a TaskExecutor are at work or stored, as the JobMaster knows."""
        return any(
            self._state[name] in ("PRODUCING", "STORED", "HURT")
            and peer in self._places(name)
            and (name, attempt, peer) not in self._gone
            for name, attempt in self._attempt.items()
        )

    def _forget(self, peer: str) -> None:
        if peer not in self._at:
            return
        for name, attempt in self._attempt.items():
            if peer in {self.placed[c] for c in self._copies(name, attempt)}:
                self._gone.add((name, attempt, peer))
                if self._state[name] in ("STORED", "PRODUCING") and self._consumer.get(name) == 1:
                    self._reading_lost(name)
                if self._state[name] == "STORED":
                    self._state[name] = "HURT"

    def _reading_lost(self, name: str) -> None:
        """The reader of a lost partition has failed."""
        self._consumer[name] = 0

    def _tracked(self, args: Record) -> None:
        widths = Counter(p.rpartition("/")[0] for p in args["partitions"])
        for partition, peer in args["partitions"].items():
            copy = f"{partition}@{args['attempt']}"
            refuse(peer not in self._at, "deployed where nobody is registered")
            refuse(copy in self.placed, "deployed twice")
            self.placed[copy] = peer
        for name, width in widths.items():
            refuse(name not in self._state, "no dataset")
            refuse({*self._copies_of(name, width)} - {*args["partitions"]}, "other partitions")
            refuse(self._width.setdefault(name, width) != width, "another number of partitions")
            refuse(self._state[name] in ("PRODUCING", "STORED", "RELEASED"), "made again without need")
            refuse(self._consumer.get(name) == 2, "nobody reads it")
            self._attempt[name] = args["attempt"]
            self._state[name] = "PRODUCING"
            self.deployed_at[name, args["attempt"]] = self.now
            self._send("DEPLOY", name, args["attempt"])

    @staticmethod
    def _copies_of(name: str, width: int) -> list[str]:
        return [f"{name}/{p}" for p in range(width)]

    def _told(self, name: str, reader: int, attempt: int) -> None:
        refuse(self._state[name] != "STORED" or self._attempt.get(name) != attempt, "told of what is not stored")
        refuse(self._consumer.get(name, 0) != 0, "reads already")
        refuse(self.told.get((name, reader), attempt) != attempt or (name, reader) in self.told, "told twice")
        self.told[name, reader], self.told_at[name, reader] = attempt, self.now
        self._consumer[name] = 1

    def _finished(self, task: str) -> None:
        for name in self._by_source[task]:
            refuse(self._state[name] != "PRODUCING", "it was not at work")
            refuse(any((name, self._attempt[name], p) in self._gone for p in self._places(name)), "it was lost")
            self._state[name] = "STORED"
            for copy in self._copies(name, self._attempt[name]):
                self.relies.append((("partition_finished", copy, -1), self.now))
                self.known.add(copy)
        for name in self._by_target[task]:
            refuse(self._consumer.get(name) != 1, "it was not reading")
            self._consumer[name] = 2
            reader = self._scheduled[task]
            for copy in self._copies(name, self.told[name, reader]):
                self.relies.append((("partition_consumed", copy, reader), self.now))

    def _places(self, name: str) -> set[str]:
        return {self.placed[c] for c in self._copies(name, self._attempt[name])}

    def _lost(self, name: str, follow: Record | None) -> None:
        refuse(name not in self._state or self._state[name] not in ("STORED", "HURT", "GONE"), "nothing to lose")
        cause = follow is not None and follow["event"] in ("region_failed", "job_failed")
        if follow is not None and cause and follow.get("args", {}).get("missing") == name:
            refuse(self._consumer.get(name) != 1, "nobody reads it")
            task = next(t for t, names in self._by_target.items() if name in names)
            self.missed.append((name, self._scheduled[task], self.now))
        else:
            refuse(self._state[name] == "STORED", "lost without a reason")
        self._state[name] = "GONE"

    def _released(self, args: Record) -> None:
        name, attempt = args["dataset"], args["attempt"]
        refuse(self._state.get(name) not in ("STORED", "HURT", "GONE"), "nothing to release")
        refuse(self._attempt[name] != attempt, "another attempt")
        refuse(self._consumer.get(name, 0) != (0 if args["needed"] else 2), "somebody needs it")
        sent = self._send("RELEASE", name, attempt)
        refuse(sorted(sent) != sorted(args["executors"]), "sent to others")
        self._state[name] = "NONE" if args["needed"] else "RELEASED"


class Executor:
    """The copies on one TaskExecutor, event by event."""

    def __init__(self, name: str, masters: Mapping[str, Master]) -> None:
        self.name, self._masters = name, masters
        self.stored: dict[str, str] = {}
        """PRODUCING, VANISHED, STORED or GONE, by copy."""
        self.facts: dict[tuple[str, str, int], tuple[Any, ...]] = {}
        """The event of each fact."""
        self.causes: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        self.now: tuple[Any, ...] = ()
        self.void: set[str] = set()
        """Copies of attempts that have failed here."""
        self._opened: dict[tuple[int, str, int], int] = {}
        self._last: dict[tuple[int, str, int], int] = {}
        self._counts: Counter[str] = Counter()
        self._deleted: set[str] = set()
        """Copies that were deleted by an order."""
        self._orders: list[tuple[str, str, int, int]] = []
        self._master: Master | None = None
        self._has_ended = False
        """Whether the connection, to a JobMaster, was lost, or the TaskExecutor was released."""
        self._key: Any = None
        self._trace = ""

    def ends(self) -> None:
        """The next event is not before the registration of the present connection."""
        if self._master is not None:
            self.causes.append(((self._trace, self._master.registered_at[self._key]), self.now))

    def begin(self, key: tuple[str, int, int]) -> None:
        """A connection, perhaps of a new process."""
        self.ends()
        self._has_ended = False
        self.stored = dict.fromkeys(self.stored, "GONE")
        self._key = key
        self._trace = next((t for t, m in self._masters.items() if key in m.connections), "")
        self._master = next((m for m in self._masters.values() if key in m.connections), None)
        self._orders = [] if self._master is None else list(self._master.orders[key])

    def read(self, event: str, args: Record) -> None:
        """Raises `Refused`."""
        if event == "registering":
            return
        self.ends()
        if event == "master_lost":
            refuse(args["connection"] != self._key[2], "another connection")
            self._deletes(args["deleted"], None, None)
            self.stored = dict.fromkeys(self.stored, "GONE")
            self._has_ended = self._master is not None
            self._master = self._key = None
            return
        if event == "executor_released":
            self._deletes(args["deleted"], None, None)
            refuse(any(state in ("PRODUCING", "STORED") for state in self.stored.values()), "it stores something")
            refuse(self._has_ended, "it has ended")
            self._has_ended, self._master = self._master is not None, None
            return
        if event == "partitions_lost":
            for copy in args["lost"]:
                state = self.stored.get(copy)
                refuse(state not in ("PRODUCING", "STORED"), "not there")
                self.stored[copy] = "VANISHED" if state == "PRODUCING" else "GONE"
            return
        refuse(self._master is None, "without a connection")
        if event == "partitions_discarded":
            refuse(type(args["stored"]) is not int or type(args["room"]) is not int, "no sizes")
            refuse(args["stored"] <= args["room"], "there is room")
            for copy in args["discarded"]:
                refuse(self.stored.get(copy) != "STORED" or not self._counts[copy], "not read")
                refuse(self._master is not None and split(copy)[0] not in self._master.in_memory, "not memory-only")
                self.stored[copy] = "GONE"
        elif event == "partitions_created":
            self._created(args)
        elif event == "partition_finished":
            copy = args["partition"]
            refuse(self.stored.get(copy) not in ("PRODUCING", "VANISHED"), "not at work")
            self.stored[copy] = "STORED" if self.stored[copy] == "PRODUCING" else "GONE"
            self.facts[event, copy, -1] = self.now
        elif event in ("partition_opened", "partition_missing", "partition_consumed"):
            self._reads(event, args)
        elif event == "release_received":
            refuse(not self._here([args["dataset"]], args["attempt"]), "not sent here")
            self._ordered("RELEASE", [args["dataset"]], args["attempt"], args["deleted"])
        elif event == "partitions_canceled":
            self._ordered("CANCEL", args["datasets"], args["attempt"], args["deleted"])
        elif event == "partitions_abandoned":
            self._deletes(args["deleted"], args["datasets"], args["attempt"])
            if "full" in args:
                is_here = args["full"] in self._here(args["datasets"], args["attempt"])
                refuse(not is_here or self.stored.get(args["full"]) not in ("PRODUCING", "VANISHED"), "not at work")
            for copy in self._here(args["datasets"], args["attempt"]):
                if copy in self.stored and copy not in self._deleted:
                    refuse(self._master is not None and copy in self._master.known, "its end was reported")
                    self.void.add(copy)
                    self.stored[copy] = "GONE"

    def _here(self, datasets: Iterable[str], attempt: int) -> list[str]:
        master = self._master
        assert master is not None
        return [
            c
            for c, at in master.placed.items()
            if at == self.name and split(c)[0] in datasets and split(c)[2] == attempt
        ]

    def _created(self, args: Record) -> None:
        refuse(args["deleted"], "left over")
        here, mine = self._here(args["datasets"], args["attempt"]), args["created"]
        refuse(not {*mine} <= {*here} or len({*mine}) < len(mine), "not deployed here")
        assert self._master is not None
        for name in args["datasets"]:
            at = self._master.deployed_at[name, args["attempt"]]
            self.causes.append(((self._trace, at), self.now))
        for name in {split(c)[0] for c in here}:
            self._next("DEPLOY", name, args["attempt"])
        for copy in mine:
            self.stored[copy] = "PRODUCING"

    def _next(self, kind: str, name: str, attempt: int) -> None:
        """The oldest order about the dataset must be this one."""
        found = next((o for o in self._orders if o[1] == name), None)
        refuse(found is None or found[:3] != (kind, name, attempt), "no such order")
        assert found is not None
        self.causes.append(((self._trace, found[3]), self.now))
        self._orders.remove(found)

    def _ordered(self, kind: str, datasets: Iterable[str], attempt: int, deleted: list[str]) -> None:
        self._deletes(deleted, datasets, attempt)
        here = self._here(datasets, attempt)
        for name in {split(c)[0] for c in here}:
            self._next(kind, name, attempt)
        for copy in here:
            if self.stored.get(copy) in ("PRODUCING", "VANISHED", "STORED"):
                self.stored[copy] = "GONE"
                self._deleted.add(copy)

    def _deletes(self, deleted: list[str], datasets: Iterable[str] | None, attempt: int | None) -> None:
        """Everything that is there, and nothing else."""
        there = {c for c, state in self.stored.items() if state in ("PRODUCING", "STORED")}
        if datasets is not None:
            there = {c for c in there if split(c)[0] in datasets and split(c)[2] == attempt}
        refuse(sorted(deleted) != sorted(there), "something else was there")

    def _reads(self, event: str, args: Record) -> None:
        copy, reader = args["partition"], args["reader"]
        name, p, attempt = split(copy)
        master = self._master
        assert master is not None
        refuse(master.placed.get(copy) != self.name, "not here")
        refuse(master.told.get((name, reader)) != attempt, "told to read something else")
        order = [r for n, r in master.told if n == name]
        rank = order.index(reader)
        place = id(master), name, p
        if event == "partition_consumed":
            refuse(self._opened.get(place) != rank or (event, copy, reader) in self.facts, "not opened")
            self._counts[copy] += 1
            refuse(args["consumptions"] != self._counts[copy], "another count")
        else:
            refuse(self._last.get(place, -1) >= rank, "an earlier reader")
            self._last[place] = rank
            state = self.stored.get(copy)
            refuse(state != ("STORED" if event == "partition_opened" else "GONE"), "the contrary is true")
            if event == "partition_opened":
                self._opened[place] = rank
        self.facts[event, copy, reader] = self.now
        self.causes.append(((self._trace, master.told_at[name, reader]), self.now))


def accepts(records: Iterable[Record]) -> bool:
    """Whether the events of all processes are a run. Each process's are in their order."""
    masters: dict[str, list[Record]] = {}
    logs: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        match = re.fullmatch(r"(.+)\.(\d+)", record["process"], re.ASCII)
        if "#" in record["trace"]:
            continue
        if record["process"] == "jobmaster":
            masters.setdefault(record["trace"], []).append(record)
        elif match:
            logs.setdefault((match[1], int(match[2])), []).append(record)
    try:
        stores = {
            f"{a}>{b}" for own in masters.values() for a, b, kind in own[0]["args"]["exchanges"] if kind != "PIPELINED"
        }
        known = {trace: Master(own) for trace, own in masters.items()}
        causes = nx.DiGraph()
        for place, own in ({(t,): o for t, o in masters.items()} | logs).items():
            nx.add_path(causes, [(*place, i) for i in range(len(own))])  # of a JobMaster, those that are judged
        executors: dict[str, Executor] = {}
        begun: dict[tuple[str, int, int], tuple[Any, ...]] = {}
        for (name, incarnation), own in sorted(logs.items()):
            executor = executors.setdefault(name, Executor(name, known))
            for at, record in enumerate(own):
                args, executor.now = record.get("args", {}), (name, incarnation, at)
                copies = [*args.get("created", ()), *args.get("deleted", ()), *args.get("lost", ())]
                copies += args.get("discarded", ())
                copies += [args[name] for name in ("partition", "full") if name in args]
                named = {split(c)[0] for c in copies} | {*args.get("datasets", ())}
                named |= {args["dataset"]} if "dataset" in args else {*()}
                refuse(at == 0 and record["event"] != "registering", "not the beginning")
                refuse(named - stores, "no dataset")
                if record["event"] == "registering":
                    key = name, incarnation, args["connection"]
                    refuse(key in begun, "begun twice")
                    executor.begin(key)
                    begun[key] = executor.now
                executor.read(record["event"], args)
        facts = {fact: at for executor in executors.values() for fact, at in executor.facts.items()}
        causes.add_edges_from(edge for executor in executors.values() for edge in executor.causes)
        void = set().union(*(e.void for e in executors.values())) if executors else set()
        every = [key for master in known.values() for key in master.connections]
        refuse(len({*every}) < len(every), "registered twice")
        for trace, master in known.items():
            for key, number in master.registered_at.items():
                if master.placed:
                    refuse(key not in begun, "no connection")
                    causes.add_edge(begun[key], (trace, number))
            for fact, number in master.relies:
                refuse(fact not in facts, "not reported")
                refuse(fact[0] == "partition_finished" and fact[1] in void, "its attempt has failed")
                causes.add_edge(facts[fact], (trace, number))
            for name, reader, number in master.missed:
                found = [
                    at
                    for (kind, copy, r), at in facts.items()
                    if kind == "partition_missing" and r == reader and split(copy)[0] == name
                ]
                refuse(not found, "nobody has missed it")
                refuse(all(nx.has_path(causes, (trace, number), at) for at in found), "missed later")
        refuse(not nx.is_directed_acyclic_graph(causes), "an effect is before its cause")
    except (Refused, KeyError, TypeError, StopIteration, AttributeError):
        return False
    return True
