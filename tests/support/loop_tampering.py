"""Logs of runs with loops that are not what happened: one event left out, repeated, moved or changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

POLICIES = ("any", "feedback-first", "feedback-first-when-utilised", "fair", "forward-first")
KINDS = ("drop", "twice", "swap", "number", "numbers", "state", "channel", "item", "policy", "writer")
"""Kinds of changes."""
OF_HEAD = (
    *("loop_opened", "feedback_received", "spill_read", "buffer_received"),
    *("record_received", "baton_received", "channel_released", "record_processed", "buffers_flushed"),
)
"""Events of a head that say something of its loop."""
Log = list[dict[str, Any]]


def changed(records: Sequence[dict[str, Any]], kind: str, draw: random.Random) -> Log | None:
    """A copy with one change of a kind, or None if the drawn event cannot be changed so."""
    opened = {(r["trace"], r["process"]): r for r in records if r["event"] == "loop_opened"}
    own = [at for at, r in enumerate(records) if (r["trace"], r["process"]) in opened and r["event"] in OF_HEAD]
    places = {
        "writer": [at for at, r in enumerate(records) if any("~" in c for c in r.get("args", {}).get("channels", ()))],
        "numbers": [at for at in own if records[at]["event"] == "spill_read"],
        "policy": [at for at in own if records[at]["event"] == "loop_opened"],
    }.get(kind, own)
    places = [
        at for at in places if kind != "writer" or records[at]["event"] in ("record_processed", "buffers_flushed")
    ]
    if not places:
        return None
    at = draw.choice(places)
    found = copy.deepcopy(records[at])
    if kind in ("drop", "writer"):
        return [*records[:at], *records[at + 1 :]]
    if kind == "twice":
        doubled = [{**r, "seq": 2 * r["seq"]} for r in records]
        return [*doubled[: at + 1], {**found, "seq": 2 * found["seq"] + 1}, *doubled[at + 1 :]]
    if kind == "swap":
        return _swapped(records, at, own, draw)
    event = opened[found["trace"], found["process"]]["args"]
    if not _change(found, kind, event, draw) or found == records[at]:
        return None
    return [*records[:at], found, *records[at + 1 :]]


def _swapped(records: Sequence[dict[str, Any]], at: int, own: list[int], draw: random.Random) -> Log | None:
    one = records[at]
    same = [o for o in own if o > at and (records[o]["trace"], records[o]["process"]) == (one["trace"], one["process"])]
    if not same:
        return None
    other = same[draw.randrange(min(3, len(same)))]
    swapped = [*records]
    swapped[at] = {**records[other], "seq": one["seq"]}
    swapped[other] = {**one, "seq": records[other]["seq"]}
    return swapped


def _change(found: dict[str, Any], kind: str, opened: dict[str, Any], draw: random.Random) -> bool:
    """Changes an event in place; False if it has nothing of the kind."""
    args, state = found.get("args", {}), found.get("state", {})
    if kind == "numbers":
        numbers = args["numbers"]
        draw.choice((numbers.reverse, numbers.pop, lambda: numbers.append(numbers[-1] + 1)))()
    elif kind == "policy":
        args["policy"] = draw.choice(POLICIES)
    elif kind == "number" and "number" in args:
        args["number"] = max(0, args["number"] + draw.choice((-1, 1, 2)))
    elif kind == "state" and "spilled" in state:
        state[draw.choice(("memory", "spilled"))] += draw.choice((-1, 1))
    elif kind == "item" and "item" in args:
        args["item"] = draw.choice(("record", "end"))
    elif kind == "channel" and "channel" in args:
        args["channel"] = draw.choice(
            opened["feedback"] if found["event"] == "feedback_received" else opened["forward"] + opened["feedback"]
        )
    else:
        return False
    return True
