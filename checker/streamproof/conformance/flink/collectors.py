"""Log collectors: what they add to each line, and the process that wrote each line of a file with several.

Supported are `docker compose logs`, `kubectl logs --prefix`, both with timestamps, the files of containerd, and Docker's
json-file driver. Docker and containerd divide long lines; the parts are joined again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_STAMP: Final = r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"
"""The time before each line: containerd; kubectl and docker with --timestamps."""
_ORIGIN: Final = re.compile(r"\[(pod/[^\]\s]{1,300})\] |([\w.-]{1,200}) *\| ")
_WRAPPED: Final = re.compile(rf"(?:{_ORIGIN.pattern})(?:{_STAMP})?|{_STAMP}")
_PARTIAL: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) std(?:out|err) P ")
_DOCKER: Final = re.compile(r'\{\s*(?:"stream"\s*:\s*"std(?:out|err)"\s*,\s*)?"log"\s*:\s*"')
"""The beginning of each line of Docker's json-file driver, also after a tool that reads and writes JSON."""
_LONGEST: Final = 1 << 20
MOST_ORIGINS: Final = 1000
"""Maximum number of processes in one file."""


def unwrapped(text: str) -> str:
    """A line without a log collector's prefix; unchanged if no prefix is recognised."""
    return _content_of(text)[0]


def origin_of(text: str) -> str | None:
    """The pod and container, or the service, that a collector's prefix names; None without such a prefix."""
    found = _ORIGIN.match(text)
    return None if found is None else (found[1] or found[2])


def origins_of(lines: Iterable[bytes]) -> list[str]:
    """The different origins of a file's lines in the order of their first line, at most `MOST_ORIGINS`."""
    found: dict[str, None] = {}
    for raw in lines:
        origin = origin_of(COLOUR.sub("", raw[:1000].decode(errors="replace")))
        if origin is not None and len(found) < MOST_ORIGINS:
            found.setdefault(origin)
    return list(found)


def unwrap(lines: Iterable[str | None], origin: str | None) -> Iterator[str | None]:
    """The lines as the process wrote them: without prefixes, and joined where a collector divided them.

    There is one result for each line, so that numbers of lines are kept. None stands for a line of another process than
    `origin`, for an unreadable line, and for the rest of a joined line.
    """
    parts: list[str] = []
    waiting = size = 0
    for text in lines:
        if text is None or (origin is not None and origin_of(text) != origin):
            if parts:
                waiting += 1
            else:
                yield None
            continue
        inner, whole = _content_of(text)
        parts.append(inner)
        size += len(inner)
        if not whole and size < _LONGEST:
            waiting += 1
            continue
        yield "".join(parts)
        yield from (None for _ in range(waiting))
        parts, waiting, size = [], 0, 0
    if parts:
        yield "".join(parts)
        yield from (None for _ in range(waiting - 1))


def _content_of(text: str) -> tuple[str, bool]:
    """The content of a collector's line, and whether the process's line ends with it."""
    if _DOCKER.match(text):
        found = _docker(text)
        if found is None:
            return text, True
        return COLOUR.sub("", found.rstrip("\r\n")), found.endswith("\n") or len(found) < 1 << 13
    begin = _WRAPPED.match(text)
    return text if begin is None else text[begin.end() :], _PARTIAL.match(text) is None


def _docker(text: str) -> str | None:
    try:
        found = json.loads(text)["log"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
