"""The form of messages between processes: msgpack in frames, each behind its length in four bytes.

A message is of any size: all of its frames but the last one are marked. What a record may be, `jobs.records` says. A tuple
stays a tuple and a list a list. The records of a buffer are packed together, by `marshal`, as plain data without references.
Nothing that arrives is executed or imported.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamproof_runtime.errors import RuntimeFailure, Unsendable
from streamproof_runtime.jobs.records import FORM, FORMS, other_type
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.messages import DATA, Message
from streamproof_runtime.subtasks.batons import Baton
from streamproof_runtime.subtasks.items import RECORD

try:
    import msgpack
except ImportError as error:
    raise RuntimeFailure(
        "runs on processes need msgpack; pip install 'streamproof[runtime]', or add --simulate"
    ) from error

MOST = 1 << 26
"""Largest size of a frame in bytes."""
_MORE = 1 << 31
"""The mark of a frame that another one continues."""
_LENGTH = struct.Struct(">I")
_KINDS: dict[int, type] = {1: tuple, 2: set, 3: frozenset}
"""The containers that are lists for msgpack; their first element is an empty extension with this code."""
_CODES = {kind: code for code, kind in _KINDS.items()}
_INT, _BATON, _RECORDS = 4, 5, 6


def _extended(value: Any) -> Any:
    """What msgpack itself does not know, as an extension; raises `TypeError` for all other values."""
    kind = type(value)
    if kind in _CODES:
        return [msgpack.ExtType(_CODES[kind], b""), *value]
    if kind is int:
        return msgpack.ExtType(_INT, hex(value).encode())
    if kind is Baton:
        return msgpack.ExtType(_BATON, _pack([[*value.origin.loops], [*value.inner], [*value.turns]]))
    raise TypeError(other_type(value))


def _restored(code: int, data: bytes) -> Any:
    if code in _KINDS:
        return _KINDS[code]
    if code == _INT:
        return int(data, 16)
    if code == _BATON:
        loops, inner, turns = _unpack(data)
        return Baton(Scope(tuple(loops)), tuple(inner), tuple(turns))
    if code == _RECORDS:
        return _loaded(data)
    raise ValueError(f"extension {code} is not known")


def _loaded(data: bytes) -> Any:
    try:
        return marshal.loads(data)
    except (EOFError, TypeError) as error:
        raise ValueError(str(error)) from error


def _listed(values: list[Any]) -> Any:
    """The container that was packed as a list; no other value in a frame is a type."""
    return values[0](values[1:]) if values and type(values[0]) is type else values


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, default=_extended, strict_types=True, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes | memoryview) -> Any:
    return msgpack.unpackb(
        data, ext_hook=_restored, list_hook=_listed, strict_map_key=False, unicode_errors="surrogatepass"
    )


def frame(value: Any) -> bytes:
    """A value as frames, mostly one. Raises `Unsendable` for a value that has no form, or a very deep one."""
    try:
        packed = _pack(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unsendable(f"{error}; {FORMS}") from error
    if len(packed) <= MOST:
        return _LENGTH.pack(len(packed)) + packed
    parts = [packed[at : at + MOST] for at in range(0, len(packed), MOST)]
    heads = [_LENGTH.pack(_MORE | len(part)) for part in parts[:-1]] + [_LENGTH.pack(len(parts[-1]))]
    return b"".join(piece for pair in zip(heads, parts, strict=True) for piece in pair)


def packed(records: list[Any]) -> Any:
    """The records of a buffer, for a frame, in which they are a list again."""
    return msgpack.ExtType(_RECORDS, marshal.dumps(records, FORM))


def packed_item(item: Sequence[Any]) -> list[Any]:
    """An item of a channel, for a frame."""
    kind, clock, *rest = item
    if kind == RECORD:
        rest[1] = packed(rest[1])
    return [kind, dict(clock), *rest]


def message_frame(message: Message) -> bytes:
    """A message as a frame; raises as `frame`."""
    if message[0] == DATA:
        *head, item, backlog = message
        return frame([*head, packed_item(item), backlog])
    return frame([dict(part) if isinstance(part, Mapping) else part for part in message])


class Frames:
    """Bytes of a connection, cut into the values of its frames."""

    def __init__(self) -> None:
        self._buffer, self._begun = bytearray(), bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The values that are complete with these bytes. Raises `ValueError` for bytes that are no frames."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= 4:
                (head,) = _LENGTH.unpack_from(buffer, start)
                size = head & ~_MORE
                if size > MOST:
                    raise ValueError(f"a frame of {size:,} bytes")
                end = start + 4 + size
                if len(buffer) < end:
                    break
                packed = bytes(buffer[start + 4 : end])
                start = end
                if self._begun or head & _MORE:
                    self._begun += packed
                    if head & _MORE:
                        continue
                    packed, self._begun = bytes(self._begun), bytearray()
                yield _unpack(packed)
        finally:
            del buffer[:start]
