"""Where the outputs of a subtask go: through the chained functions of each edge, to the channels of their receivers.

No two receivers share a record that can change, and none shares one with the maker, as if all were sent to other processes.
With a single stream, records go through it together; with several, one after the other, so that their order is that of the
records. In small buffers each output goes alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streamproof_runtime.errors import Unsendable
from streamproof_runtime.jobs.functions import copied, key_text
from streamproof_runtime.jobs.operators import Edge, Exchange, Pipe
from streamproof_runtime.jobs.records import owned
from streamproof_runtime.subtasks.buffers import Output

_KNOWN = 4096
"""Keys whose channel is remembered."""


class Router:
    """The outgoing edges of one subtask."""

    def __init__(self, routes: Sequence[tuple[Edge, tuple[str, ...]]], number: int, *, together: bool) -> None:
        """`routes`: each edge with its channels; `number`: that of the subtask; `together`: whether outputs
        may go together."""
        self._routes, self._number, self._together = routes, number, together
        self._is_single = together and len(routes) == 1 and len(routes[0][0].pipes) == 1
        self.turn: dict[int, int] = {}
        """The receiver whose turn it was last, of each edge that has turns."""
        self.maker: object = None
        """The chained function whose outputs are none, or no records."""
        self._known: list[dict[Any, str]] = [{} for _ in routes]

    def routed(self, values: Iterable[Any]) -> Iterator[Output]:
        """Outputs with their channels and inputs. Raises `Unsendable` for an output that is no record."""
        for group in (values,) if self._is_single else ([value] for value in values):
            for at, (edge, channels) in enumerate(self._routes):
                for pipe in edge.pipes:
                    outputs = self._chained(pipe, group)
                    for records in [outputs] if self._together else [[output] for output in outputs]:
                        for channel, own_records in self._distributed(at, edge, channels, records):
                            yield channel, pipe.side, own_records

    def _chained(self, pipe: Pipe, values: Iterable[Any]) -> list[Any]:
        """The outputs of the functions that are chained to the operator, for one receiver."""
        if not pipe.transforms:
            return owned(values)
        outputs = owned(values, copied)
        for transform in pipe.transforms:
            try:
                outputs = [after for before in outputs for after in transform(before)]
            except TypeError:
                self.maker = transform
                raise
        try:
            return owned(outputs)
        except Unsendable:
            self.maker = pipe.transforms[-1]
            raise

    def _distributed(
        self, at: int, edge: Edge, channels: tuple[str, ...], records: list[Any]
    ) -> Iterable[tuple[str, list[Any]]]:
        """The records of each channel, in the order of the first."""
        if edge.exchange is Exchange.BROADCAST or len(channels) == 1:
            return [(channel, owned(records) if at else records) for at, channel in enumerate(channels)]
        found: dict[str, list[Any]] = {}
        if edge.key is not None:
            for record in records:
                channel = self._of_key(at, edge.key(record), channels)
                if channel in found:
                    found[channel].append(record)
                else:
                    found[channel] = [record]
        else:
            turn = self.turn.get(at, self._number - 1) + 1
            for first in range(min(len(channels), len(records))):
                found[channels[(turn + first) % len(channels)]] = records[first :: len(channels)]
            self.turn[at] = turn + len(records) - 1
        return found.items()

    def _of_key(self, at: int, key: Any, channels: tuple[str, ...]) -> str:
        known, kind = self._known[at], type(key)
        if (kind is int or kind is str) and key in known:
            return known[key]
        found = channels[zlib.crc32(key_text(key).encode()) % len(channels)]
        if kind is int or kind is str:
            if len(known) >= _KNOWN:
                known.clear()
            known[key] = found
        return found
