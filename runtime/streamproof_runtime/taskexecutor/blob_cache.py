"""The blobs that a TaskExecutor has fetched from its JobMaster, those used last: they go with the connection to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

CACHED = 16
"""Largest number of blobs in a cache."""


class BlobCache:
    """A cache of blobs by key, shared by all regions on a TaskExecutor."""

    drops = True
    """Whether blobs are deleted when the JobMaster is lost."""

    def __init__(self, record: Callable[[str, Mapping[str, Any]], None], most: int = CACHED) -> None:
        """`record` is called with each event; `most`: the largest number of blobs."""
        self._record, self.most = record, most
        self._blobs: dict[str, bytes] = {}
        """The one used last is the last one."""

    def __contains__(self, key: str) -> bool:
        return key in self._blobs

    @property
    def keys(self) -> list[str]:
        """The keys, the one used last first."""
        return [*reversed(self._blobs)]

    def use(self, key: str, fetched: bytes | None = None) -> bytes:
        """The content of a blob, perhaps one that was just fetched; it is the one used last."""
        data = self._blobs.pop(key, fetched)
        if data is None:
            raise KeyError(key)
        self._blobs[key] = data
        self._evict()
        return data

    def _evict(self) -> None:
        """A full cache deletes the blob that was not used for the longest time."""
        if len(self._blobs) > self.most:
            del self._blobs[next(iter(self._blobs))]

    def master_lost(self, connection: int) -> None:
        """The JobMaster, whose blobs these are, is lost, or has ended with its job."""
        if self.drops and self._blobs:
            self._record("blobs_dropped", {"connection": connection, "keys": self.keys})
            self._blobs.clear()
