"""Consistency of different log lines of a run about one object: names, allocations, partition types and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from streamproof.conformance import Event
from streamproof.conformance.flink import Attempt

Fact = tuple[str, str, object]
"""The kind of value, its object, and the value: ``("type of the dataset", "<graph>_<dataset>", "PIPELINED")``."""
SIZE = "number of subpartitions"

_RECEIVED = frozenset({"tm.submit", "tm.transition", "tm.final"})
_STORED = frozenset({"part.registered", "part.consumed", "part.request", "part.releasing"})
_ASKED = frozenset({"part.request", "part.reqremote", "part.reqlocal", "gate.retrigger"})


def contradictions(
    events: Sequence[Event], outputs: Mapping[str, int], places: Mapping[str, str]
) -> dict[tuple[str, int], str]:
    """The events whose line contradicts itself, other lines, or the job graph, by process and position, each with the reason.

    If lines differ, the minority is wrong, and among equally many the later ones; of an attempt that is deployed twice, what
    differs from the first deployment. `outputs` has the number of outgoing edges of each vertex, if the job graph is
    complete; `places` the TaskManager of each process whose log says it.
    """
    values: dict[tuple[str, str], Counter[object]] = {}
    deployed: dict[tuple[str, str], list[object]] = {}
    for event in events:
        for what, key, value in _facts(event, places):
            counts = values.get((what, key))
            if counts is None:
                counts = values[what, key] = Counter()
            counts[value] += 1
            if event.event == "exec.deploy" and key == event.args["attempt"]:
                deployed.setdefault((what, key), []).append(value)
    usual = {about: counts.most_common(1)[0][0] for about, counts in values.items() if len(counts) > 1}
    usual |= {about: found[0] for about, found in deployed.items() if len(set(found)) > 1}
    shown = {
        (*about, value): e
        for e in (reversed(events) if usual else ())
        for *about, value in _facts(e, places)
        if tuple(about) in usual
    }
    sizes = {key: counts.most_common(1)[0][0] for (what, key), counts in values.items() if what == SIZE}
    extra = _superfluous(events, outputs)
    wrong: dict[tuple[str, int], str] = {}
    for event in events:
        reason = _alone(event, extra, sizes)
        if usual and reason is None:
            reason = next(_outvoted(event, usual, shown, places), None)
        if reason is not None:
            wrong[event.process, event.seq] = reason
    return wrong


def _facts(event: Event, places: Mapping[str, str]) -> Iterator[Fact]:
    """What a line says of an object. A task that was received by a TaskManager whose log is there was deployed to no other
    one whose log is there; a TaskManager that started anew under another id has one log, with one of its ids."""
    args = event.args
    if event.event in _RECEIVED and event.process in places:
        yield "TaskManager of the attempt", args["attempt"], places[event.process]
    elif event.event == "exec.deploy" and args["tm"] in places.values():
        yield "TaskManager of the attempt", args["attempt"], args["tm"]
    if "task" in args and "vertex" in args and "graph" in args:
        vertex = f"{args['graph']}_{args['vertex']}"
        yield "name of the task", vertex, args["task"]
        if "parallelism" in args:
            yield "parallelism of the task", vertex, args["parallelism"]
    if event.event in ("exec.deploy", "tm.submit"):
        yield "allocation of the attempt", args["attempt"], args["alloc"]
    if event.event == "exec.deploy":
        yield "TaskManager of the allocation", args["alloc"], args["tm"]
    if event.event in _STORED:
        graph = Attempt.parse(args["producer"]).graph
        yield "type of the dataset", f"{graph}_{args['dataset']}", args["type"]
        yield "kind of the partition", args["partition"], args["kind"]
        yield SIZE, args["partition"], args["subparts"]


def _superfluous(events: Iterable[Event], outputs: Mapping[str, int]) -> set[tuple[str, str]]:
    """Execution graphs with more datasets than the registering vertex has edges; the rarest of them."""
    registered: dict[tuple[str, str], Counter[str]] = {}
    for event in events:
        if event.event == "part.registered":
            producer = Attempt.parse(event.args["producer"])
            registered.setdefault((producer.graph, producer.vertex), Counter())[event.args["dataset"]] += 1
    return {
        (graph, dataset)
        for (graph, vertex), counts in registered.items()
        for dataset, _ in counts.most_common()[outputs.get(vertex, len(counts)) :]
    }


def _alone(event: Event, extra: set[tuple[str, str]], sizes: Mapping[str, object]) -> str | None:
    """Why a line cannot be true, independently of other lines."""
    args = event.args
    if "conflict" in args:
        return str(args["conflict"])
    if event.event == "part.registered" and (Attempt.parse(args["producer"]).graph, args["dataset"]) in extra:
        return f"the partition belongs to dataset {args['dataset']}, but its producer has no further output"
    if event.event in _ASKED:
        size = sizes.get(args["partition"])
        last = max((args[name] for name in ("from", "to", "sub") if name in args), default=0)
        if isinstance(size, int) and last >= size:
            return f"subpartition {last} is requested, but the partition has {size}"
    return None


def _outvoted(
    event: Event,
    usual: Mapping[tuple[str, str], object],
    shown: Mapping[tuple[object, ...], Event],
    places: Mapping[str, str],
) -> Iterator[str]:
    for what, key, value in _facts(event, places):
        if (what, key) in usual and usual[what, key] != value:
            other = shown[what, key, usual[what, key]]
            where = f"{Path(other.file or other.process).name}:{other.line}"
            yield f"the {what} is {value}, but {usual[what, key]} at {where}"
