"""The form of messages between processes: frames of msgpack, each behind its length in four bytes.

Records are plain values: None, truth values, numbers, text, bytes, and tuples, lists, sets and dictionaries of them. A
tuple stays a tuple and a list a list. Nothing that arrives is executed or imported.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from streamproof_runtime.errors import RuntimeFailure, Unsendable
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.messages import DATA, Message
from streamproof_runtime.subtasks.batons import Baton
from streamproof_runtime.subtasks.sendable import FORMS, other_type

try:
    import msgpack
except ImportError as error:
    raise RuntimeFailure(
        "runs on processes need msgpack; pip install 'streamproof[runtime]', or add --simulate"
    ) from error

MOST = 1 << 26
"""Largest size of a frame in bytes."""
_LENGTH = struct.Struct(">I")
_TUPLE, _SET, _FROZEN, _INT, _BATON = range(1, 6)


def _extended(value: Any) -> Any:
    """What msgpack itself does not know, as an extension; raises `TypeError` for all other values."""
    kind = type(value)
    if kind is tuple:
        return msgpack.ExtType(_TUPLE, _pack([*value]))
    if kind is set or kind is frozenset:
        return msgpack.ExtType(_SET if kind is set else _FROZEN, _pack([*value]))
    if kind is int:
        return msgpack.ExtType(_INT, hex(value).encode())
    if kind is Baton:
        return msgpack.ExtType(_BATON, _pack([[*value.origin.loops], [*value.inner], [*value.turns]]))
    raise TypeError(other_type(value))


def _restored(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(_unpack(data))
    if code == _SET:
        return set(_unpack(data))
    if code == _FROZEN:
        return frozenset(_unpack(data))
    if code == _INT:
        return int(data, 16)
    if code == _BATON:
        loops, inner, turns = _unpack(data)
        return Baton(Scope(tuple(loops)), tuple(inner), tuple(turns))
    raise ValueError(f"extension {code} is not known")


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, default=_extended, strict_types=True, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes | memoryview) -> Any:
    return msgpack.unpackb(data, ext_hook=_restored, strict_map_key=False, unicode_errors="surrogatepass")


def frame(value: Any) -> bytes:
    """A value as a frame. Raises `Unsendable` for a value that has no form, or a very large one."""
    try:
        packed = _pack(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unsendable(f"{error}; {FORMS}") from error
    if len(packed) > MOST:
        raise Unsendable(f"a record takes {len(packed):,} bytes; up to {MOST:,} can be sent")
    return _LENGTH.pack(len(packed)) + packed


def message_frame(message: Message) -> bytes:
    """A message as a frame; raises as `frame`."""
    if message[0] == DATA:
        *head, item, backlog = message
        _, clock, *rest = item
        return frame([*head, [item[0], dict(clock), *rest], backlog])
    return frame([dict(part) if isinstance(part, Mapping) else part for part in message])


class Frames:
    """Bytes of a connection, cut into the values of its frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The values that are complete with these bytes. Raises `ValueError` for bytes that are no frames."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= 4:
                (size,) = _LENGTH.unpack_from(buffer, start)
                if size > MOST:
                    raise ValueError(f"a frame of {size:,} bytes")
                if len(buffer) - start - 4 < size:
                    break
                value = _unpack(bytes(buffer[start + 4 : start + 4 + size]))
                start += 4 + size
                yield value
        finally:
            del buffer[:start]
