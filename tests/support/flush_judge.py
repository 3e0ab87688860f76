"""A second opinion on buffers in the log of a simulated run that has finished: counters, and none of the code of streamproof.

The order of the file is the order in which things happened. Kept beside the sabotage of rules: it counts records, which no
machine that follows logs has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def wrong(records: Iterable[Mapping[str, Any]]) -> str | None:
    """The first event that contradicts what was held, sent or received; None if all buffers are accounted for."""
    held: Counter[tuple[str, str]] = Counter()
    under_way: Counter[tuple[str, str]] = Counter()
    for record in records:
        trace, task, event, args = record["trace"], record["process"], record["event"], record.get("args", {})
        sent = args["channels"] if event in ("record_processed", "buffers_flushed") else []
        done = args.get("done", 1) if event in ("record_processed", "buffers_flushed") else 0
        if sent and not held[trace, task]:
            return f"{task} sends what it does not hold"
        if event == "record_produced":
            sent = [args["channel"]]
        under_way.update((trace, channel) for channel in sent)
        if event == "record_received":
            under_way[trace, args["channel"]] -= 1
            if under_way[trace, args["channel"]] < 0:
                return f"{task} receives what was not sent"
            held[trace, task] += 1
        held[trace, task] -= done
        if held[trace, task] < 0 or (event == "terminated" and held[trace, task]):
            return f"{task} holds {held[trace, task]}"
        if "held" in record.get("state", {}) and record["state"]["held"] != held[trace, task]:
            return f"{task} holds {held[trace, task]}, and says {record['state']['held']}"
        if event == "finished" and any(count for (of, _), count in under_way.items() if of == trace):
            return "buffers are under way after the end"
    return None
