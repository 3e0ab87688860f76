"""Variants of the offload of descriptors, to be switched on for demonstration; with small descriptors they change nothing."""

from __future__ import annotations

from streamproof_runtime.jobmaster.blob_server import BlobServer
from streamproof_runtime.jobmaster.jobmaster import JobMaster
from streamproof_runtime.jobmaster.region_runs import Run
from streamproof_runtime.taskexecutor.blob_cache import BlobCache


class DeletesWhenFetched(BlobServer):
    """A blob is deleted when the first TaskExecutor has fetched it."""

    def fetch(self, key: str) -> bytes | None:
        """For the last time."""
        return self.blobs.pop(key, None)


class KeyedByRegion(BlobServer):
    """The key of a blob names the region, and not the content."""

    def key(self, run: Run, data: bytes) -> str:
        """The same for all attempts."""
        return f"region {run.region.number}"


class NeverDeletes(BlobServer):
    """Blobs stay while the JobMaster is there."""

    def is_unused(self, key: str) -> bool:
        """Never."""
        return False


class DeletingWhenFetched(JobMaster):
    """A JobMaster with `DeletesWhenFetched`."""

    blob_server = DeletesWhenFetched


class KeyingByRegion(JobMaster):
    """A JobMaster with `KeyedByRegion`."""

    blob_server = KeyedByRegion


class DeletingNever(JobMaster):
    """A JobMaster with `NeverDeletes`."""

    blob_server = NeverDeletes


class NoEviction(BlobCache):
    """A TaskExecutor keeps every blob."""

    def _evict(self) -> None:
        """Nothing is deleted."""


class KeptAfterJob(BlobCache):
    """A TaskExecutor keeps its cache when its JobMaster has ended."""

    drops = False


MASTERS: dict[str, type[JobMaster]] = {
    "deleted-when-fetched": DeletingWhenFetched,
    "keyed-by-region": KeyingByRegion,
    "never-deleted": DeletingNever,
}
CACHES: dict[str, type[BlobCache]] = {"no-eviction": NoEviction, "kept-after-job": KeptAfterJob}
"""Variants of the JobMaster, and of the caches of TaskExecutors, by the names of the model."""
