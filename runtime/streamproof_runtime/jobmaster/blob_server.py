"""Blobs at the JobMaster: descriptors of deployments that are too large for a message.

A deployment then has the key of a blob, which its TaskExecutors fetch. The key is the digest of the content, so that attempts
with the same descriptor share a blob. It is deleted when the last attempt that uses it has ended, at the latest with the job.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from streamproof_runtime.jobmaster.master_host import OFFLOAD, Host
from streamproof_runtime.jobmaster.region_runs import Run


def digest(data: bytes) -> str:
    """What names the content of a blob."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class BlobServer:
    """The blobs of one job, and which attempts use them."""

    def __init__(self, host: Host, offload: int = OFFLOAD) -> None:
        """`offload`: bytes from which a descriptor is a blob."""
        self.host, self.offload = host, offload
        self.blobs: dict[str, bytes] = {}
        self.used: dict[tuple[int, int], str] = {}
        """The blob of each region and attempt that has not ended."""

    def descriptor(self, run: Run, descriptor: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """What a message has of the descriptor of an attempt: all of it, or the key of its blob."""
        data = json.dumps(descriptor, separators=(",", ":")).encode()
        if len(data) < self.offload:
            return descriptor
        key = self.key(run, data)
        self.blobs[key] = data
        self.used[run.region.number, run.attempt] = key
        about = {"region": run.region.number, "tasks": [*run.region.operators], "attempt": run.attempt, "key": key}
        about |= {"content": digest(data), "bytes": len(data), "executors": sorted({*run.placement.values()})}
        self.host.event("descriptor_offloaded", about)
        return key

    def key(self, run: Run, data: bytes) -> str:
        """The key of a blob: that of its content."""
        return digest(data)

    def fetch(self, key: str) -> bytes | None:
        """The content of a blob, if it is there."""
        return self.blobs.get(key)

    def release(self, run: Run, *, finished: bool = False) -> None:
        """The attempt of a region has ended, by itself or not: no TaskExecutor needs its descriptor for it."""
        key = self.used.pop((run.region.number, run.attempt), None)
        if key is not None:
            deleted = [key] if self.is_unused(key) and self.blobs.pop(key, None) is not None else []
            about = {"region": run.region.number, "attempt": run.attempt, "finished": finished, "deleted": deleted}
            self.host.event("descriptor_released", about)

    def is_unused(self, key: str) -> bool:
        """Whether no attempt uses a blob."""
        return key not in self.used.values()
