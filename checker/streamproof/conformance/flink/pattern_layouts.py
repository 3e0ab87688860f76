"""Patterns of log4j 1, log4j 2 and logback (`%d %-5p [%t] %c{1} - %m%n`) as readers of lines.

A pattern becomes one regular expression with a group for time, level, logger, thread, diagnostic context and message. A
pattern is data: it is translated, never executed. Fields of any text are bounded in length and number, so that reading a
hostile line with a hostile pattern takes bounded time.

Sources: https://logging.apache.org/log4j/2.x/manual/pattern-layout.html, https://logback.qos.ch/manual/layouts.html.

The patterns are those of the user, usual ones, and those in a configuration of log4j or logback beside the logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Final

from streamproof.base.errors import InputError
from streamproof.base.reading import read_regular
from streamproof.base.records import dataclass
from streamproof.conformance.flink.log_records import as_line
from streamproof.conformance.flink.message_forms import FORMS

_FILES: Final = ("log4j*.properties", "log4j*.xml", "logback*.xml", "log4j*.yaml", "log4j*.yml", "log4j*.json")
_FOLDERS: Final = (".", "conf", "../conf")
_MOST_BYTES: Final = 1 << 20
_MOST_FILES: Final = 20
_MOST_PATTERNS: Final = 20
_PROPERTY: Final = re.compile(r"\s*(?P<key>(?:\\.|[^\s:=\\])+)\s*[=:\s]\s*(?P<value>.*)")
_PATTERN_KEY: Final = re.compile(r"(?i)(?:^|\.)(?:pattern|conversionpattern)$")
_XML: Final = re.compile(
    r"""(?isx)<(?:\w+:)?pattern\s*>(?:\s*<!\[CDATA\[)?(?P<element>.*?)(?:\]\]>\s*)?</(?:\w+:)?pattern\s*>
    | <\w+layout\b[^>]*?\bpattern\s*=\s*(?P<quote>["'])(?P<attribute>.*?)(?P=quote)
    | <param\s+name\s*=\s*["']conversionpattern["']\s+value\s*=\s*(?P<mark>["'])(?P<param>.*?)(?P=mark)"""
)
_COMMENT: Final = re.compile(r"(?s)<!--.*?-->")
_XML_PROPERTY: Final = re.compile(
    r"""(?is)<property\s+name\s*=\s*["']([^"']+)["'](?:\s+value\s*=\s*["']([^"']*)["'][^>]*>|\s*>(.*?)</property>)"""
)
_LINE: Final = re.compile(
    r"""(?im)^[\s{,]*["']?pattern["']?\s*:\s*(?P<value>"(?:\\.|[^"\\])*"|'[^']*'|[^\s#"'{].*?)\s*,?$"""
)
_REFERENCE: Final = re.compile(r"\$\$?\{(?:[a-z]+:)?([\w.-]+)(?::-[^{}]*)?\}")


def stated_patterns(folder: Path) -> list[str]:
    """The patterns in the configurations of a folder of logs, and of `conf` in or beside it, without duplicates."""
    found: dict[str, None] = {}
    for place in _FOLDERS:
        for form in _FILES:
            for file in sorted((folder / place).glob(form))[:_MOST_FILES]:
                try:
                    text = read_regular(file, _MOST_BYTES).decode(errors="replace")
                except InputError:
                    continue
                for pattern in _patterns(file.suffix, text):
                    found.setdefault(pattern)
    return list(found)[:_MOST_PATTERNS]


def _patterns(suffix: str, text: str) -> Iterator[str]:
    if suffix == ".properties":
        values = dict(_properties(text))
        known = {key.removeprefix("property."): value for key, value in values.items()}
        yield from (_resolved(value, known) for key, value in values.items() if _PATTERN_KEY.search(key))
    elif suffix == ".xml":
        text = _COMMENT.sub("", text)
        known = {name: unescape(value or inner or "") for name, value, inner in _XML_PROPERTY.findall(text)}
        for found in _XML.finditer(text):
            value = found["element"] or found["attribute"] or found["param"] or ""
            yield _resolved(unescape(value).strip(), known)
    else:
        for found in _LINE.finditer(text):
            value = found["value"]
            inner = value[1:-1] if value[:1] in ("'", '"') else value
            yield inner.replace("\\\\", "\\").replace('\\"', '"') if value[:1] == '"' else inner


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """The entries of a properties file of Java."""
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        found = _PROPERTY.match(line)
        if found and not line.lstrip().startswith(("#", "!")):
            # Java drops a backslash before a character without a special meaning.
            yield found["key"], re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _character, found["value"])


def _character(found: re.Match[str]) -> str:
    text = found[1]
    if len(text) == 5:
        return chr(int(text[1:], 16))
    return {"t": "\t", "n": "\n", "r": "\r"}.get(text, text)


def _resolved(pattern: str, known: dict[str, str]) -> str:
    """A pattern with the values of its properties; unknown references stay."""
    for _ in range(5):
        less = _REFERENCE.sub(lambda found: known.get(found[1], found[0]), pattern)
        if less == pattern or len(less) > 10_000:
            break
        pattern = less
    return pattern


LONGEST: Final = 2000
"""Maximum number of characters of a pattern."""
_FREE: Final = 3
"""Maximum number of fields of any text before the message."""
_WINDOW: Final = 2048
"""Maximum number of characters before a message."""
_LONGEST_MESSAGE: Final = 1 << 15
_MESSAGE: Final = "(?P<message>.*)"
_WORDS: Final = {
    "date": ("d", "date"),
    "message": ("m", "msg", "message"),
    "level": ("p", "level", "le"),
    "logger": ("c", "lo", "logger"),
    "thread": ("t", "tn", "thread", "threadName"),
    "mdc": ("X", "mdc", "MDC"),
    "free": ("x", "NDC", "ndc", "kvp", "K", "MAP", "map", "marker", "markerSimpleName", "property", "caller", "cn",
             "contextName", "applicationName", "esb"),
    "nothing": ("n", "ex", "exception", "throwable", "xEx", "xException", "xThrowable", "rEx", "rException", "rThrowable",
                "wEx", "wex", "rootException", "nopex", "nopexception"),
    "number": ("r", "relative", "L", "line", "pid", "PID", "processId", "sn", "lsn", "sequenceNumber", "N", "nano", "T",
               "tid", "threadId", "tp", "threadPriority"),
    "word": ("F", "file", "M", "method", "l", "location", "C", "class", "u", "uuid", "fqcn", "endOfBatch"),
    "inner": ("highlight", "style", "notEmpty", "varsNotEmpty", "variablesNotEmpty", "replace", "maxLen", "maxLength",
              "enc", "encode", "equals", "equalsIgnoreCase", "clr", "black", "red", "green", "yellow", "blue", "magenta",
              "cyan", "white", "gray", "boldRed", "boldGreen", "boldYellow", "boldBlue", "boldMagenta", "boldCyan",
              "boldWhite", "faint"),
}  # fmt: skip
_KIND: Final = {word: kind for kind, words in _WORDS.items() for word in words}
_NAMES: Final = sorted(_KIND, key=len, reverse=True)
_FORMAT: Final = re.compile(r"%(-?\d*)(?:\.(-?\d+))?")
_DATES: Final = {
    "": "yyyy-MM-dd HH:mm:ss,SSS", "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS", "ISO8601": "yyyy-MM-ddTHH:mm:ss,SSS",
    "ABSOLUTE": "HH:mm:ss,SSS", "DATE": "dd MMM yyyy HH:mm:ss,SSS", "COMPACT": "yyyyMMddHHmmssSSS",
    "ISO8601_BASIC": "yyyyMMddTHHmmss,SSS",
}  # fmt: skip
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ANY_DATE: Final = r"(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d(?::?\d\d)?)?"
_FIELDS: Final = {
    "yyyy": r"(?P<year>\d{4})", "uuuu": r"(?P<year>\d{4})", "yy": r"(?P<short>\d\d)", "MMM": r"(?P<name>[^\W\d]{3,4})\.?",
    "MM": r"(?P<month>\d\d)", "M": r"(?P<month>\d\d?)", "dd": r"(?P<day>\d\d)", "d": r"(?P<day>\d\d?)",
    "HH": r"(?P<hour>\d\d)", "H": r"(?P<hour>\d\d?)", "mm": r"(?P<minute>\d\d)", "ss": r"(?P<second>\d\d)",
}  # fmt: skip
_LEVEL: Final = r"[A-Za-z]{1,10}"
_LOGGER: Final = r"[\w$./-]{1,300}"
_CONTEXT_JOB: Final = re.compile(r"\bflink-job-id[=:] ?([0-9a-f]{32})\b")
_UNRESOLVED: Final = re.compile(r"\$\{[^{}]*?(?::-([^{}]*))?\}")


@dataclass(frozen=True, slots=True)
class PatternReader:
    """A pattern, with the expressions of what is before the message, and of the message with what is after it. `begin`
    is the expression up to the time."""

    pattern: str
    head: re.Pattern[str]
    rest: re.Pattern[str]
    begin: re.Pattern[str] | None

    def read(self, text: str) -> str | None:
        """A line of this pattern in the form of `log_lines.as_line`; None for another line."""
        # In two steps, so that a message without the ending does not repeat the search before it.
        found = self.head.match(text, 0, _WINDOW)
        rest = None if found is None else self.rest.match(text[found.end() : found.end() + _LONGEST_MESSAGE].rstrip())
        if found is None or rest is None:
            return None
        groups = {name: value or "" for name, value in (found.groupdict() | rest.groupdict()).items()}
        ts = _moment(groups)
        if ts is None:
            return None
        context = _CONTEXT_JOB.search(groups.get("mdc", ""))
        job = groups.get("job") or (context[1] if context else "")
        level = groups.get("level") or "INFO"
        # A level is padded, and nothing of its own separates it from a message that is followed by the logger.
        message = groups["message"].lstrip() if "logger" in self.rest.groupindex else groups["message"]
        return as_line(ts, level, _whole(groups["logger"]), groups.get("thread", "").strip(), job, message)

    def later(self, text: str) -> str | None:
        """A record that begins inside another one's line: the first one was truncated."""
        place = text.find(text[:8], 8)
        return self.read(text[place:]) if place > 0 and len(text) > 16 else None

    def begins(self, text: str) -> bool:
        """Whether a line begins as records do, with their time."""
        return self.begin is not None and self.begin.match(text) is not None


def compile_pattern(pattern: str) -> PatternReader:
    """The reader of a pattern. Raises `InputError` for one without a time, a logger or a message, with a record over
    several lines, or with too much that may be any text."""
    if len(pattern) > LONGEST:
        raise _refused(pattern[:80], f"it is longer than {LONGEST:,} characters")
    writer = _Expression(pattern)
    plain = _UNRESOLVED.sub(lambda found: found[1] if found[1] is not None else "%property", pattern)
    writer.write(plain)
    missing = [name for name in ("time", "logger", "message") if name not in writer.groups]
    if missing:
        marks = {"time": "%d", "logger": "%c", "message": "%m"}
        raise _refused(
            pattern, f"it has no {missing[0]} ({marks[missing[0]]}), without which events are not recognised"
        )
    if writer.lines_before_message:
        raise _refused(pattern, "a record begins on another line than its message")
    if writer.free > _FREE:
        raise _refused(pattern, f"more than {_FREE} of its fields may be any text")
    place = writer.parts.index(_MESSAGE)
    enclosed = any(part.endswith("\\[") for part in writer.parts[place:])
    if writer.dated > place or ("logger" in writer.after and not enclosed):
        raise _refused(pattern, "its message is before its time or its logger")
    head, rest = "".join(writer.parts[:place]), "".join(writer.parts[place:])
    begin = re.compile("".join(writer.parts[: writer.dated])) if writer.dated <= 4 else None
    return PatternReader(pattern, re.compile(head), re.compile(f"{rest}$"), begin)


def _refused(pattern: str, why: str) -> InputError:
    return InputError(f"the pattern {pattern!r} cannot be used: {why}", remedy="for example '%d %-5p [%t] %c - %m%n'")


class _Expression:
    """Writes the regular expression of a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.parts: list[str] = []
        self.groups: set[str] = set()
        self.free = self.dated = self.depth = 0
        self.lines_before_message = False
        self.after: set[str] = set()
        """The fields after the message."""

    def write(self, text: str) -> None:
        """Adds a pattern or the part of one."""
        self.depth += 1
        if self.depth > 8:
            raise _refused(self.pattern, "its parts are nested deeper than 8")
        place = 0
        while place < len(text):
            char = text[place]
            if char == "\\" and place + 1 < len(text):
                self.literal({"n": "\n", "t": "\t", "r": ""}.get(text[place + 1], text[place + 1]))
                place += 2
            elif char == "%" and text[place + 1 : place + 2] == "%":
                self.literal("%")
                place += 2
            elif char == "%":
                place = self.conversion(text, place)
            else:
                end = next((n for n in range(place, len(text)) if text[n] in "%\\"), len(text))
                self.literal(text[place:end])
                place = end
        self.depth -= 1

    def literal(self, text: str) -> None:
        """Adds text as it is; a run of blanks may have any length."""
        if "\n" in text and "message" not in self.groups:
            self.lines_before_message = True
        for part in re.findall(r" +|[^ ]+", text):
            self.parts.append(
                " *?" if part[0] == " " and self._blank() else " +?" if part[0] == " " else re.escape(part)
            )

    def _blank(self) -> bool:
        return bool(self.parts) and self.parts[-1] in (" *?", " +?")

    def conversion(self, text: str, place: int) -> int:
        """Adds a conversion; gives the place after it."""
        form = _FORMAT.match(text, place)
        width = form[1] if form else ""
        place = form.end() if form else place + 1
        if text[place : place + 1] == "(":  # logback groups parts to format them together
            inner, place = _enclosed(text, place, "(", ")")
            self.padded(width, inner)
            return place
        name = next((n for n in _NAMES if text.startswith(n, place)), None)
        if name is None:
            self.any_text("free", 120)
            return place + len(re.match(r"\w*", text[place:])[0])  # type: ignore[index]
        place += len(name)
        inside = None
        if _KIND[name] == "inner" and text[place : place + 1] == "(":
            inside, place = _enclosed(text, place, "(", ")")
        options = []
        while text[place : place + 1] == "{":
            option, place = _enclosed(text, place, "{", "}")
            options.append(option)
        if _KIND[name] == "inner":
            inside = inside if inside is not None else (options[0] if options else "")
            if name in ("notEmpty", "varsNotEmpty", "variablesNotEmpty"):
                before = len(self.parts)
                self.write(inside)
                self.parts[before:] = [f"(?:{''.join(self.parts[before:])})?"]
            else:
                self.padded(width, inside)
        else:
            self.field(_KIND[name], options, width, name)
        return place

    def padded(self, width: str, inside: str) -> None:
        """Adds a part with the blanks that fill it up to its width."""
        self.parts += [" *?"] if width.lstrip("-") and not width.startswith("-") else []
        self.write(inside)
        self.parts += [" *?"] if width.startswith("-") else []

    def field(self, kind: str, options: list[str], width: str, name: str) -> None:
        """Adds one field with its padding."""
        self.parts += [" *?"] if width and not width.startswith("-") else []
        match kind:
            case "date" if "time" not in self.groups:
                self.groups.add("time")
                self.parts.append(_date(options[0] if options else "", self.pattern))
                self.dated = len(self.parts)
            case "date":
                self.any_text("free", 60)
            case "message":
                self.group("message", ".*")
            case "level":
                self.group("level", _LEVEL)
            case "logger":
                self.group("logger", _LOGGER)
            case "thread":
                self.any_text("thread", 300)
            case "mdc" if options and options[0].partition(":")[0] == "flink-job-id":
                self.group("job", r"[0-9a-f]{32}", optional=True)
                if ":-" in options[0]:
                    self.parts[-1] = f"(?:{self.parts[-1]}|{re.escape(options[0].partition(':-')[2])})"
            case "mdc":
                self.any_text("free" if options else "mdc", 120 if options else 400)
            case "nothing":
                if name == "n" and "message" not in self.groups:
                    self.lines_before_message = True
                return
            case "number":
                self.parts.append(r"-?\d{0,20}\??")
            case "word":
                self.parts.append(r"\S{0,200}?")
            case _:
                self.any_text("free", 120)
        self.parts += [" *?"] if width.startswith("-") else []

    def any_text(self, name: str, most: int) -> None:
        """Adds a field of any text."""
        self.free += "message" not in self.groups
        self.group(name, f".{{0,{most}}}?")

    def group(self, name: str, expression: str, *, optional: bool = False) -> None:
        """Adds a field; only the first one of a name is a group."""
        mark = f"(?P<{name}>" if name not in self.groups and name != "free" else "(?:"
        if "message" in self.groups:
            self.after.add(name)
        self.groups.add(name)
        self.parts.append(f"{mark}{expression}){'?' if optional else ''}")


def _enclosed(text: str, place: int, opening: str, closing: str) -> tuple[str, int]:
    """The text in brackets, which may nest, and the place after it."""
    depth = 0
    for at in range(place, len(text)):
        if text[at] == "\\":
            continue
        if text[at - 1 : at] != "\\":
            depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return text[place + 1 : at], at + 1
    return text[place + 1 :], len(text)


def _date(form: str, pattern: str) -> str:
    """The expression of a date format of Java, or of one of the named formats."""
    form = form.strip().strip("\"'") if form.count("'") < 3 else form
    if form in ("UNIX", "UNIX_MILLIS"):
        return r"(?P<epoch>\d{10,13})"
    if form == "ANY":
        return f"(?P<iso>{_ANY_DATE})"
    for ending, digits in (
        ("_MICROS", "SSSSSS"),
        ("_NANOS", "SSSSSSSSS"),
        ("_PERIOD", ""),
        ("_OFFSET_DATE_TIME_HH", "X"),
    ):
        if form.startswith("ISO8601_OFFSET_DATE_TIME"):
            return f"(?P<iso>{_ANY_DATE})"
        base = form.removesuffix(ending)
        if base != form and base in _DATES:
            form = _DATES[base]
            form = form.replace(",SSS", ".SSS") if ending == "_PERIOD" else form.replace("SSS", digits)
    form = _DATES.get(form, form)
    parts: list[str] = []
    for found in re.finditer(r"'[^']*'|([A-Za-z])\1*|.", form, re.DOTALL):
        token = found[0]
        if token[0] == "'":
            parts.append(re.escape(token[1:-1] or "'"))
        elif token[0] in "Sn":
            parts.append(rf"(?P<fraction>\d{{{1 if token[0] == 'n' else len(token)},9}})")
        elif token[0] in "zZXVxO":
            parts.append(r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?|[A-Z][\w/+-]{0,30}(?:[+-]\d\d:\d\d)?)")
        elif token in _FIELDS:
            parts.append(_FIELDS[token])
        elif token[0] in "Ea":
            parts.append(r"[^\W\d]{2,9}\.?")
        elif token[0] in "hKk" or (token[0].isalpha() and token != "T"):
            raise _refused(pattern, f"its date format has {token}, which is not supported")
        else:
            parts.append("[,.]" if token in (",", ".") else "[ T]" if token == "T" else re.escape(token))
    text = "".join(parts)
    if len(set(re.findall(r"\?P<(\w+)>", text))) < text.count("?P<"):
        raise _refused(pattern, "its date format has a field twice")
    if "?P<hour>" not in text or "?P<minute>" not in text:
        raise _refused(pattern, "its date format has no hour and minute")
    return text


def _moment(groups: dict[str, str]) -> str | None:
    """The time of a line as ISO-8601 text."""
    if groups.get("iso"):
        return groups["iso"]
    if groups.get("epoch"):
        millis = int(groups["epoch"]) * (1000 if len(groups["epoch"]) == 10 else 1)
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
    month = groups.get("month", "")
    if groups.get("name"):
        name = groups["name"].lower()[:3]
        if name not in _MONTHS:
            return None
        month = str(_MONTHS.index(name) + 1)
    year = groups.get("year") or (f"20{groups['short']}" if groups.get("short") else "")
    date = f"{year}-{int(month):02}-{int(groups['day']):02}T" if year and month and groups.get("day") else ""
    fraction = f".{groups['fraction']}" if groups.get("fraction") else ""
    zone = groups.get("zone", "")
    zone = zone if zone[:1] in ("Z", "+", "-") or zone in ("UTC", "GMT") else ""
    return f"{date}{int(groups['hour']):02}:{groups['minute']}:{groups.get('second') or '00'}{fraction}{zone}"


def _whole(logger: str) -> str:
    """A logger whose name was cut at its left end, as by `%.20c`: the only one of Flink's that ends so."""
    last = logger.rpartition(".")[2]
    if last in FORMS or logger.startswith(("org.", "o.")) or len(last) < 8:
        return logger
    ending = [name for name in FORMS if name.endswith(last)]
    return ending[0] if len(ending) == 1 else logger


_ORDERS: Final = (
    "%p %d [%t] %c", "%p %d %c", "[%p] %d [%t] %c", "[%p] %d %c", "[%p] [%d] [%t] %c", "%p [%d] [%t] %c", "%p [%d] %c",
    "%d [%t] %c %p", "%d [%t] %c [%p]", "%d %c %p", "%d %c [%p]", "%d %c [%t] %p", "%c %d %p", "%c %p %d", "[%t] %d %p %c",
    "[%d] [%p] [%c] [%t] []", "[%d] [%p] [%t] [%c] []",
    "%d %p %pid --- [%t] %c", "%d [%p] [%t] %c", "%d [%p] %c", "%d %p %t %c", "%d %t %p %c", "%d %p %c [%t]", "%d %p %c %t",
    "%d %p %c:%L", "%d [%t] %p %c:%L", "%d %p [%t] %c:%L", "%d %p %c (%F:%L)", "%d %p [%t] %c (%F:%L)", "%d %p %c.%M:%L",
    "%t %d %p %c", "[%t] %p %d %c", "[%p] [%d] (%t) <%c>", "[%d] [%p] [%c]", "%d <%p> <%c>", "%d %p (%t) %c", "%d [%t] %p %c",
)  # fmt: skip
_SEPARATORS: Final = (" - ", ": ", " : ", " -- ", " | ", " > ", " ")
_BETWEEN: Final = (" | ", "\t", "; ", ", ", "|")
_SHORT_ORDERS: Final = ("%p %d %c", "%d %p %c", "%d %c %p", "%d %p %t %c", "%d %t %p %c", "%p %d %t %c", "%d %p %c %t")
_DATES_TRIED: Final = (
    "ANY", "dd/MM/yyyy HH:mm:ss,SSS", "dd.MM.yyyy HH:mm:ss,SSS", "dd MMM yyyy HH:mm:ss,SSS", "dd/MMM/yyyy:HH:mm:ss Z",
    "yyyyMMdd HH:mm:ss,SSS", "yyyy-MM-dd HH:mm:ss,SSS z", "yyyyMMddHHmmssSSS", "UNIX_MILLIS", "dd/MM/yyyy HH:mm:ss",
    "dd MMM yyyy HH:mm:ss",
)  # fmt: skip


def usual_patterns(lines: Iterable[str]) -> Iterator[str]:
    """Patterns to try on lines of an unknown one: orders of the fields, separators, and the forms of date that occur."""
    some = list(islice(lines, 50))
    for date in _DATES_TRIED:
        expression = re.compile(_date(date, date))
        if any(expression.search(line[:300]) for line in some):
            for order in _ORDERS:
                yield from (f"{order}{last}%m".replace("%d", f"%d{{{date}}}") for last in _SEPARATORS)
            yield from (f"%d{{{date}}} %p {rest}" for rest in ("%m [%c %t]", "%m [%c]", "%c - %m [%t]", "%c: %m [%t]"))
            for between in _BETWEEN:
                for order in _SHORT_ORDERS:
                    yield f"{order} %m".replace(" ", between).replace("%d", f"%d{{{date}}}")
