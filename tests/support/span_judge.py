"""A second judge of records that span buffers and of pools at senders, in plain Python, without any model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from changed_logs import Records


def _by_trace(records: Records) -> Iterable[Records]:
    found: dict[str, Records] = defaultdict(list)
    for record in sorted(records, key=lambda r: r["seq"]):
        if "#" in record["trace"]:
            found[record["trace"]].append(record)
    return found.values()


def spans_are_right(records: Records) -> bool:
    """Whether each record that was cut into parts was received with all of them, one after the other."""
    for own in _by_trace(records):
        finished = any(r["event"] == "finished" and r["process"] == "jobmaster" for r in own)
        cut: dict[str, list[int]] = defaultdict(list)
        ends: dict[tuple[str, bool], set[str]] = defaultdict(set)
        for record in own:
            if record["event"] == "record_spans":
                cut[record["args"]["channel"]].append(record["args"]["parts"])
                ends[record["args"]["channel"], True].add(record["process"])
        begun: dict[str, int] = defaultdict(int)
        for record in own:
            args: dict[str, Any] = record.get("args") or {}
            event, channel = record["event"], str(args.get("channel"))
            if event == "part_received":
                begun[channel] += 1
                ends[channel, False].add(record["process"])
                if not cut[channel] or begun[channel] != args["gathered"] or begun[channel] >= cut[channel][0]:
                    return False
            elif event == "record_received" and "parts" in args:
                ends[channel, False].add(record["process"])
                if not cut[channel] or cut[channel].pop(0) != begun[channel] + 1 or args["parts"] != begun[channel] + 1:
                    return False
                begun[channel] = 0
            elif (
                event in ("record_received", "baton_received", "barrier_received", "channel_released")
                and begun[channel]
            ):
                return False
        if any(len(processes) > 1 for processes in ends.values()) or (finished and any(cut.values())):
            return False
    return True


def pools_are_right(records: Records) -> bool:
    """Whether every channel has its share, and never more buffers than that."""
    if not any(record["event"] == "pool_opened" for record in records):
        return True
    for own in _by_trace(records):
        shares: dict[str, dict[str, int]] = {}
        held: dict[str, int] = defaultdict(int)
        for record in own:
            args: dict[str, Any] = record.get("args") or {}
            state, process = record.get("state") or {}, record["process"]
            if record["event"] == "pool_opened":
                names = args["channels"]
                each, more = divmod(min(args["buffers"], args["largest"] * len(names)), len(names))
                sizes = {name: each + (at < more) for at, name in enumerate(names)}
                if process in shares or sizes != state["sizes"]:
                    return False
                shares[process] = sizes
            elif record["event"] in ("buffers_sent", "credits_received"):
                if process not in shares:
                    return False
                is_sending = record["event"] == "buffers_sent"
                written: dict[str, int] = args["produced"] if is_sending else {}
                left: dict[str, int] = args["sent"] if is_sending else {args["channel"]: args["sent"]}
                if (
                    not shares[process].keys() >= {*written, *left}
                    or state["backlog"].keys() != (written or left).keys()
                ):
                    return False
                for channel, count in written.items():
                    held[channel] += count
                    if count and held[channel] > shares[process][channel]:
                        return False
                for channel, count in left.items():
                    held[channel] -= count
                    if held[channel] < 0:
                        return False
                if any(held[channel] != count for channel, count in state["backlog"].items()):
                    return False
    return True
