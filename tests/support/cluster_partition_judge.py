"""A judge of what the runtime's logs say of cluster partitions, in plain Python: no machine, no model.

Each process is read in the order of its own events. What an event relies on must be somewhere in the log; which of two
processes was first is not looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Record = dict[str, Any]
_GONE = {"manager_lost", "cluster_partition_released"}


def _require(condition: object, why: str) -> None:
    if not condition:
        raise _Refused(why)


class _Refused(Exception):
    """The log is of no run."""


def accepts(records: Iterable[Record]) -> bool:
    """Whether the events about cluster partitions can be those of a run."""
    return refusal(records) == ""


def refusal(records: Iterable[Record]) -> str:
    """Why they cannot; empty if they can."""
    masters: dict[str, list[Record]] = defaultdict(list)
    processes: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if "#" not in record["trace"] and "/" not in record["trace"]:
            (masters if record["process"] == "jobmaster" else processes)[
                record["trace"] if record["process"] == "jobmaster" else record["process"]
            ].append(record)
    try:
        datasets = {name for own in masters.values() for name in own[0]["args"].get("promoted", ())}
        promoted = {name for own in processes.values() for name in _there(own, datasets)}
        places = _places(masters, datasets)
        for own in processes.values():
            for record in own:
                for name in record.get("args", {}).get("promoted", ()):
                    _require(places.get(name) == record["process"].rpartition(".")[0], f"{name} was not deployed here")
        requested, finished = set[tuple[str, int]](), set[tuple[str, int]]()
        for own in masters.values():
            _made(own, promoted, requested, finished)
        for own in processes.values():
            for record in own:
                for name in record.get("args", {}).get("promoted", ()):
                    _require(_of(name) in requested, f"nobody has asked for {name}")
        for own in masters.values():
            _read(own, finished, places, processes)
    except (_Refused, AssertionError, AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        return str(error) or type(error).__name__
    return ""


def _of(copy: str) -> tuple[str, int]:
    """The dataset and the attempt of a copy."""
    match = re.fullmatch(r"(.+)/\d+@(\d+)", copy)
    assert match is not None
    return match[1], int(match[2])


def _there(own: list[Record], datasets: set[str]) -> set[str]:
    """What one process of a TaskExecutor promotes; its events in their order agree with what it has."""
    stored, cluster, every, vanished = set[str](), set[str](), set[str](), set[str]()
    for record in own:
        event, args = record["event"], record.get("args", {})
        mine = {c for c in args.get("deleted", ()) if _of(c)[0] in datasets}
        if event == "partition_finished" and _of(args["partition"])[0] in datasets:
            stored |= {args["partition"]} - vanished
        elif event == "partitions_promoted":
            _require(args["promoted"] and {*args["promoted"]} <= stored, "what is promoted is not stored")
            cluster |= {*args["promoted"]}
            every |= cluster
        elif event == "promotion_failed":
            _require(args["missing"] and not {*args["missing"]} & stored, "nothing is missing")
        elif event == "partitions_lost":
            gone = {c for c in args["lost"] if _of(c)[0] in datasets}
            stored, cluster, vanished = stored - gone, cluster - gone, vanished | gone
        elif event in _GONE:
            of = (
                cluster
                if event == "manager_lost"
                else {c for c in cluster if _of(c) == (args["dataset"], args["attempt"])}
            )
            _require(mine == of, f"{event} deletes something else")
        elif event == "master_lost":
            _require(not mine & cluster, "a cluster partition is deleted with its job")
            _require({c for c in stored if c not in cluster} <= mine, "a partition of a lost job stays")
        elif event == "executor_released":
            _require(not cluster and not args["deleted"], "a TaskExecutor with cluster partitions is released")
        elif event in ("partition_opened", "partition_missing") and _of(args["partition"])[0] in datasets:
            is_there = args["partition"] in cluster
            _require(is_there == (event == "partition_opened"), f"{args['partition']}: the contrary is true")
        stored, cluster = stored - mine, cluster - mine
    return every


def _places(masters: dict[str, list[Record]], datasets: set[str]) -> dict[str, str]:
    """The TaskExecutor of each copy."""
    found = {}
    for own in masters.values():
        for record in own:
            if record["event"] == "partitions_tracked":
                for name, executor in record["args"]["partitions"].items():
                    if name.rpartition("/")[0] in datasets:
                        found[f"{name}@{record['args']['attempt']}"] = executor
    return found


def _made(own: list[Record], promoted: set[str], requested: set[Any], finished: set[Any]) -> None:
    """The job that makes them asks when all else is done, and ends when all have answered."""
    names = own[0]["args"].get("promoted", [])
    attempt: dict[str, tuple[int, list[str]]] = {}
    asked, done, active = dict[str, int](), set[str](), set[str]()
    for record in own:
        event, args = record["event"], record.get("args", {})
        if event == "partitions_tracked":
            for name in names:
                copies = [c for c in args["partitions"] if c.rpartition("/")[0] == name]
                if copies:
                    attempt[name] = args["attempt"], copies
                    asked.pop(name, None)
        elif event == "region_scheduled":
            active.update(args["tasks"])
        elif event == "promotion_requested":
            waiting = {name.partition(">")[0] for name in names}
            _require(active <= waiting, "something else of the job is not finished")
            for name in args["datasets"]:
                _require(name in names and attempt[name][0] == args["attempt"], "another attempt")
                asked[name] = args["attempt"]
                requested.add((name, args["attempt"]))
        elif event in ("region_finished", "region_failed"):
            active -= {*args.get("tasks", ()), *args.get("restarts", ())}
            for name in names:
                if event == "region_finished" and name.partition(">")[0] in args["tasks"]:
                    number, copies = attempt[name]
                    _require(asked.get(name) == number, "it was not asked for")
                    _require({f"{c}@{number}" for c in copies} <= promoted, "not all have promoted it")
                    done.add(name)
                elif name.partition(">")[0] in args.get("restarts", ()):
                    done.discard(name)
        elif event == "job_finished":
            _require(done == {*names}, "the job ends without its cluster partitions")
            finished.update((name, attempt[name][0]) for name in names)


def _read(own: list[Record], finished: set[Any], places: dict[str, str], processes: dict[str, list[Record]]) -> None:
    """A later job reads what a finished job has promoted, where it is, each time it says to have done so."""
    located = dict[str, int]()
    scheduled, reading = -1, dict[str, tuple[int, int, set[str]]]()
    consumed = {
        (r["args"]["partition"], r["args"]["reader"])
        for of in processes.values()
        for r in of
        if r["event"] == "partition_consumed"
    }
    for record in own:
        event, args = record["event"], record.get("args", {})
        if event == "region_scheduled":
            scheduled = args["attempt"]
        elif event == "cluster_partition_located":
            key = args["dataset"], args["attempt"]
            _require(key in finished, "it was never promoted")
            here = [places[f"{key[0]}/{n}@{key[1]}"] for n in range(len(args["executors"]))]
            _require(here == args["executors"], "it is elsewhere")
            located[args["dataset"]] = args["attempt"]
        elif event == "region_deployed":
            for name, attempt in args.get("cluster", {}).items():
                _require(located.get(name) == attempt, "it was not located")
                reading[name] = scheduled, attempt, {*args["tasks"]}
        elif event == "region_finished":
            for name, (reader, attempt, tasks) in [*reading.items()]:
                if tasks & {*args["tasks"]}:
                    copies = [c for c in places if _of(c) == (name, attempt)]
                    _require(all((c, reader) in consumed for c in copies), "it was not read to its end")
                    del reading[name]
