"""Checks the families of Flink's log messages against the logging calls of a version of Flink.

    python tools/log_families.py LOG_CALLS.tsv     class, method, level and message of each call, separated by tabs (also .xz)
    python tools/log_families.py FLINK.jar         the text constants of the classes of a jar (flink-dist, flink-runtime)
    ... --version 1.17                             the version, if the name of the file does not have it
    python tools/log_families.py A.jar B.jar ...   a table of the classes that log each family, a column for each version

`tests/data/flink/log_families.tsv` is that table of 1.13.6, 1.16.3, 1.18.1, 1.20.3, 2.1.1 and 2.3.0; the packages
`apache-flink-libraries` have the jars.

A family is there if a message with its placeholders filled in is one that its format reads. Families that Flink has in
other versions only are not expected. Messages that a program concatenates are in a jar, but not in every list of calls. Ends
with 1 if a family is missing that the version should have.
"""

from __future__ import annotations

import argparse
import lzma
import re
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

from streamproof.conformance.flink.message_forms import FORMS, MessageForm

EXAMPLES = 24
"""Maximum number of example messages of one format."""
LETTERS = 12
"""Minimum number of letters in a message of any class, by which it can be told from others."""
FEW = 6
"""Minimum number of letters in a message of a class with the name of the family's logger."""
WILD = "\0"
"""In an example: any text."""
HELPERS = {"hb.recv": "HeartbeatManagerImpl", "hb.trigger": "HeartbeatManagerSenderImpl"}
"""Families that a class writes with the logger of another one."""
_CONCATENATED = "<concat>"
VERSIONS = {
    **dict.fromkeys(("loop.step", "loop.worker", "loop.final", "loop.end", "loop.head", "loop.tail"), "1.13-1.20"),
    **dict.fromkeys(
        ("job.graph", "failover.restart", "failover.global.restart", "ckpt.failed", "region.built"), "1.16-2.3"
    ),
    **dict.fromkeys(("hb.unreachable", "hb.mark", "part.init", "part.tmrelease"), "1.16-2.3"),
    # The slot manager of 1.17 is another one, unless fine-grained resources are on.
    **dict.fromkeys(("slot.rm.pending", "slot.rm.complete", "slot.rm.freed", "slot.tm.alloc"), "1.19-2.3"),
}
"""Families that not every version from 1.13 to 2.3 logs: the first and the last version that does, of those examined."""


@dataclass(frozen=True, slots=True)
class Call:
    """A message that a class may log; placeholders are `{}`."""

    owner: str
    text: str

    @property
    def parts(self) -> list[str]:
        """Its own text, between placeholders."""
        return re.split(r"\{\}|%[sd]|\x01", self.text)

    @property
    def letters(self) -> int:
        """The number of letters of its own text."""
        return sum(c.isalpha() for part in self.parts for c in part)

    def begins(self, message: str) -> bool:
        """Whether it is the first part of a message that the program puts together, as up to Java 8."""
        return self.letters >= FEW and len(self.parts) == 1 and message.startswith(self.text)

    @property
    def name(self) -> str:
        """The name of the class, without those around it and in it."""
        return self.owner.rpartition(".")[2].partition("$")[0]


def unifies(example: str, parts: Sequence[str]) -> bool:
    """Whether a message of these parts, with any texts between them, may be an example, whose `WILD` stands for any text."""
    if WILD not in example:
        return re.fullmatch(".*".join(map(re.escape, parts)), example, re.DOTALL) is not None
    message = [c for part in parts for c in (None, *part)][1:]

    def through_gaps(places: set[int]) -> set[int]:
        found = set(places)
        for place in places:
            while place < len(message) and message[place] is None:
                place += 1
                found.add(place)
        return found

    places = through_gaps({0})
    for c in example:
        if c == WILD:
            places = set(range(min(places), len(message) + 1))
        else:
            stay = {p for p in places if p < len(message) and message[p] is None}
            places = through_gaps(stay | {p + 1 for p in places if p < len(message) and message[p] == c})
        if not places:
            return False
    return len(message) in places


def calls_of_list(path: Path) -> Iterator[Call]:
    """The calls of a list."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
    for line in text.splitlines():
        owner, _, _, message = (*line.split("\t", 3), "", "", "", "")[:4]
        yield Call(owner, message)


def calls_of_jar(path: Path) -> Iterator[Call]:
    """The text constants of Flink's classes in a jar."""
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if name.startswith("org/apache/flink/") and name.endswith(".class"):
                owner = name.removesuffix(".class").replace("/", ".")
                for text in constants(jar.read(name)):
                    yield Call(owner, text)


def constants(data: bytes) -> Iterator[str]:
    """The texts in the constant pool of a class file (Java Virtual Machine Specification, section 4.4)."""
    if data[:4] != b"\xca\xfe\xba\xbe":
        return
    (count,) = struct.unpack_from(">H", data, 8)
    texts: dict[int, str] = {}
    used: list[int] = []
    at, index = 10, 1
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    while index < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[index] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == 8:
                used.append(struct.unpack_from(">H", data, at + 1)[0])
            at += 1 + sizes[tag]
        index += 2 if tag in (5, 6) else 1
    yield from (texts[i] for i in used if i in texts)


def examples(form: MessageForm) -> list[str]:
    """Messages that a format reads: every alternative, each option taken or not."""
    return list(islice(_texts(sre.parse(form.pattern.pattern, form.pattern.flags)), EXAMPLES))


def _texts(parsed: Any) -> Iterator[str]:
    parts = [list(dict.fromkeys(islice(_ways(op, arg), 24))) for op, arg in parsed]
    choices = [at for at, ways in enumerate(parts) if len(ways) > 1]
    for chosen in product(*(range(len(parts[at])) for at in choices)):
        picked = dict(zip(choices, chosen, strict=True))
        yield "".join(ways[picked.get(at, 0)] for at, ways in enumerate(parts))


def _ways(op: Any, arg: Any) -> Iterator[str]:
    """Short texts that a part of a pattern matches."""
    match str(op):
        case "LITERAL":
            yield chr(arg)
        case "NOT_LITERAL":
            yield "x"
        case "ANY":
            yield WILD
        case "IN":
            yield _member(arg)
        case "SUBPATTERN":
            yield from _texts(arg[-1])
        case "ATOMIC_GROUP":
            yield from _texts(arg)
        case "BRANCH":
            for way in arg[1]:
                yield from islice(_texts(way), 4)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = arg
            once = list(islice(_texts(inner), 4))
            if least == 0 and most == 1:
                yield from once
                yield ""
            else:
                yield once[0] * max(least, 1)
        case _:
            yield ""


def _member(items: Sequence[tuple[Any, Any]]) -> str:
    op, arg = items[0]
    match str(op):
        case "LITERAL":
            return chr(arg)
        case "RANGE":
            return chr(arg[0])
        case _:
            return {"CATEGORY_DIGIT": "1", "CATEGORY_WORD": "x"}.get(str(arg), "x")


@dataclass(frozen=True, slots=True)
class Found:
    """What the calls say about a family: the classes with its message. `expected`: the version should have it; `listed`: a
    class with its logger's name is among those of the calls."""

    family: str
    owners: tuple[str, ...]
    expected: bool
    listed: bool

    @property
    def is_missing(self) -> bool:
        """Whether the version should have the family, and has not."""
        return self.expected and self.listed and not self.owners


def is_logged_by(family: str, version: str) -> bool:
    """Whether a version of Flink, such as 2.3, should have a family's message."""
    first, _, last = VERSIONS.get(family, "1.13-2.3").partition("-")
    return _release(first) <= _release(version) <= _release(last)


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def check(calls: Sequence[Call], version: str) -> list[Found]:
    """The families, in their order, with the classes that have their messages."""
    names = {call.name for call in calls}
    forms: dict[str, list[MessageForm]] = {}
    loggers: dict[str, set[str]] = {}
    for logger, known in FORMS.items():
        for form in known:
            loggers.setdefault(form.family, set()).add(logger)
            if form not in forms.setdefault(form.family, []):
                forms[form.family].append(form)
    found = []
    for family, own in forms.items():
        writers = {HELPERS[family]} if family in HELPERS else loggers[family]
        texts = [text for form in own for text in examples(form)]
        owners = dict.fromkeys(
            call.name
            for call in calls
            if call.letters >= (FEW if call.name in writers else LETTERS)
            and any(
                unifies(text, call.parts) or (call.name in writers and call.begins(text))
                for text in texts
                if call.name in writers or max(call.parts, key=len) in text
            )
        )
        by_name = sorted(owners, key=lambda name: name not in writers)
        found.append(Found(family, tuple(by_name), is_logged_by(family, version), not writers.isdisjoint(names)))
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="list of logging calls, or jar")
    parser.add_argument("--version", help="version of Flink, as 1.17; default: the one in the name of the file")
    given = parser.parse_args()
    several: dict[str, list[Found]] = {}
    for file in given.files:
        named = re.search(r"(\d+\.\d+(?:\.\d+)?)(?!.*\d+\.\d+)", file.name.removesuffix(".xz").removesuffix(".jar"))
        version = given.version or (named[1] if named else None)
        if version is None:
            parser.error(f"{file} does not name its version: give --version")
        calls = list(calls_of_jar(file) if file.suffix == ".jar" else calls_of_list(file))
        several[version] = check(calls, version)
    if len(several) > 1:
        print("\t".join(("family", *several)))
        for row in zip(*several.values(), strict=True):
            print("\t".join((row[0].family, *("-" if not one.owners else one.owners[0] for one in row))))
        return int(any(one.is_missing for found in several.values() for one in found))
    ((version, found),) = several.items()
    unknown = sum(_CONCATENATED in call.text for call in calls)
    for one in found:
        where = ", ".join(one.owners[:3])
        lacking = "MISSING" if one.is_missing else "class not listed" if one.expected else f"not in {version}"
        print(f"{one.family:<24} {VERSIONS.get(one.family, 'all'):<12} {where or lacking}")
    missing = sum(one.is_missing for one in found)
    print(
        f"\n{len(found)} families, {missing} missing in {version}; {unknown} of {len(calls)} messages are concatenated"
    )
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
