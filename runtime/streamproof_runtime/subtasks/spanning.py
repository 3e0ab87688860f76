"""Records that are larger than a buffer: cut into parts, one in each buffer, and put together again at the receiver.

For the protocols of termination and of checkpoints such a record is one buffer: it is sent when its parts are offered to its
channel, and received with its last part. Until then its receiver holds nothing of it: the parts are as good as under way.
So a barrier or a baton, which is never between two parts, finds no part at a receiver. An unaligned barrier overtakes parts:
the record is then in the snapshot of its sender, whole, until its last part has left.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from typing import Any

from streamproof_runtime.jobs.records import FORM, size
from streamproof_runtime.subtasks.items import PART, RECORD, Item


def is_too_large(item: Item, most: int) -> bool:
    """Whether an item is a record with more bytes than a buffer has; it is alone then."""
    return item[0] == RECORD and len(item[3]) == 1 and size(item[3][0]) > most


def parts(item: Item, most: int) -> list[Item]:
    """The buffers of a record; the last one has its clock."""
    _, clock, side, records = item
    data = marshal.dumps(records, FORM)
    *first, last = (data[at : at + most] for at in range(0, len(data), most))
    if not first:
        return [item]
    return [*((PART, {}, side, part) for part in first), (RECORD, clock, side, last)]


class Deserialisers:
    """What a subtask has of records whose last part has not been taken, by channel."""

    def __init__(self) -> None:
        self.begun: dict[str, list[bytes]] = {}
        """The parts that there are."""

    def place(self, channel: str) -> str:
        """Where the parts of a channel are gathered."""
        return channel

    def gather(self, channel: str, part: bytes) -> int:
        """Takes a part that is not the last one; returns the number of parts that there are."""
        begun = self.begun.setdefault(self.place(channel), [])
        begun.append(part)
        return len(begun)

    def complete(self, channel: str, last: bytes) -> tuple[list[Any], int]:
        """The record and the number of its parts."""
        begun = [*self.begun.pop(self.place(channel), ()), last]
        return marshal.loads(b"".join(begun)), len(begun)

    def waiting(self, channel: str, items: Iterable[Item]) -> Iterator[tuple[int, list[Any]]]:
        """The inputs and records of the items that wait on a channel, as far as their last part is there."""
        begun = [*self.begun.get(self.place(channel), ())]
        for item in items:
            if item[0] == PART:
                begun.append(item[3])
            elif item[0] == RECORD and isinstance(item[3], bytes):
                yield item[2], marshal.loads(b"".join([*begun, item[3]]))
                begun = []
            elif item[0] == RECORD:
                yield item[2], item[3]
