"""What a record may be: the one definition, for local channels, the network, simulated runs, spills, partitions, results, and
the states in checkpoints.

A record is a number, text, bytes, a truth value, None, or a tuple, list, set, frozenset or dictionary of records; no
subclass of these. It has at most `DEEPEST` containers inside each other, and takes at most `MOST` bytes.
"""

from __future__ import annotations

import marshal
import sys
import zlib
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from streamproof_runtime.errors import Unsendable

DEEPEST = 250
"""Largest number of containers inside each other. Each may take two of the 511 levels that msgpack has."""
MOST = 1 << 26
"""Largest size of a record in bytes, as `size` counts."""
FORM = 2
"""The form of `marshal` in which records travel and are stored: the last one without references between them."""
FORMS = "records are numbers, text, bytes, and tuples, lists, sets and dictionaries of them"
_PLAIN = frozenset({int, str, float, bool, bytes, type(None)})
_CONTAINERS: dict[type, Callable[[Any], Any]] = {kind: kind for kind in (tuple, list, set, frozenset)}


def other_type(value: Any) -> str:
    """The message about a value of a type that has no form."""
    return f"a record has a value of type {type(value).__name__}"


def own(record: Any, room: int = DEEPEST) -> Any:
    """The record, for one receiver alone: lists, sets and dictionaries are copied.

    `room` is the number of containers that may be inside each other. Raises `Unsendable` for what is no record.
    """
    kind = type(record)
    if kind in _PLAIN:
        return record
    made = _CONTAINERS.get(kind)
    if made is None and kind is not dict:
        raise Unsendable(f"{other_type(record)}; {FORMS}")
    if room < 1 and record:
        raise Unsendable(f"a record has values inside values, more than {DEEPEST} deep")
    if made is None:
        return {own(key, room - 1): own(value, room - 1) for key, value in record.items()}
    if _PLAIN.issuperset(map(type, record)):
        return record if kind is tuple else made(record)
    return made([own(part, room - 1) for part in record])


def are_flat(records: list[Any]) -> bool:
    """Whether all records are plain values, or all tuples of plain values: nothing in them can change."""
    kinds = {*map(type, records)}
    return kinds <= _PLAIN or (kinds == {tuple} and _PLAIN.issuperset(map(type, chain.from_iterable(records))))


def owned(records: Iterable[Any], copy: Callable[[Any], Any] = own) -> list[Any]:
    """A copy of each record as soon as it is made, for one receiver alone; a list without anything that can change is not
    copied. Raises `Unsendable`."""
    plain, of_plain = _PLAIN, _PLAIN.issuperset
    if isinstance(records, list):
        if len(records) == 1:
            kind = type(records[0])
            is_flat = kind in plain or (kind is tuple and of_plain(map(type, records[0])))
            return records if is_flat else [copy(records[0])]
        if are_flat(records):
            return records
    return [
        record if (kind := type(record)) in plain or (kind is tuple and of_plain(map(type, record))) else copy(record)
        for record in records
    ]


def total_size(records: list[Any], depth: int = DEEPEST) -> int:
    """The sum of the sizes of records."""
    if len(records) == 1:
        return size(records[0], depth)
    parts, kinds, found = records, {*map(type, records)}, 0
    if kinds == {tuple}:
        parts, found = [*chain.from_iterable(records)], 8 * len(records)
        kinds = {*map(type, parts)}
    if not kinds <= _PLAIN:
        return sum([size(record, depth) for record in records])
    found += 8 * len(parts)
    if str in kinds:
        texts = "".join([part for part in parts if type(part) is str])
        found += len(texts) if texts.isascii() else len(texts.encode("utf-8", "surrogatepass"))
    if bytes in kinds:
        found += sum([len(part) for part in parts if type(part) is bytes])
    if int in kinds:
        numbers = parts if len(kinds) == 1 else [part for part in parts if type(part) is int]
        if max(numbers) >> 63 > 0 or -min(numbers) >> 63 > 0:
            found += sum([number.bit_length() // 64 * 16 for number in numbers])
    return found


def size(value: Any, depth: int = DEEPEST) -> int:
    """The size of a record in bytes, of other values about that; `depth`: containers that it looks into."""
    kind = type(value)
    if kind is str:
        return 8 + (len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if type(value) is bytes:
        return 8 + len(value)
    if type(value) is int:
        return 8 + value.bit_length() // 64 * 16
    if depth and kind in _CONTAINERS:
        return 8 + sum([size(part, depth - 1) for part in value])
    if depth and kind is dict:
        return 8 + sum([size(part, depth - 1) for pair in value.items() for part in pair])
    return 8 if kind in _PLAIN else sys.getsizeof(value)


def expected_size(record: Any) -> int:
    """The size of a record. Raises `Unsendable` for a larger one than permitted."""
    found = size(record)
    if found > MOST:
        raise Unsendable(f"a record takes {found:,} bytes; up to {MOST:,} can be sent")
    return found


def content(records: list[Any]) -> str:
    """What the log says of the records of a buffer: their number, and a checksum that is equal for equal records in every
    process. The form 0 of marshal has no mark of interned text, and writes sets in one order."""
    return f"{len(records)}:{zlib.crc32(marshal.dumps(records, 0)):08x}"
