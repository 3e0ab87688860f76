"""Completed checkpoints on disk, in two files without a name that the launching process opens: each JobMaster inherits them.

A checkpoint is written to the file that does not have the latest one. It counts when its last frame is there, so that a
JobMaster that is killed while it writes leaves the one before. The files are gone with the processes of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from streamproof_runtime.processes.wire import Frames, frame
from streamproof_runtime.subtasks.barriers import Snapshot

_CHUNK = 1 << 16


def checkpoint_files() -> list[IO[bytes]]:
    """The files of a run. Raises `OSError`."""
    return [tempfile.TemporaryFile(buffering=0) for _ in range(2)]


class FileCheckpoints:
    """A frame with the number of the checkpoint and that of its subtasks, and one for each subtask."""

    def __init__(self, files: Sequence[IO[bytes]]) -> None:
        """`files`: two, without buffers. Raises `OSError`."""
        found = [(_read(file), file) for file in files]
        self._kept, _ = max(found, key=lambda each: each[0][0])
        self._spare, self._used = (file for _, file in sorted(found, key=lambda each: each[0][0]))

    def save(self, checkpoint: int, snapshots: Mapping[str, Snapshot]) -> None:
        """Writes a checkpoint over the one before the latest."""
        file = self._spare
        file.seek(0)
        file.truncate(0)
        for value in ([checkpoint, len(snapshots)], *([task, found] for task, found in snapshots.items())):
            data = frame(value)
            while data:
                data = data[file.write(data) :]
        self._spare, self._used, self._kept = self._used, file, (checkpoint, dict(snapshots))

    def latest(self) -> tuple[int, Mapping[str, Snapshot]]:
        """The latest checkpoint that is complete."""
        return self._kept


def _read(file: IO[bytes]) -> tuple[int, dict[str, Snapshot]]:
    """The checkpoint of a file; 0 if it is not complete."""
    values = _values(file)
    checkpoint, count = next(values, (0, 0))
    found = {task: tuple(snapshot) for task, snapshot in values}
    return (checkpoint, found) if len(found) == count else (0, {})


def _values(file: IO[bytes]) -> Iterator[Any]:
    frames = Frames()
    file.seek(0)
    while data := file.read(_CHUNK):
        yield from frames.feed(data)
