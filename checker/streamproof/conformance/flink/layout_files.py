"""The patterns in the configuration of log4j or logback that lies beside the logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Final

from streamproof.base.errors import InputError
from streamproof.base.reading import read_regular

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
