"""Spans in OTLP JSON, for a program without OpenTelemetry: with an SDK of it, this file is not needed."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

EPOCH = time.time_ns() - time.monotonic_ns()


def now() -> int:
    """Nanoseconds since 1970, by a clock that nobody sets while the program runs."""
    return EPOCH + time.monotonic_ns()


class Tracer:
    """The spans of one process; `file` gets one message a line, as the file exporter writes it."""

    writing = Lock()

    def __init__(self, process: str, file: Any) -> None:
        self.process, self.file = process, file

    @contextmanager
    def span(self, name: str, parent: tuple[str, str] | None = None, **values: int | str) -> Iterator[Span]:
        """A span around a block; `parent` is the context of another one."""
        made = Span(name, parent, dict(values))
        made.starts = now()
        try:
            yield made
        finally:
            made.ends = now()
            with Tracer.writing:
                self.file.write(json.dumps(self._message(made)) + "\n")

    def _message(self, made: Span) -> dict[str, Any]:
        resource = {"attributes": _attributes({"service.name": "lease", "service.instance.id": self.process})}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [made.record()]}]}]}


class Span:
    """What is known of one span; values may be added until it ends."""

    starts = ends = 0

    def __init__(self, name: str, parent: tuple[str, str] | None, values: dict[str, int | str]) -> None:
        self.name, self.parent, self.values = name, parent, values
        self.context = (parent[0] if parent else secrets.token_hex(16), secrets.token_hex(8))

    def record(self) -> dict[str, Any]:
        """The span in OTLP JSON."""
        return {
            "traceId": self.context[0],
            "spanId": self.context[1],
            **({"parentSpanId": self.parent[1]} if self.parent else {}),
            "name": self.name,
            "startTimeUnixNano": str(self.starts),
            "endTimeUnixNano": str(self.ends),
            "attributes": _attributes(self.values),
        }


def _attributes(values: dict[str, int | str]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]
