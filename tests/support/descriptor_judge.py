"""A second judge of offloaded descriptors, in plain Python, without any model."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from changed_logs import Records

_THEIRS = ("descriptor_loaded", "descriptor_missing", "blobs_dropped")


def descriptors_are_right(records: Records) -> bool:
    """Whether each TaskExecutor reads the descriptor of each attempt from a cache that is as it must be, and the JobMaster
    keeps blobs as long as they are needed."""
    masters: dict[str, Records] = defaultdict(list)
    theirs: dict[str, Records] = defaultdict(list)
    for record in sorted(records, key=lambda r: r["seq"]):
        if record["process"] == "jobmaster" and "#" not in record["trace"]:
            masters[record["trace"]].append(record)
        elif record["event"] in _THEIRS:
            theirs[record["process"]].append(record)
    judges = [_Judge(own) for own in masters.values()]
    if not all(judge.is_right for judge in judges):
        return False
    for own in theirs.values():
        last = None
        for record in own:
            if record["event"] != "blobs_dropped":
                last = next((judge for judge in judges if _attempt(record["args"]) in judge.offloaded), None)
            if last is None:
                return False
            last.add(record)
    return all(judge.agrees() for judge in judges)


def _attempt(args: dict[str, Any]) -> tuple[int, int]:
    return args["region"], args["attempt"]


class _Judge:
    """The blobs of one JobMaster."""

    def __init__(self, own: Records) -> None:
        self.offloaded: dict[tuple[int, int], tuple[int, dict[str, Any], set[tuple[str, int]]]] = {}
        self.ends: dict[tuple[int, int], int] = {}
        self.needed: dict[tuple[int, int], int] = {}
        """Where an attempt has been deployed everywhere."""
        self.theirs: dict[tuple[str, int], Records] = defaultdict(list)
        self.is_right = self._read(own)

    def _read(self, own: Records) -> bool:
        now: dict[str, tuple[str, int]] = {}
        active: dict[tuple[int, int], str] = {}
        current: dict[tuple[str, ...], tuple[int, int]] = {}
        over = False
        for at, record in enumerate(own):
            args, event = record.get("args") or {}, record["event"]
            if event == "registered":
                now[args["executor"]] = f"{args['executor']}.{args['incarnation']}", args["connection"]
            elif event == "descriptor_offloaded":
                attempt = _attempt(args)
                if over or attempt in self.offloaded or not now.keys() >= {*args["executors"]}:
                    return False
                self.offloaded[attempt] = at, args, {now[name] for name in args["executors"]}
                active[attempt] = args["key"]
                current[tuple(sorted(args["tasks"]))] = attempt
            elif event == "descriptor_released":
                attempt = _attempt(args)
                key = active.pop(attempt, None)
                if key is None or args["deleted"] != ([] if key in active.values() else [key]):
                    return False
                self.ends[attempt] = at
                if args["finished"]:
                    self.needed.setdefault(attempt, at)
            elif event == "region_running":
                attempt = current.get(tuple(sorted(args["tasks"])), (-1, -1))
                if attempt in active:
                    self.needed.setdefault(attempt, at)
            elif event in ("job_finished", "job_failed") and self.offloaded:
                if over or active:
                    return False
                over = True
        return True

    def add(self, record: dict[str, Any]) -> None:
        """An event of a TaskExecutor."""
        self.theirs[record["process"], record["args"]["connection"]].append(record)

    def agrees(self) -> bool:
        """Whether what the TaskExecutors do goes with it."""
        read: dict[tuple[int, int], dict[tuple[str, int], int]] = defaultdict(dict)
        rooms = {r["args"]["room"] for own in self.theirs.values() for r in own if "room" in r["args"]}
        known = {args["key"]: args["content"] for _, args, _ in self.offloaded.values()}
        for connection, own in self.theirs.items():
            cache: list[str] = []
            position = 0
            closed = False
            for record in own:
                args = record["args"]
                if record["event"] == "descriptor_missing" or closed:
                    return False
                if record["event"] == "blobs_dropped":
                    closed = True
                    if not any(connection in of for _, _, of in self.offloaded.values()) or args["keys"] != cache:
                        return False
                    continue
                attempt = _attempt(args)
                begun, offloaded, executors = self.offloaded[attempt]
                position = max(position, begun)
                key = args["key"]
                if connection not in executors or connection in read[attempt] or args["content"] != known.get(key):
                    return False
                if offloaded["key"] != key or position >= self.ends.get(attempt, position + 1):
                    return False
                read[attempt][connection] = position
                if args["fetched"] is (key in cache):
                    return False
                cache = [key, *(k for k in cache if k != key)][: args["room"]]
                if args["cached"] != cache:
                    return False
        everywhere = all(
            self.offloaded[attempt][2] <= {c for c, position in read[attempt].items() if position < at}
            for attempt, at in self.needed.items()
        )
        return everywhere and len(rooms) <= 1
