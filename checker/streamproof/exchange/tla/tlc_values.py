"""Values and states as printed by TLC, converted to ours.

TLC's output is ambiguous: a function from 1..n is printed as a tuple, one from strings as a record, a set of
consecutive numbers perhaps as an interval. The expected sort resolves it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from streamproof.base.errors import SystemFailure
from streamproof.exchange.tla.names import string
from streamproof.exchange.tla.values import UNIT, alike, case_fields, fields, key_text, tag_field
from streamproof.system.model import State, System
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    KeySort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    TupleSort,
    UnionSort,
    Value,
    ValueKeys,
    index_value,
    values,
)


class Unreadable(SystemFailure):
    """TLC's output does not match the expected value."""


def read_state(system: System, names: Mapping[str, str], text: str) -> State:
    """The state printed by TLC, one ``/\\ name = value`` per variable; unknown variables are ignored. `names` are
    TLA+'s names of the variables. Raises `Unreadable`."""
    found: dict[str, str] = {}
    for part in re.split(r"(?m)^/\\ ", text):
        name, equals, value = part.partition(" = ")
        if equals:
            found[name.strip()] = value
    missing = [v.name for v in system.variables if names[v.name] not in found]
    if missing:
        raise Unreadable(f"TLC printed a state without {', '.join(missing)}")
    return tuple(read_value(v.sort, found[names[v.name]], v.name) for v in system.variables)


def read_value(sort: Sort, text: str, about: str = "a value") -> Value:
    """The value of `sort` printed as `text`. Raises `Unreadable`, which names the variable in `about`."""
    reading = _ValueReading(text, about)
    value = reading.value(sort)
    reading.skip()
    if reading.at < len(text):
        raise reading.fail("the end")
    return value


def printed_keys(sort: KeySort) -> list[str]:
    """The keys as TLC prints them."""
    return list(map(_printed, sort.keys if alike(sort.keys) else sort.members))


def _printed(key: Any) -> str:
    """A key as TLC prints it: like `key_text`, but negative numbers have no parentheses."""
    if isinstance(key, tuple):
        return f"<<{', '.join(map(_printed, key))}>>"
    return str(key) if type(key) is int else key_text(key)


class _ValueReading:
    def __init__(self, text: str, about: str) -> None:
        self.text = text
        self.about = about
        self.at = 0

    def fail(self, wanted: str) -> Unreadable:
        rest = " ".join(self.text[self.at : self.at + 40].split())
        return Unreadable(f"TLC printed something else than {wanted} for {self.about}: {rest or 'nothing'}")

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def took(self, token: str) -> bool:
        """Consumes `token` if it is next, and returns whether it was."""
        self.skip()
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.took(token):
            raise self.fail(repr(token))

    def value(self, sort: Sort) -> Value:
        match sort:
            case BoolSort():
                return self._one_of({"TRUE": True, "FALSE": False}, "a truth value")
            case RangeSort():
                return self._number()
            case ValueKeys(item=item):
                found = index_value(sort, self.value(item))
                if found is None:
                    raise self.fail("one of its keys")
                return found
            case KeySort(members):
                keys = map(_printed, sort.keys if alike(sort.keys) else members)
                return self._one_of(dict(zip(keys, members, strict=True)), "one of its keys")
            case EnumSort(members):
                return self._one_of({string(m): m for m in members}, "one of its strings")
            case TupleSort(parts):
                self.expect("<<")
                each = iter([s for _, s in parts])
                return tuple(self._until(">>", lambda: self.value(next(each))))
            case RecordSort():
                if not sort.fields:
                    return self._one_of({string(UNIT): ()}, "its only value")
                found_parts = dict(self._record(dict(fields(sort))))
                return tuple(found_parts[n] for n, _ in fields(sort))
            case UnionSort():
                return self._case(sort)
            case OptionSort(element):
                tags = EnumSort(("None", "Some"))
                option = dict(self._record({"tag": tags, "value": element}))
                return option["value"] if option["tag"] == "Some" else None
            case ArraySort(index, element):
                return self._array(index, element)
            case QueueSort(element, _):
                self.expect("<<")
                return tuple(self._until(">>", lambda: self.value(element)))
            case SetSort(element):
                return self._set(element)
            case _:
                assert_never(sort)

    def _case(self, sort: UnionSort) -> Value:
        tag = tag_field(sort)
        names: dict[str, Sort] = {n: s for case, _ in sort.cases for n, s in case_fields(sort, case)}
        self.expect("[")
        found = dict(self._until("]", lambda: self._named_value({tag: sort.tag, **names})))
        own = case_fields(sort, found[tag]) if tag in found else ()
        if found.keys() != {tag, *(n for n, _ in own)}:
            raise self.fail("the fields of one of its cases")
        return found[tag], tuple(found[n] for n, _ in own)

    def _one_of(self, texts: Mapping[str, Value], wanted: str) -> Value:
        self.skip()
        for text in sorted(texts, key=len, reverse=True):
            if self.took(text):
                return texts[text]
        raise self.fail(wanted)

    def _number(self) -> int:
        self.skip()
        found = re.compile(r"-?\d+").match(self.text, self.at)
        if found is None:
            raise self.fail("a number")
        self.at = found.end()
        return int(found[0])

    def _until(self, closing: str, read: Callable[[], Value]) -> list[Value]:
        found: list[Value] = []
        while not self.took(closing):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def _named_value(self, names: Mapping[str, Sort]) -> tuple[str, Value]:
        """``name |-> value``; the name may be any text."""
        for name in sorted(names, key=len, reverse=True):
            before = self.at
            if self.took(name) and self.took("|->"):
                return name, self.value(names[name])
            self.at = before
        raise self.fail("one of its names")

    def _record(self, names: Mapping[str, Sort]) -> list[tuple[str, Value]]:
        self.expect("[")
        found: list[tuple[str, Value]] = self._until("]", lambda: self._named_value(names))
        if sorted(n for n, _ in found) != sorted(names):
            raise self.fail("all of its fields")
        return found

    def _array(self, index: BoolSort | RangeSort | EnumSort, element: Sort) -> Value:
        keys = tuple(values(index))
        self.skip()
        if self.took("<<"):
            return self._complete(keys, dict(zip(keys, self._until(">>", lambda: self.value(element)), strict=False)))
        if self.took("("):
            found: dict[Value, Value] = {}
            while True:
                key = self.value(index)
                self.expect(":>")
                found[key] = self.value(element)
                if not self.took("@@"):
                    break
            self.expect(")")
            return self._complete(keys, found)
        texts = {string(str(k))[1:-1]: k for k in keys}  # of a function from strings
        return self._complete(keys, {texts[n]: v for n, v in self._record(dict.fromkeys(texts, element))})

    def _complete(self, keys: tuple[Value, ...], found: Mapping[Value, Value]) -> Value:
        if set(keys) != found.keys():
            raise self.fail("a value for every index")
        return tuple(found[k] for k in keys)

    def _set(self, element: Sort) -> Value:
        if self.took("{"):
            return frozenset(self._until("}", lambda: self.value(element)))
        if isinstance(element, RangeSort):
            low = self._number()
            self.expect("..")
            return frozenset(range(low, self._number() + 1))
        raise self.fail("a set")
