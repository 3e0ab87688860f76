"""What stands around the lines of a log: prefixes of collectors, viewers and searches, fields of JSON objects and of CSV
rows, objects over several lines, heads of java.util.logging, folded lines. Each is a layer, and layers may be nested.

A layer gives one result for each line, so that numbers of lines are kept: the line as it was before, None for a line that
is not read or was joined to an earlier one. Prefixes are known ones, some of which name the process that wrote the line,
or are learned: words before a head that most lines share.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.flink.log_records import COLOUR, as_line, read_head, starts_like_head
from streamproof.conformance.flink.message_forms import FORMS


class WrappedLine(NamedTuple):
    """A line without what stands around it; `origin` names the process that wrote it, `ts` is its time, if known."""

    text: str | None
    origin: str | None = None
    ts: str | None = None


_NONE: Final = WrappedLine(None)
_LONGEST: Final = 1 << 20
MOST_ORIGINS: Final = 1000
"""Maximum number of processes in one file."""
_STAMP: Final = (
    r"(?P<ts>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))"
    r"(?: (?:std(?:out|err) (?:F|(?P<partial>P)) )?|\t(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\t)?)"
)
"""The time before each line: containerd; kubectl and docker with --timestamps; Grafana, in two forms."""
_KNOWN: Final = tuple(
    re.compile(form)
    for form in (
        # kubectl logs --prefix, docker compose logs, stern
        rf"\[(?P<origin>pod/[^\]\s]{{1,300}})\] (?:{_STAMP})?",
        rf"(?P<origin>[\w.-]{{1,200}}) *\| (?:{_STAMP})?",
        r"(?P<origin>[a-z0-9][a-z0-9.]{0,99}-[a-z0-9.-]{1,200}) [a-z0-9][a-z0-9-]{0,99} ",
        # aws logs tail, logcli
        r"(?P<ts>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:\{(?P<origin>[^{}]{1,500})\}"
        r"|(?P<stream>(?!std(?:out|err)\b)[A-Za-z][\w./#$\[\]-]{0,511})) ",
        _STAMP,
        # journalctl, syslog (RFC 5424), grep over several files, grep -n with lines around those that match
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<origin>\S{1,255} [\w./@-]{1,100}(?:\[\d+\])?): ",
        r"<\d{1,3}>1 (?P<ts>\S{1,40}) (?P<origin>\S{1,255} \S{1,48} \S{1,128}) \S{1,32} (?:-|\[.{0,2000}?\]) ",
        r"(?P<origin>[\w./-]{1,300}?\.log[\w.]{0,40}?)(?:([:-])\d+\2(?=\d{4}[-/]|\D|\d\d:)|[:-])",
        r"\d{1,9}[:-](?!\d\d[-:./])",
    )
)
_START: Final = re.compile(
    r"\[?(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[/.]\d\d[/.]\d{2,4})[ T_])?\d\d:\d\d:\d\d|\{\s*\"", re.ASCII
)
_NO_PREFIX: Final = re.compile(r"\":\s*\"$|(?:[A-Z][a-z]{2}\S* \d{2,4}|\d+[-/.]\S{1,3}[-/.]\d+),?[T:\s]$")
_CONTENT: Final = re.compile(rf"\borg\.apache\.flink\.|\b(?:{'|'.join(sorted(FORMS))})\b")
_OPENING: Final = re.compile(r"[\[,]?\s*\{")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_MOST_LINES: Final = 5000
"""Maximum number of lines of one object."""
_DEEPEST: Final = 12
_FEW: Final = 3
"""Least number of lines by which a prefix or a field is learned."""
_WIDEST: Final = 400
"""Maximum number of characters at which lines are folded."""
_ENDS: Final = 3
"""Maximum number of different last characters of a word of a prefix."""
_ORIGINS: Final = ("pod_name", "pod.name", "labels.pod", "stream.pod", "logStreamName", "@logStream", "pod")
_TIMES: Final = ("@timestamp", "timestamp", "timeMillis", "time", "ts", "datetime", "date", "eventTime",
    "timeUnixNano")  # fmt: skip
_JUL: Final = re.compile(
    r"(?P<date>[A-Z][a-z]{2} \d\d?, \d{4},? \d\d?:\d\d:\d\d)[\s\u202f](?P<half>[AP]M) (?P<logger>[\w.$]+) \S+"
)
_JUL_LEVELS: Final = {
    "SEVERE": "ERROR", "WARNING": "WARN", "CONFIG": "INFO", "FINE": "DEBUG", "FINER": "DEBUG", "FINEST": "TRACE",
}  # fmt: skip
_JUL_MESSAGE: Final = re.compile(r"(SEVERE|WARNING|CONFIG|FINE|FINER|FINEST|INFO|ERROR|WARN|DEBUG|TRACE): ")


@dataclass(frozen=True, slots=True)
class Prefix:
    """Text before each line; of a line that a collector divided, the parts are joined again."""

    form: re.Pattern[str]

    @property
    def is_known(self) -> bool:
        """Whether it is one of a collector, which is taken off even if heads are read with it."""
        return self.form in _KNOWN

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """The lines without it; others are unchanged."""
        return _joined(lines, self._content)

    def _content(self, line: WrappedLine, text: str) -> tuple[WrappedLine, bool]:
        found = self.form.match(text) or self.form.fullmatch(f"{text} ")
        if found is None:
            return line, True
        own = found.groupdict()
        origin = own.get("origin") or own.get("stream") or line.origin
        return WrappedLine(text[found.end() :], origin, own.get("ts") or line.ts), own.get("partial") is None

    def covers(self, texts: Sequence[str]) -> bool:
        """Whether most lines have it."""
        return sum(self.form.match(text) is not None for text in texts) * 2 > len(texts)


@dataclass(frozen=True, slots=True)
class JsonField:
    """The line is in a field of a JSON object; `name` has the names of nested ones, joined by dots."""

    name: str

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """The values of the field; lines without it are unchanged."""
        return _joined(lines, self._content)

    def _content(self, line: WrappedLine, text: str) -> tuple[WrappedLine, bool]:
        flat = json_fields(text)
        value = None if flat is None else flat.get(self.name)
        if flat is None or not isinstance(value, str):
            return line, True
        origin = next((v for end in _ORIGINS for k, v in flat.items() if k.endswith(end) and isinstance(v, str)), None)
        # Docker's json-file driver divides long lines: only the last part has the end.
        whole = value.endswith("\n") or len(value) < 1 << 13 or self.name != "log"
        return WrappedLine(
            COLOUR.sub("", value.rstrip("\r\n")), origin or line.origin, json_time(flat) or line.ts
        ), whole


@dataclass(frozen=True, slots=True)
class Objects:
    """JSON objects over several lines, the outermost `outer` of which contain the others."""

    outer: int

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """Each object as one line."""
        held: list[str] = []
        depth, outer, first, size = 0, self.outer, _NONE, 0
        for line in lines:
            text = line.text or ""
            opens = len(text) < 40 and _OPENING.fullmatch(text.strip()) is not None
            if opens and (not held or text == held[0]):
                yield from _object(held, first)  # an object that was cut
                held = []
                if outer:
                    outer -= 1
                    yield _NONE
                else:
                    held, depth, first, size = [text], 1, line, 0
            elif held:
                held.append(text)
                bare = _STRING.sub("", text)
                depth += bare.count("{") - bare.count("}")
                size += len(text)
                if depth <= 0 or len(held) >= _MOST_LINES or size > 16 * _LONGEST:
                    yield from _object(held, first)
                    held = []
            else:
                yield line
        yield from _object(held, first)


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """The line is in a column of CSV rows, which may have several lines; `origin` is that of the process's name."""

    place: int
    origin: int | None = None

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """The values of the column."""
        for count, row in _rows(lines):
            if len(row) > self.place:
                origin = row[self.origin] if self.origin is not None and len(row) > self.origin else None
                yield WrappedLine(row[self.place], None if origin is not None and origin.endswith(_ORIGINS) else origin)
            else:
                yield WrappedLine(",".join(row))
            yield from (_NONE for _ in range(count - 1))


@dataclass(frozen=True, slots=True)
class TwoLineHeads:
    """Heads of java.util.logging: time and logger, and on the next line level and message."""

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """Each head with its message in the form of `as_line`."""
        held: tuple[WrappedLine, re.Match[str]] | None = None
        for line in lines:
            said = _JUL_MESSAGE.match(line.text or "") if held else None
            if held and said and line.text is not None:
                first, head = held
                level, message = _JUL_LEVELS.get(said[1], said[1]), line.text[said.end() :]
                yield first._replace(text=as_line(_jul_time(head), level, head["logger"], "", "", message))
                yield _NONE
                held = None
                continue
            if held:
                yield held[0]
            found = _JUL.fullmatch(line.text or "")
            held = (line, found) if found else None
            if found is None:
                yield line
        if held:
            yield held[0]


@dataclass(frozen=True, slots=True)
class Folded:
    """Lines that a terminal or a mail program folded at a width, within words or between them."""

    width: int
    within: bool

    def lines(self, lines: Iterable[WrappedLine]) -> Iterator[WrappedLine]:
        """Each line as a whole, in the place of its first part."""
        parts: list[WrappedLine] = []
        for line in lines:
            if parts and not self.goes_on(parts[-1].text or "", line.text or ""):
                yield from self._whole(parts)
                parts = []
            parts.append(line)
        yield from self._whole(parts)

    def _whole(self, parts: Sequence[WrappedLine]) -> Iterator[WrappedLine]:
        if parts:
            text = ("" if self.within else " ").join(part.text or "" for part in parts)
            yield parts[0]._replace(text=None if parts[0].text is None else text)
            yield from (_NONE for _ in parts[1:])

    def goes_on(self, text: str, following: str) -> bool:
        """Whether a line is continued by the following one: its first word did not fit."""
        if not following or starts_like_head(following):
            return False
        if self.within:
            return len(text) == self.width
        return len(text) + 1 + len(following.partition(" ")[0]) > self.width and following[0] not in " \t"

    @classmethod
    def of(cls, texts: Sequence[str]) -> Iterator[Folded]:
        """The ways in which some lines may be folded: most lines of the greatest length, or most that lack the next word,
        are followed by what is no head."""
        widths = Counter(map(len, texts))
        width = max(widths, default=0)
        for folded in (cls(width, True), cls(max((len(t) for t in texts if " " in t.strip()), default=0), False)):
            ends = [folded.goes_on(one, other) for one, other in pairwise(texts) if not starts_like_head(other)]
            if 20 < folded.width <= _WIDEST and sum(ends) >= _FEW and 10 * sum(ends) > len(texts):
                yield folded


Layer: TypeAlias = Prefix | JsonField | Objects | CsvColumn | TwoLineHeads | Folded


def opened(layers: Sequence[Layer], lines: Iterable[WrappedLine]) -> Iterable[WrappedLine]:
    """The lines without these layers, the outermost first."""
    for layer in layers:
        lines = layer.lines(lines)
    return lines


def candidates(lines: Sequence[WrappedLine]) -> Iterator[tuple[Layer, ...]]:
    """The layers that may be around some lines, outermost first."""
    texts = [line.text for line in lines if line.text]
    for form in _KNOWN:
        if (prefix := Prefix(form)).covers(texts):
            yield (prefix,)
    for outer in range(3) if any(_OPENING.fullmatch(text.strip()) for text in texts if len(text) < 40) else ():
        inner = list(Objects(outer).lines(lines))
        yield (Objects(outer),)
        if (name := _telling(filter(None, (json_fields(line.text or "") for line in inner)))) is not None:
            yield Objects(outer), JsonField(name)
    if (name := _telling(filter(None, map(json_fields, texts)))) is not None:
        yield (JsonField(name),)
    if any(map(_JUL.fullmatch, texts)):
        yield (TwoLineHeads(),)
    if sum("," in text for text in texts[:_FEW]) and '"' in "".join(texts[:50]):
        rows = [dict(enumerate(row)) for _, row in _rows(lines) if len(row) > 1]
        if (place := _telling(rows)) is not None:
            origin = next((at for at, text in rows[0].items() if text.endswith(_ORIGINS)), None)
            column = CsvColumn(place, origin)
            yield (column,)
            inside = (json_fields(line.text or "") for line in column.lines(lines))
            if (name := _telling(filter(None, inside))) is not None:
                yield column, JsonField(name)
    if (learned := _learned(texts)) is not None:
        yield (Prefix(learned),)
    yield from ((folded,) for folded in Folded.of(texts))


def json_fields(text: str) -> dict[str, Any] | None:
    """The fields of a JSON object, those of nested ones by their names joined by dots; None for another text."""
    if not text.lstrip().startswith(("{", "[", ",")):
        return None
    try:
        data = json.loads(text.strip().lstrip("[,").rstrip("],").strip() if text[0] != "{" else text.rstrip(" \t,]"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    flat: dict[str, Any] = {}
    _flatten(data, "", flat, 0)
    return flat


def json_time(flat: Mapping[str, Any]) -> str | None:
    """The time of an object in ISO-8601 form; numbers are seconds, milliseconds or nanoseconds since 1970 by their size."""
    seconds = flat.get("instant.epochSecond")
    if isinstance(seconds, int):
        nanos = flat.get("instant.nanoOfSecond")
        return _since_epoch(seconds * 1000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0))
    for name in _TIMES:
        value = flat.get(name)
        if isinstance(value, str) and value[:4].isdigit() and ("-" in value or ":" in value):
            return re.sub(r"^(\d{4}-\d\d-\d\d)_", r"\1T", value)
        if isinstance(value, str) and value.replace(".", "", 1).isdigit() and len(value) < 24:
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e20:
            scale = 1000 if value < 1e11 else 1 if value < 1e14 else 1e-3 if value < 1e17 else 1e-6
            return _since_epoch(int(value * scale + 1e-4) if isinstance(value, float) else int(value * scale))
    return None


def _jul_time(head: re.Match[str]) -> str:
    try:
        at = datetime.strptime(f"{head['date'].replace(',', '')} {head['half']}", "%b %d %Y %I:%M:%S %p")
    except ValueError:
        return ""
    return at.isoformat()


def _since_epoch(millis: int) -> str | None:
    if not 0 <= millis < 253_402_300_800_000:
        return None
    moment = datetime.fromtimestamp(millis / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _flatten(data: Mapping[str, Any], prefix: str, into: dict[str, Any], depth: int) -> None:
    for key, value in data.items():
        name = f"{prefix}{key}"
        into.setdefault(name, value)
        if isinstance(value, dict) and depth < _DEEPEST:
            _flatten(value, f"{name}.", into, depth + 1)


def _joined(
    lines: Iterable[WrappedLine], content: Callable[[WrappedLine, str], tuple[WrappedLine, bool]]
) -> Iterator[WrappedLine]:
    """The contents of lines; of a line that was divided, all parts in the place of the first."""
    parts: list[WrappedLine] = []
    waiting = size = 0
    for line in lines:
        if line.text is None:
            if parts:
                waiting += 1
            else:
                yield line
            continue
        inner, whole = content(line, line.text)
        if whole and not parts:
            yield inner
            continue
        parts.append(inner)
        size += len(inner.text or "")
        waiting += 1
        if whole or size >= _LONGEST:
            yield parts[0]._replace(text="".join(part.text or "" for part in parts))
            yield from (_NONE for _ in range(waiting - 1))
            parts, waiting, size = [], 0, 0
    if parts:
        yield parts[0]._replace(text="".join(part.text or "" for part in parts))
        yield from (_NONE for _ in range(waiting - 1))


def _object(held: Sequence[str], first: WrappedLine) -> Iterator[WrappedLine]:
    if held:
        yield first._replace(text=" ".join(held).strip())
        yield from (_NONE for _ in held[1:])


def _rows(lines: Iterable[WrappedLine]) -> Iterator[tuple[int, list[str]]]:
    """CSV rows, each with its number of lines."""
    reader = csv.reader(f"{line.text or ''}\n" for line in lines)
    before = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = []
        yield reader.line_num - before, row
        before = reader.line_num


def _telling(objects: Iterable[Mapping[Any, Any]]) -> Any | None:
    """The name of the field whose texts name Flink's loggers most often, if several do; of equal ones the first."""
    found: Counter[Any] = Counter()
    for flat in objects:
        for name, value in flat.items():
            if isinstance(value, str) and " " in value.strip() and _CONTENT.search(value[:1000]):
                found[name] += 1
    name, count = next(iter(found.most_common(1)), (None, 0))
    return name if count >= _FEW else None


@dataclass(slots=True)
class _Shape:
    """Prefixes with equal numbers of words and equal ends."""

    words: list[list[str]] = field(default_factory=list)
    leads: set[str] = field(default_factory=set)


def _learned(texts: Sequence[str]) -> re.Pattern[str] | None:
    """The form of what stands before the heads of most lines that have one."""
    shapes: dict[tuple[int, str], _Shape] = {}
    for text in texts:
        prefix = _before_head(text)
        if prefix is not None and len(prefix) <= 300:
            words = prefix.split()
            end = prefix[len(prefix.rstrip()) :]
            shape = shapes.setdefault((len(words), end), _Shape())
            shape.words.append(words)
            shape.leads.add(prefix[: len(prefix) - len(prefix.lstrip())])
    if not shapes:
        return None
    (count, end), shape = max(shapes.items(), key=lambda item: len(item[1].words))
    if len(shape.words) < _FEW or 2 * len(shape.words) < sum(len(other.words) for other in shapes.values()):
        return None
    if not count:
        return re.compile(re.escape(end)) if len(shape.leads) == 1 else re.compile(r"[ \t]*")
    lead = re.escape(next(iter(shape.leads))) if len(shape.leads) == 1 else r"[ \t]*"
    return re.compile(lead + r"[ \t]+".join(map(_word, zip(*shape.words, strict=True))) + re.escape(end))


def _before_head(text: str) -> str | None:
    """What stands before the head in a line, if anything does."""
    if _is_head(text):
        return None
    starts = [found.start() for found in _START.finditer(text, 1, 600)][:4]
    start = next((start for start in reversed(starts) if _is_head(text[start:])), None)
    return None if start is None or _NO_PREFIX.search(text[:start]) else text[:start]


def _is_head(text: str) -> bool:
    if text.startswith("{"):
        return json_fields(text) is not None
    head = read_head(text[:4000])
    return head is not None and (head.flink or head.logger in FORMS)


def _word(words: Sequence[str]) -> str:
    """The form of a word of all prefixes: digits are any number, another difference any word."""
    forms = {re.sub(r"\d+", "0", word) for word in words}
    if len(forms) == 1:
        return re.sub("0", r"\\d+", re.escape(next(iter(forms))))
    ends = {word[-1] for word in words}
    return r"\S+?" + (f"[{re.escape(''.join(sorted(ends)))}]" if len(ends) <= _ENDS else "")
