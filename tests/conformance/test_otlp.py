"""OpenTelemetry spans are events whose order is what their times and contexts prove, no more and no less."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from streamproof import Model, Range, State, action, require
from streamproof.conformance import EventLog, InputError, judge, read_events, write_ndjson, write_parquet

TRACE = "5b8efff798038103d269b633813fc60c"
START = 1_544_712_660_000_000_000


class Register(Model):
    """One value, which is written and read."""

    values: int = 3

    def state(self) -> State:
        """The value."""
        return State(value=Range(0, self.values - 1))

    @action(v="values")
    def write(self, s: Any, v: Any) -> None:
        """Another value."""
        s.value = v

    @action(v="values")
    def read(self, s: Any, v: Any) -> None:
        """The value."""
        require(s.value == v)


BINDING = EventLog(Register, {"handle": None})


def attribute(key: str, value: Any) -> dict[str, Any]:
    """An attribute, whose numbers are text as the specification has them."""
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def span(number: int, name: str, start: int, end: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """A span with the `v` of its arguments; times in nanoseconds from START."""
    made: dict[str, Any] = {
        "traceId": TRACE.upper(),
        "spanId": f"{number + 1:016x}",
        "name": name,
        "startTimeUnixNano": str(START + start),
        "endTimeUnixNano": str(START + end),
    }
    if parent is not None:
        made["parentSpanId"] = f"{parent + 1:016X}"
    return made | more


def message(process: str, *spans: dict[str, Any], service: str = "register") -> dict[str, Any]:
    """The message of one process."""
    resource = {"attributes": [attribute("service.name", service), attribute("service.instance.id", process)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def written(folder: Path, *messages: dict[str, Any], name: str = "spans.jsonl") -> Path:
    """A file with one message a line."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(m)}\n" for m in messages))
    return path


def verdict(path: Path) -> str:
    """The verdict of the register on a file."""
    (only,) = judge(BINDING.plan(path, None), "register")
    return only.answer


def test_spans_are_events(tmp_path: Path) -> None:
    """Spans in the order of their ends, span events at their times, attributes as arguments, a document or lines."""
    values = [
        attribute("v", 2),
        {"key": "deep", "value": {"kvlistValue": {"values": [attribute("w", "x")]}}},
        {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": True}, {"intValue": 7}, {}]}}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "raw", "value": {"bytesValue": "AAE="}},
    ]
    noted = [{"name": "read", "timeUnixNano": START + 30, "attributes": [attribute("v", 2)]}]
    state = {"key": "streamproof.state", "value": {"stringValue": '{"value": 2}'}}
    first = span(0, "handle", 10, 90, attributes=values, events=noted, status={"code": 2})
    second = span(1, "write", 20, 25, 0, attributes=[attribute("v", 2), state])
    path = written(tmp_path, message("p", first), message("p", first), message("p", second))
    write, read, handle = read_events(path)
    assert (str(write), write.state, write.line) == ("p#0 write(v=2)", {"value": 2}, 3)
    assert (str(read), read.after, read.trace) == ("p#1 read(v=2)", None, "spans")
    assert (handle.seq, handle.after, handle.ts) == (2, -1, "2018-12-13T14:51:00.000")
    deep = {"v": 2, "deep": {"w": "x"}, "list": [True, 7, None], "share": "0.5", "raw": "AAE="}
    assert handle.args == {**deep, "otel.status_code": "ERROR"}
    assert verdict(path) == "accepted"
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(message("p", first, second), indent=1))
    assert [e.event for e in read_events(whole)] == ["write", "read", "handle"]


def test_the_behaviour_is_the_file_or_named(tmp_path: Path) -> None:
    """The attribute of the span, or else the resource, names the behaviour."""
    named = span(1, "write", 3, 4, attributes=[attribute("v", 0), attribute("streamproof.trace", "second")])
    path = written(tmp_path, message("p", span(0, "write", 1, 2, attributes=[attribute("v", 0)]), named))
    assert [(e.trace, e.seq, dict(e.args)) for e in read_events(path)] == [
        ("spans", 0, {"v": 0}),
        ("second", 0, {"v": 0}),
    ]


def test_a_folder_of_spans(tmp_path: Path) -> None:
    """Files with spans are found by their content, compressed or not; other JSON is left alone."""
    text = json.dumps(message("p", span(0, "write", 1, 2, attributes=[attribute("v", 0)])))
    (tmp_path / "traces.json").write_text(text)
    (tmp_path / "old.json.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "answer.json").write_text('{"jobs": []}')
    runs = BINDING.runs(tmp_path)
    assert [run.name for run in runs] == ["old.json.gz", "traces.json"]
    assert [verdict(run) for run in runs] == ["accepted", "accepted"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, "traceId must be 32 hexadecimal digits, got 'W47/95gDgQPSabYzgT/GDA=='"),
    ({"spanId": ""}, "spanId must be 16 hexadecimal digits, got ''"),
    ({"parentSpanId": 3}, "parentSpanId must be 16 hexadecimal digits, got 3"),
    ({"links": [{"traceId": TRACE}]}, "links[0]: spanId must be 16 hexadecimal digits, got None"),
    ({"startTimeUnixNano": "1.5e18"}, "startTimeUnixNano must be nanoseconds since 1970, got '1.5e18'"),
    ({"endTimeUnixNano": 0}, "endTimeUnixNano must be nanoseconds since 1970, got 0"),
    ({"endTimeUnixNano": "1"}, "endTimeUnixNano is before startTimeUnixNano"),
    ({"endTimeUnixNano": 1 << 64}, "endTimeUnixNano must be nanoseconds since 1970, got 18446744073709551616"),
    ({"events": [{"name": "e", "timeUnixNano": 10**30}]}, "timeUnixNano must be nanoseconds since 1970"),
    ({"status": "STATUS_CODE_ERROR"}, "status must be a JSON object"),
    ({"name": ""}, "name must be text that is not empty, got ''"),
    ({"events": {}}, "events must be a list of JSON objects"),
    ({"events": [{"name": "e"}]}, "events[0]: timeUnixNano must be nanoseconds since 1970, got None"),
    ({"attributes": [{"key": "v", "value": {"intValue": "1.5"}}]}, 'value is no value of OTLP: {"intValue": "1.5"}'),
    ({"attributes": [{"key": "v", "value": 3}]}, "value is no value of OTLP: 3"),
    ({"attributes": [attribute("v", 1)] * 2}, "attributes[1]: the key 'v' occurs twice"),
    ({"attributes": [attribute("streamproof.state", "x")]}, "streamproof.state must be a JSON object, got 'x'"),
    ({"attributes": [attribute("streamproof.trace", 1)]}, "streamproof.trace must be text, got 1"),
    ({"droppedEventsCount": 2}, "droppedEventsCount is 2, so that events are missing"),
    ({"droppedAttributesCount": 1}, "droppedAttributesCount is 1, so that attributes are missing"),
]


@pytest.mark.parametrize(("fields", "text"), BAD, ids=[text for _, text in BAD])
def test_a_bad_span_is_refused(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    """With file, line, the path of the field, and a remedy."""
    good = message("p", span(0, "write", 1, 2, attributes=[attribute("v", 0)]))
    path = written(tmp_path, good, message("p", span(1, "write", 3, 4) | fields))
    with pytest.raises(InputError) as caught:
        read_events(path)
    assert str(caught.value).startswith(f"{path}:2: resourceSpans[0].scopeSpans[0].spans[0]")
    assert text in caught.value.message
    assert caught.value.remedy or "streamproof.trace" in text


@pytest.mark.parametrize(
    ("second", "text"),
    [
        ({"resourceLogs": []}, "the line has resourceLogs, not resourceSpans"),
        ({"trace": "t", "process": "p", "seq": 0, "event": "e"}, "the line has something else, not resourceSpans"),
        (message("p", span(0, "other", 1, 2)), "two different spans have the id 0000000000000001"),
        (
            {"resourceSpans": [{"scopeSpans": [{"spans": [span(1, "e", 1, 2)]}]}]},
            "neither service.instance.id nor service.name",
        ),
        (
            message("p", span(1, "e", 1, 2), service="another"),
            "two different resources are called 'p', which is one process",
        ),
        (message("p", span(1, "e", 1, 2, 2), span(2, "e", 1, 2, 1)), "is its own ancestor"),
        (message("q", span(0, "e", 1, 2)), "two different spans have the id 0000000000000001"),
        (
            {"resourceSpans": [{"resource": {"attributes": []}, "instrumentationLibrarySpans": []}]},
            "instrumentationLibrarySpans are spans of an older version of OTLP",
        ),
    ],
    ids=["logs", "event", "id", "nameless", "namesake", "ancestor", "two processes", "older"],
)  # fmt: skip
def test_messages_that_are_refused(tmp_path: Path, second: dict[str, Any], text: str) -> None:
    """Other signals, other files, and spans that contradict each other."""
    path = written(tmp_path, message("p", span(0, "e", 1, 2)), second)
    with pytest.raises(InputError, match=r"spans\.jsonl:2: ") as caught:
        read_events(path)
    assert text in caught.value.message
    assert caught.value.remedy


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the register, for the reference: its span, or an event in it."""

    process: str
    op: str
    value: int
    begins: int
    ends: int
    owner: int
    place: int = -1


def drawn(rng: random.Random) -> tuple[list[dict[str, Any]], list[Call], dict[int, int], dict[int, list[int]]]:
    """Spans of two processes, each with its clock; their calls; parents; links."""
    calls, parents, links, spans = [], {}, {}, {}
    offsets = {"p": 0, "q": rng.choice((0, 500, -500))}
    for number in range(rng.randint(2, 4)):
        process = rng.choice("pq")
        begins = rng.randrange(12)
        ends = begins + rng.randrange(6)
        old = list(spans)
        op, value = rng.choice(("write", "read")), rng.randrange(2)
        made = span(number, op, 600 + begins + offsets[process], 600 + ends + offsets[process])
        made["attributes"] = [attribute("v", value)]
        if old and rng.random() < 0.5:
            parents[number] = rng.choice(old)
            made["parentSpanId"] = f"{parents[number] + 1:016x}"
        if old and rng.random() < 0.4:
            links[number] = [rng.choice(old)]
            made["links"] = [{"traceId": TRACE, "spanId": f"{links[number][0] + 1:016x}"}]
        calls.append(Call(process, op, value, begins, ends, number))
        for place in range(rng.choice((0, 0, 1, 2))):
            at = rng.randint(begins, ends)
            op, value = rng.choice(("write", "read")), rng.randrange(2)
            event = {"name": op, "timeUnixNano": str(START + 600 + at + offsets[process])}
            made.setdefault("events", []).append(event | {"attributes": [attribute("v", value)]})
            calls.append(Call(process, op, value, at, at, number, place))
        spans[number] = (process, made)
    messages = [message(process, made) for process, made in spans.values()]
    rng.shuffle(messages)
    return messages, calls, parents, links


def before(calls: list[Call], parents: dict[int, int], links: dict[int, list[int]]) -> set[tuple[int, int]]:
    """Which calls precede which, by the three rules as the module states them, pair by pair."""
    spans = {call.owner: call for call in calls if call.place < 0}

    def above(owner: int) -> Iterator[int]:
        while owner in parents:
            owner = parents[owner]
            yield owner

    found = set()
    for i, x in enumerate(calls):
        for j, y in enumerate(calls):
            same = [c for c in calls if c.process == x.process and c.place >= 0 and c.begins == x.begins]
            kept = x.place >= 0 and x.begins == y.begins and len({c.owner for c in same}) == 1
            of_one = x.owner == y.owner and 0 <= x.place < y.place and kept
            in_time = x.process == y.process and x.ends < y.begins
            by_parent = any(spans[a].process == x.process and x.ends < spans[a].begins for a in above(y.owner))
            by_link = any(
                spans[linked].process == x.process != y.process
                and x.ends < spans[linked].begins
                and spans[linking].process == y.process
                and spans[linking].ends < y.begins
                for linking, all_linked in links.items()
                for linked in all_linked
            )
            if of_one or in_time or (by_parent and x.process != y.process) or by_link:
                found.add((i, j))
    return found


def allowed(calls: list[Call], order: set[tuple[int, int]]) -> bool:
    """Whether some order of all calls keeps `order` and makes every read right."""
    for chosen in permutations(range(len(calls))):
        place = {call: at for at, call in enumerate(chosen)}
        if any(place[i] > place[j] for i, j in order):
            continue
        value = 0
        for at in chosen:
            if calls[at].op == "write":
                value = calls[at].value
            elif calls[at].value != value:
                break
        else:
            return True
    return False


def compare(folder: Path, seeds: range) -> set[str]:
    """The verdict on random spans is that of all their orders; it is the same for the event log that they become."""
    answers = set()
    for seed in seeds:
        messages, calls, parents, links = drawn(random.Random(seed))
        if len(calls) > 7:
            continue
        order = before(calls, parents, links)
        expected = "accepted" if allowed(calls, order) else "rejected"
        path = written(folder, *messages)
        assert verdict(path) == expected, f"seed {seed}"
        write_ndjson(read_events(path), folder / "events.ndjson")
        assert verdict(folder / "events.ndjson") == expected, f"seed {seed}, as an event log"
        answers.add(expected)
    return answers


def test_the_order_is_what_times_and_contexts_prove(tmp_path: Path) -> None:
    """Against the enumeration of all orders, on spans of two processes whose clocks are apart."""
    assert compare(tmp_path, range(120)) == {"accepted", "rejected"}


@pytest.mark.long
def test_the_order_on_many(tmp_path: Path) -> None:
    """Likewise, more of them."""
    assert compare(tmp_path, range(120, 6000)) == {"accepted", "rejected"}


def test_overlapping_calls_survive_every_form(tmp_path: Path) -> None:
    """`after` is a field of the event log."""
    calls = [span(n, "write", n, 9, attributes=[attribute("v", n)]) for n in range(3)]
    events = read_events(written(tmp_path, message("p", *calls)))
    assert [e.after for e in events] == [None, -1, -1]
    write_parquet(events, tmp_path / "a.parquet")
    write_ndjson(events, tmp_path / "a.ndjson")
    assert read_events(tmp_path / "a.parquet") == events == read_events(tmp_path / "a.ndjson")


def test_damaged_messages_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever takes the place of a field: a verdict, or an error with the line; never another exception."""
    rng, refused, nowhere = random.Random("damage"), 0, 0
    junk = [None, {}, [], "", 0, -1, 1.5, True, "x", 10**30, [None], [[]], {"a": 1}, {"key": None}, "\x1b[31m"]
    for _ in range(400):
        messages, *_ = drawn(rng)
        messages = json.loads(json.dumps(messages))
        places = [(holder, key) for message_ in messages for holder, key in _places(message_)]
        holder, key = rng.choice(places)
        holder[key] = rng.choice(junk)
        try:
            assert verdict(written(tmp_path, *messages)) in ("accepted", "rejected", "inconclusive")
        except InputError as error:
            nowhere += error.loc is None and "the file has no events" not in error.message
            refused += 1
    assert refused > 200
    assert nowhere == 0


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All fields and elements inside a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])
