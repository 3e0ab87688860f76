"""OpenTelemetry spans as an event log: traces in OTLP JSON, as file exporters of SDKs and the Collector write them.

Each span is an event that took effect at some moment between its start and its end, and each of its span events is one at
its own time; attributes are the arguments. `service.instance.id`, or else `service.name`, of the resource names the process.
All spans of a file are one behaviour, or those with the same `streamproof.trace` (an attribute of the span or the resource).

The order is what times and contexts prove. Times of one process are compared, those of different processes never:

* in one process, what ended before a span began precedes it; overlapping spans and equal times have no order, except that
  the events of one span keep theirs;
* what had ended in a process before a span began there precedes the descendants of the span, wherever they are;
* a linked span began before the linking one ended (links may be added late), so what ended before the first began precedes
  what begins after the second.

Sources: OTLP specification 1.x, "JSON Protobuf Encoding", and the specification of the file exporter.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

from streamproof.base.errors import InputError, Loc
from streamproof.base.reading import unique
from streamproof.conformance.event import Event

TRACE: Final = "streamproof.trace"
"""The attribute that names the behaviour."""
STATE: Final = "streamproof.state"
"""The attribute with a part of the state after the event: key-values, or JSON text."""
_TICKS: Final = 1 << 20
"""Places in one nanosecond, to keep events of one span in order that have the same time."""


SIGNALS: Final = ("resourceSpans", "resourceLogs", "resourceMetrics")
"""The one of these fields that a message of OpenTelemetry has says what it holds."""


def is_otlp(data: object) -> bool:
    """Whether a JSON value is a message of OpenTelemetry: spans, or another signal, which is refused."""
    return isinstance(data, dict) and any(signal in data for signal in SIGNALS)


@dataclass(slots=True, eq=False)
class _Item:
    """What becomes one event: `begins` and `ends` bound the moment of its effect, in ticks of its process's clock."""

    trace: str
    process: str
    name: str
    args: dict[str, Any]
    state: Mapping[str, Any] | None
    begins: int
    ends: int
    loc: Loc
    span: _Span
    instant: bool
    """Whether it is a span event."""


@dataclass(slots=True, eq=False)
class _Span:
    """A span: who was there before it. `known`: for each process, the time before which all has precedence."""

    key: tuple[str, str]
    process: str
    begins: int
    ends: int
    parent: tuple[str, str] | None
    links: tuple[tuple[str, str], ...]
    loc: Loc
    known: dict[str, int] | None = None


def otlp_events(messages: Iterable[tuple[object, int]], name: str, run: str) -> list[Event]:
    """The events of the messages of a file, each with its line, in the order of their ends. `run` names the behaviour of
    spans that name none. Raises `InputError` (file, line, field, remedy)."""
    reader = _OtlpReader(name, run)
    for data, line in messages:
        try:
            reader.message(data, line)
        except RecursionError:
            raise reader.refuse("the line is nested too deeply", "attributes have a few levels at most") from None
    return _numbered(reader.items, reader.spans)


@dataclass(slots=True)
class _OtlpReader:
    """Collects the spans of a file."""

    name: str
    run: str
    spans: dict[tuple[str, str], _Span] = field(default_factory=dict)
    items: list[_Item] = field(default_factory=list)
    _raw: dict[tuple[str, str], object] = field(default_factory=dict)
    _resources: dict[str, object] = field(default_factory=dict)
    _loc: Loc = field(default_factory=lambda: Loc("", 0))

    def refuse(self, message: str, remedy: str = "") -> InputError:
        """The error at the current line."""
        return InputError(message, loc=self._loc, remedy=remedy)

    def message(self, data: object, line: int) -> None:
        """One message: resources, in them scopes, in them spans."""
        self._loc = Loc(self.name, line)
        if not isinstance(data, dict) or "resourceSpans" not in data:
            found = next((s for s in SIGNALS if isinstance(data, dict) and s in data), "something else")
            raise self.refuse(
                f"the line has {found}, not resourceSpans",
                "give a file with traces only, as the file exporter writes it",
            )
        for at, resource in enumerate(self.objects(data, "resourceSpans", "")):
            path = f"resourceSpans[{at}]"
            about = self.attributes(resource.get("resource") or {}, f"{path}.resource")
            if "instrumentationLibrarySpans" in resource:
                raise self.refuse(
                    f"{path}: instrumentationLibrarySpans are spans of an older version of OTLP, which are not read",
                    "export with version 0.15 of OTLP or newer, which has scopeSpans",
                )
            for scope_at, scope in enumerate(self.objects(resource, "scopeSpans", path)):
                inner = f"{path}.scopeSpans[{scope_at}]"
                for span_at, span in enumerate(self.objects(scope, "spans", inner)):
                    self.span(span, about, f"{inner}.spans[{span_at}]")

    def span(self, data: dict[str, Any], about: dict[str, Any], path: str) -> None:
        """One span and its events."""
        process = self.process(about, path)
        key = (self.identity(data, "traceId", 32, path), self.identity(data, "spanId", 16, path))
        if key in self._raw:
            if self._raw[key] == (process, data):
                return  # exported twice: delivery is at least once
            raise self.refuse(f"{path}: two different spans have the id {key[1]}", "give each span once")
        self._raw[key] = process, data
        begins, ends = self.time(data, "startTimeUnixNano", path), self.time(data, "endTimeUnixNano", path)
        if ends < begins:
            raise self.refuse(
                f"{path}: endTimeUnixNano is before startTimeUnixNano", "the clock was set back: record the run again"
            )
        parent = (key[0], self.identity(data, "parentSpanId", 16, path)) if data.get("parentSpanId") else None
        links = tuple(
            (self.identity(link, "traceId", 32, at), self.identity(link, "spanId", 16, at))
            for number, link in enumerate(self.objects(data, "links", path))
            if (at := f"{path}.links[{number}]")
        )
        made = _Span(key, process, begins, ends, parent, links, self._loc)
        self.spans[key] = made
        args = self.attributes(data, path)
        status = data.get("status") or {}
        if not isinstance(status, dict):
            raise self.refuse(f"{path}.status must be a JSON object", "write OTLP JSON, as the file exporter does")
        if status.get("code") in (2, "STATUS_CODE_ERROR"):
            args["otel.status_code"] = "ERROR"
        trace = args.pop(TRACE, about.get(TRACE, self.run))
        if not isinstance(trace, str):
            raise self.refuse(f"{path}: {TRACE} must be text, got {trace!r}")
        self.add(trace, data, args, (begins, ends), path, made, instant=False)
        if data.get("droppedEventsCount"):
            raise self.refuse(
                f"{path}: droppedEventsCount is {data['droppedEventsCount']}, so that events are missing",
                "raise OTEL_SPAN_EVENT_COUNT_LIMIT and record the run again",
            )
        for number, event in enumerate(self.objects(data, "events", path)):
            where = f"{path}.events[{number}]"
            moment = self.time(event, "timeUnixNano", where)
            self.add(trace, event, self.attributes(event, where), (moment, moment), where, made, instant=True)

    def add(
        self,
        trace: str,
        data: dict[str, Any],
        args: dict[str, Any],
        times: tuple[int, int],
        path: str,
        span: _Span,
        *,
        instant: bool,
    ) -> None:
        """One event, which took effect between two times."""
        name, state = data.get("name"), args.pop(STATE, None)
        if not isinstance(name, str) or not name:
            raise self.refuse(f"{path}: name must be text that is not empty, got {name!r}", "name what happened")
        if isinstance(state, str):
            with suppress(ValueError, RecursionError):
                state = json.loads(state, object_pairs_hook=unique)
        if state is not None and not isinstance(state, dict):
            raise self.refuse(
                f"{path}: {STATE} must be a JSON object, got {state!r}", "give the variables of the model by name"
            )
        begins, ends = times[0] * _TICKS, (times[1] + 1) * _TICKS - 1
        self.items.append(_Item(trace, span.process, name, args, state, begins, ends, self._loc, span, instant))

    def process(self, about: dict[str, Any], path: str) -> str:
        """The process of a resource. Two resources of one name would mix two clocks."""
        found = about.get("service.instance.id") or about.get("service.name")
        if not isinstance(found, str):
            raise self.refuse(
                f"{path}: the resource has neither service.instance.id nor service.name",
                "set OTEL_RESOURCE_ATTRIBUTES=service.instance.id=NAME in each process",
            )
        if self._resources.setdefault(found, about) != about:
            raise self.refuse(
                f"{path}: two different resources are called {found!r}, which is one process",
                "set another service.instance.id in each process",
            )
        return found

    def objects(self, data: dict[str, Any], name: str, path: str) -> list[dict[str, Any]]:
        """A field that is a list of objects; without it, none."""
        found = data.get(name)
        if found is None:
            return []
        where = f"{path}.{name}".lstrip(".")
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise self.refuse(f"{where} must be a list of JSON objects", "write OTLP JSON, as the file exporter does")
        return found

    def identity(self, data: dict[str, Any], name: str, digits: int, path: str) -> str:
        """The hexadecimal id in a field."""
        found = data.get(name)
        if not isinstance(found, str) or not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", found):
            raise self.refuse(
                f"{path}: {name} must be {digits} hexadecimal digits, got {found!r}",
                "OTLP JSON writes ids in hexadecimal, not in base64 as JSON of Protobuf otherwise does",
            )
        return found.lower()

    def time(self, data: dict[str, Any], name: str, path: str) -> int:
        """The nanoseconds since 1970 in a field: a number, or its text."""
        found = _whole(data.get(name))
        if found is None or not 0 < found < 1 << 64:
            raise self.refuse(
                f"{path}: {name} must be nanoseconds since 1970, got {data.get(name)!r}",
                "write the time as a whole number or its text; spans are exported when they have ended",
            )
        return found

    def attributes(self, data: object, path: str) -> dict[str, Any]:
        """The attributes of a resource, a span or an event."""
        if not isinstance(data, dict):
            raise self.refuse(f"{path} must be a JSON object", "write OTLP JSON, as the file exporter does")
        if data.get("droppedAttributesCount"):
            raise self.refuse(
                f"{path}: droppedAttributesCount is {data['droppedAttributesCount']}, so that attributes are missing",
                "raise OTEL_ATTRIBUTE_COUNT_LIMIT and record the run again",
            )
        return self.pairs(self.objects(data, "attributes", path), f"{path}.attributes")

    def pairs(self, found: list[dict[str, Any]], path: str) -> dict[str, Any]:
        """Key-values as a dict; a key twice has no meaning."""
        values: dict[str, Any] = {}
        for at, pair in enumerate(found):
            key = pair.get("key")
            if not isinstance(key, str) or key in values:
                why = "must be text" if not isinstance(key, str) else "occurs twice"
                raise self.refuse(f"{path}[{at}]: the key {key!r} {why}", "give each attribute once")
            values[key] = self.value(pair.get("value"), f"{path}[{at}].value")
        return values

    def value(self, data: object, path: str) -> Any:
        """A value: text, whole number, truth value, list, object. Fractional numbers and bytes are text."""
        if data is None or data == {}:
            return None
        kind, found = next(iter(data.items())) if isinstance(data, dict) and len(data) == 1 else ("", None)
        match kind, found:
            case ("stringValue" | "bytesValue", str()) | ("boolValue", bool()):
                return found
            case "intValue", _ if (whole := _whole(found)) is not None:
                return whole
            case "doubleValue", int() | float() | str():
                return str(found)
            case "arrayValue", dict():
                values = self.objects(found, "values", path)
                return [self.value(item, f"{path}.arrayValue[{at}]") for at, item in enumerate(values)]
            case "kvlistValue", dict():
                return self.pairs(self.objects(found, "values", path), f"{path}.kvlistValue")
        raise self.refuse(
            f"{path} is no value of OTLP: {json.dumps(data)[:60]}",
            'for example {"intValue": "3"} or {"stringValue": "a"}',
        )


def _whole(found: object) -> int | None:
    """A whole number, or its decimal text: 64 bits are text in OTLP JSON."""
    if isinstance(found, str) and re.fullmatch("-?[0-9]{1,20}", found):
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _numbered(items: list[_Item], spans: dict[tuple[str, str], _Span]) -> list[Event]:
    """The events, numbered in each process in the order of their ends, with the order that is proved."""
    _keep_order_of_spans(items)
    items.sort(key=attrgetter("ends"))
    accounts: dict[tuple[str, str], list[_Item]] = {}
    for item in items:
        accounts.setdefault((item.trace, item.process), []).append(item)
    ends = {place: [item.ends for item in own] for place, own in accounts.items()}
    heard = _heard(items, spans)
    numbers = {id(item): at for own in accounts.values() for at, item in enumerate(own)}
    events = []
    for item in items:
        number = numbers[id(item)]
        before = bisect_left(ends[item.trace, item.process], item.begins)
        clock = {item.process: number + 1}
        for process, time in heard[id(item)].items():
            count = bisect_left(ends.get((item.trace, process), ()), time * _TICKS)
            if count and process != item.process:
                clock[process] = count
        after = before - 1 if before < number else None
        moment = datetime.fromtimestamp(item.ends // _TICKS // 1_000_000 / 1000, UTC)
        ts = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
        place = item.loc.file, item.loc.line
        events.append(
            Event(item.trace, item.process, number, item.name, item.args, ts, clock, item.state, *place, after=after)
        )
    return events


def _keep_order_of_spans(items: list[_Item]) -> None:
    """Events of one span at the same time get their order if no other span has any then."""
    ties: dict[tuple[str, int], list[_Item]] = {}
    for item in items:
        if item.instant:
            ties.setdefault((item.process, item.begins), []).append(item)
    for tied in ties.values():
        if len(tied) > 1 and len({id(item.span) for item in tied}) == 1:
            for at, item in enumerate(tied):
                item.begins = item.ends = item.begins + at


def _heard(items: list[_Item], spans: dict[tuple[str, str], _Span]) -> dict[int, dict[str, int]]:
    """For each item and process, the time there before which everything precedes the item."""
    linking: dict[str, list[_Span]] = {}
    for span in spans.values():
        if span.links:
            linking.setdefault(span.process, []).append(span)
    for own in linking.values():
        own.sort(key=attrgetter("ends"))
    latest: dict[str, tuple[int, dict[str, int]]] = {}
    heard = {}
    for item in sorted(items, key=attrgetter("begins")):
        at, linked = latest.get(item.process, (0, {}))
        own = linking.get(item.process, [])
        while at < len(own) and (own[at].ends + 1) * _TICKS <= item.begins:
            for key in own[at].links:
                if key in spans:
                    linked = _latest(linked, {spans[key].process: spans[key].begins})
            at += 1
        latest[item.process] = at, linked
        heard[id(item)] = _latest(linked, _known(item.span, spans))
    return heard


def _known(span: _Span, spans: dict[tuple[str, str], _Span]) -> dict[str, int]:
    """What the start of a span follows: the starts of its ancestors, as far as the file has them."""
    chain = [span]
    while chain[-1].known is None and (parent := spans.get(chain[-1].parent or ("", ""))) is not None:
        if len(chain) > len(spans):
            raise InputError(
                f"the span {span.key[1]} is its own ancestor", loc=span.loc, remedy="correct its parentSpanId"
            )
        chain.append(parent)
    for own, parent in zip(reversed(chain), (None, *reversed(chain)), strict=False):
        if own.known is None:
            own.known = _latest(parent.known or {}, {parent.process: parent.begins}) if parent else {}
    return span.known or {}


def _latest(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: max(some.get(name, 0), others.get(name, 0)) for name in (*some, *others)}
