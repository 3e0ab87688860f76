"""A recorded log as collectors, viewers and searches give it."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from rerender import RECORDED

_HEAD = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) ")


def stamped(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Each line with the time of its record, in ISO-8601 form."""
    found, time = [], "2026-11-22T12:58:30.030"
    for line in lines:
        head = _HEAD.match(line)
        time = f"{head[1]}T{head[2]}.{head[3]}" if head else time
        found.append((time, line))
    return found


def joined(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Each record with its further lines as one text, and its time."""
    found: list[list[str]] = []
    for time, line in stamped(lines):
        if _HEAD.match(line) or not found:
            found.append([time, line])
        else:
            found[-1][1] += f"\n{line}"
    return [(time, text) for time, text in found]


def _millis(time: str) -> int:
    return round(datetime.fromisoformat(f"{time}+00:00").timestamp() * 1000)


Writer = Callable[[list[str], str], str]
"""Writes the lines of a log of the process with this name."""


def _each(form: Callable[[int, str, str, str], str]) -> Writer:
    """A form of each line: its number, time, process and text."""
    return lambda lines, pod: "".join(f"{form(n, time, pod, x)}\n" for n, (time, x) in enumerate(stamped(lines), 1))


def _objects(form: Callable[[int, str, str, str], dict[str, Any]], whole: bool = False) -> Writer:
    """A JSON object for each line, or for each record as a whole."""
    cut = joined if whole else stamped
    return lambda lines, pod: "".join(
        json.dumps(form(n, time, pod, x)) + "\n" for n, (time, x) in enumerate(cut(lines), 1)
    )


def _document(form: Callable[[int, str, str, str], dict[str, Any]], around: Callable[[list[Any]], Any]) -> Writer:
    """One JSON document over many lines."""
    return lambda lines, pod: json.dumps(
        around([form(n, time, pod, text) for n, (time, text) in enumerate(joined(lines), 1)]), indent=4
    )


def _csv(lines: list[str], pod: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([("@timestamp", "@logStream", "@message"), *((time, pod, text) for time, text in joined(lines))])
    return out.getvalue()


def _heads(form: Callable[[re.Match[str]], str]) -> Writer:
    """Another form of each head."""
    return lambda lines, pod: "".join((form(head) if (head := RECORDED.fullmatch(x)) else x) + "\n" for x in lines)


def _jul(head: re.Match[str]) -> str:
    at = datetime.fromisoformat(f"{head['date']}T{head['time']}")
    level = {"WARN": "WARNING", "ERROR": "SEVERE", "DEBUG": "FINE"}.get(head["level"], head["level"])
    time = f"{at:%b} {at.day}, {at.year} {(at.hour - 1) % 12 + 1}:{at:%M:%S %p}"
    return f"{time} {head['logger']} run\n{level}: {head['message']}"


def _event(n: int, time: str, pod: str, text: str) -> dict[str, Any]:
    return {"logStreamName": pod, "timestamp": _millis(time), "message": text, "eventId": str(n)}


def _google(n: int, time: str, pod: str, text: str) -> dict[str, Any]:
    labels = {"pod_name": pod, "container_name": "flink-main-container"}
    return {"insertId": str(n), "resource": {"labels": labels, "type": "k8s_container"}, "severity": "INFO",
            "textPayload": text, "timestamp": f"{time}Z"}  # fmt: skip


def _elastic(n: int, time: str, pod: str, text: str) -> dict[str, Any]:
    place = {"offset": n, "file": {"path": "/opt/flink/log/x.log"}}
    return {"@timestamp": f"{time}Z", "message": text, "kubernetes": {"pod": {"name": pod}}, "log": place}


def _managed(n: int, time: str, pod: str, text: str) -> dict[str, Any]:
    head, _, detail = text.partition("\n")
    found = RECORDED.fullmatch(head)
    assert found is not None
    more = {"throwableInformation": detail} if detail else {}
    return {"applicationARN": "arn:app", "logger": found["logger"], "message": found["message"],
            "messageType": found["level"], "threadName": "main", "logStreamName": pod} | more  # fmt: skip


def _table(heading: list[str], row: Callable[[str, str, str], list[str]]) -> Writer:
    """Rows of CSV for records, the newest first."""

    def write(lines: list[str], pod: str) -> str:
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_ALL)
        writer.writerows([heading, *(row(time, pod, text) for time, text in reversed(joined(lines)))])
        return out.getvalue()

    return write


def _with_lines_around(lines: list[str], pod: str) -> str:
    """As `grep -n -C 1` for lines of Flink: all others are near one."""
    return "".join(f"{n}{':' if 'apache' in x else '-'}{x}\n" for n, x in enumerate(lines, 1))


def _folded(width: int) -> Writer:
    """Lines that a terminal folds."""
    return lambda lines, pod: "".join(
        "\n".join([x[n : n + width] for n in range(0, len(x), width)] or [""]) + "\n" for x in lines
    )


def _filled(lines: list[str], pod: str) -> str:
    """Lines that a mail program folds between words."""
    return "".join("\n".join(textwrap.wrap(x, 100, **_WORDS) or [""]) + "\n" for x in lines)


_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}

WRAPPINGS: dict[str, tuple[Writer, str]] = {
    "indented": (_each(lambda n, time, pod, x: f"    {x}"), ".log"),
    "tab": (_each(lambda n, time, pod, x: f"\t{x}"), ".log"),
    "blank lines": (_each(lambda n, time, pod, x: f" {x}\n"), ".log"),
    "quoted": (_each(lambda n, time, pod, x: f"> {x}".rstrip()), ".txt"),
    "cat -n": (_each(lambda n, time, pod, x: f"{n:6d}\t{x}"), ".log"),
    "grep -n": (_each(lambda n, time, pod, x: f"{n}:{x}"), ".log"),
    "grep -rn": (_each(lambda n, time, pod, x: f"{pod}.log:{n}:{x}"), ".txt"),
    "grep -n -C": (_with_lines_around, ".log"),
    "grep -r": (_each(lambda n, time, pod, x: f"./log/{pod}.log:{x}"), ".txt"),
    "stern": (_each(lambda n, time, pod, x: f"app-{pod}-x2 flink-main-container {x}"), ".log"),
    "journald": (_each(lambda n, time, pod, x: f"Nov 22 {time[11:19]} host flink[1000]: {x}"), ".log"),
    "syslog": (_each(lambda n, time, pod, x: f"<14>1 {time}Z host flink 1000 - - {x}"), ".log"),
    "unknown words": (_each(lambda n, time, pod, x: f"@@{n % 7} [k={pod}] {x}"), ".log"),
    "aws tail": (_each(lambda n, time, pod, x: f"{time}000+00:00 {pod} {x}"), ".log"),
    "logcli": (_each(lambda n, time, pod, x: f'{time[:19]}Z {{pod="{pod}"}} {x}'), ".log"),
    "UTF-16": (_each(lambda n, time, pod, x: f"{x}\r"), ".log"),
    "fluent-bit": (_objects(lambda n, time, pod, x: {"date": _millis(time) / 1000, "log": x,
                                                     "kubernetes": {"pod_name": pod}}), ".jsonl"),
    "loki": (_objects(lambda n, time, pod, x: {"labels": {"pod": pod}, "line": x, "timestamp": time}), ".json"),
    "filebeat": (_objects(_elastic, whole=True), ".json"),
    "elastic": (_document(lambda *line: {"_id": str(line[0]), "_source": _elastic(*line)},
                          lambda found: {"took": 3, "hits": {"total": {"value": 1}, "hits": found}}), ".json"),
    "google": (_document(_google, list), ".json"),
    "google by line": (_objects(_google), ".json"),
    "aws filter": (_document(_event, lambda found: {"events": found, "searchedLogStreams": []}), ".json"),
    "aws csv": (_csv, ".csv"),
    "splunk": (_table(["_raw", "_time", "host", "source"], lambda time, pod, x: [x, time, "h1", f"/log/{pod}.log"]), ".csv"),
    "datadog": (_table(["Date", "Host", "Service", "Message"], lambda time, pod, x: [f"{time}Z", "h1", pod, x]), ".csv"),
    "fluent-bit in aws csv": (_table(["@timestamp", "@message"], lambda time, pod, x: [time.replace("T", " "), json.dumps(
        {"log": x, "kubernetes": {"pod_name": pod}})]), ".csv"),
    "grafana": (lambda lines, pod: "".join(f"{time}Z\t{x}\n" for time, x in reversed(stamped(lines))), ".txt"),
    "google by field": (lambda lines, pod: "".join(
        json.dumps({"jsonPayload": {"level": h["level"], "logger": h["logger"], "message": "\n".join([h["message"], *more])},
                    "resource": {"labels": {"pod_name": pod}}, "timestamp": f"{time}Z"}) + "\n"
        for time, x in joined(lines) for first, *more in [x.split("\n")] if (h := RECORDED.fullmatch(first))), ".json"),
    "managed": (_objects(lambda n, time, pod, x: {"timestamp": _millis(time)} | _managed(n, time, pod, x), True), ".json"),
    "managed by aws tail": (lambda lines, pod: "".join(
        f"{time}000+00:00 stream-{pod} {json.dumps(_managed(0, time, pod, x))}\n" for time, x in joined(lines)), ".log"),
    "managed by aws filter": (_document(lambda n, time, pod, x: _event(n, time, pod, json.dumps(_managed(n, time, pod, x))),
                                        lambda found: {"events": found}), ".json"),
    "java.util.logging": (_heads(_jul), ".log"),
    "wrapped": (_heads(lambda h: f"{h['date']} {h['time']},{h['ms']} {h['level']:5} {h['logger']:60} \n\t[] - {h['message']}"
                       if len(h["message"]) > 80 else h[0]), ".log"),
    "folded at 80": (_folded(80), ".log"),
    "folded at 132": (_folded(132), ".log"),
    "folded between words": (_filled, ".log"),
    "all in brackets": (_heads(lambda h: f"[{h['date']} {h['time']},{h['ms']}] [{h['level']}] [{h['logger']}] [main] [] - "
                               f"{h['message']}"), ".log"),
    "message first": (_heads(lambda h: f"{h['date']} {h['time']},{h['ms']} {h['level']:5} {h['message']} "
                             f"[{h['logger'].rpartition('.')[2]} main]"), ".log"),
}  # fmt: skip
"""The names of wrappings; how the lines of a log are written, and the end of the file's name."""

IN_ONE_LINE: dict[str, Writer] = {
    "loki": lambda lines, pod: json.dumps({"status": "success", "data": {"resultType": "streams", "result": [
        {"stream": {"pod": pod}, "values": [[f"{_millis(time)}000000", x] for time, x in stamped(lines)]}]}}),
    "loki, indented": lambda lines, pod: json.dumps(json.loads(IN_ONE_LINE["loki"](lines, pod)), indent=2),
    "grafana": lambda lines, pod: json.dumps(
        [{"line": x, "timestamp": f"{_millis(time)}000000", "fields": {"pod": pod}} for time, x in reversed(stamped(lines))]),
    "elastic": lambda lines, pod: json.dumps({"took": 3, "hits": {"total": {"value": 1}, "hits": [
        {"_id": "1", "_source": _elastic(n, time, pod, x)} for n, (time, x) in enumerate(joined(lines))]}}),
    "aws query": lambda lines, pod: json.dumps({"results": [[
        {"field": "@timestamp", "value": time.replace("T", " ")}, {"field": "@message", "value": x},
        {"field": "@logStream", "value": pod}] for time, x in joined(lines)], "status": "Complete"}, indent=4),
}  # fmt: skip
"""Documents, of which a record has no line of its own."""
