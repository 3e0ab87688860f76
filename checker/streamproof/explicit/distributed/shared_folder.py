"""Files of states in a folder that all processes of a search share: Arrow IPC files of a local or a remote file system.

A file is written once, under another name until it is complete, and never changed. Its rows are in batches, which are read
one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs
import pyarrow.ipc

from streamproof.base.errors import SystemFailure
from streamproof.base.options import TUNING

Array = npt.NDArray[Any]
STATE, ORDER, NUMBER = "state", "order", "number"
"""The columns: the words of a state; its place in the order of discovery; its number in that order."""


class SharedFolder:
    """A folder, given as a path or as an address of a file system that Arrow knows (``hdfs://``, ``s3://``).

    `rows`: number of rows of a batch, unless its writer gives another.
    """

    def __init__(self, place: str, rows: int = TUNING.file_rows) -> None:
        self.place, self.rows = place, rows
        self._files: Any = pyarrow.fs.LocalFileSystem(use_mmap=True)
        self._path: str = place
        if "://" in place:
            with self._failing():
                self._files, self._path = pyarrow.fs.FileSystem.from_uri(place)

    def path(self, name: str) -> str:
        """The full path of a file."""
        return f"{self._path}/{name}"

    def make(self, name: str = "") -> None:
        """Create a folder in it, or itself."""
        with self._failing():
            self._files.create_dir(self.path(name).rstrip("/"), recursive=True)

    def has(self, name: str) -> bool:
        """Whether there is a file."""
        with self._failing():
            return bool(self._files.get_file_info(self.path(name)).type == pyarrow.fs.FileType.File)

    def names(self, folder: str = "") -> list[str]:
        """The names of all files, folders left out, relative to this folder."""
        with self._failing():
            found = self._files.get_file_info(pyarrow.fs.FileSelector(self.path(folder).rstrip("/"), recursive=True))
        return sorted(
            info.path.removeprefix(self._path).lstrip("/") for info in found if info.type == pyarrow.fs.FileType.File
        )

    def write(self, name: str, batches: Iterable[dict[str, Array]], words: int) -> int:
        """Write a file of states of `words` words; returns its number of rows."""
        rows = 0
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with self._complete(name) as sink:
            writer = None
            for columns in batches:
                rows += len(next(iter(columns.values())))
                batch = pa.record_batch([_arrow(column) for column in columns.values()], names=list(columns))
                if writer is None:
                    writer = pyarrow.ipc.new_file(sink, batch.schema, options=options)
                writer.write_batch(batch)
            if writer is None:
                empty = pa.schema([(STATE, pa.binary(8 * words)), (ORDER, pa.uint64()), (NUMBER, pa.uint64())])
                writer = pyarrow.ipc.new_file(sink, empty, options=options)
            writer.close()
        return rows

    def reader(self, name: str, *columns: str) -> FileReader:
        """A reader of some columns of a file, or of all."""
        return FileReader(self, name, columns)

    def put(self, name: str, data: bytes) -> None:
        """Write the bytes of a small file."""
        with self._complete(name) as sink:
            sink.write(data)

    def get(self, name: str) -> bytes:
        """The bytes of a file."""
        with self._failing(), self.source(name) as file:
            return bytes(file.read())

    def array(self, name: str, kind: Any) -> Array:
        """The numbers of a file of raw numbers; those of a local file are mapped."""
        with self._failing(), self.source(name) as file:
            return np.frombuffer(file.read_buffer(), dtype=kind)

    def source(self, name: str) -> Any:
        """A file, opened to be read."""
        return self._files.open_input_file(self.path(name))

    def remove(self, names: Iterable[str]) -> None:
        """Delete files; those that are not there are no failure."""
        for name in names:
            with suppress(OSError):
                self._files.delete_file(self.path(name))

    @contextmanager
    def _complete(self, name: str) -> Iterator[Any]:
        """A new file, which gets its name when the block has ended without a failure."""
        part = self.path(f"{name}.{uuid.uuid4().hex}.part")
        with self._failing():
            try:
                with self._files.open_output_stream(part) as sink:
                    yield sink
                self._files.move(part, self.path(name))
            except BaseException:
                with suppress(OSError):
                    self._files.delete_file(part)
                raise

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise SystemFailure(
                f"the search cannot use its folder {self.place}: {error}",
                remedy="name a folder with free space that every worker can write, with --spill DIR",
            ) from None


class FileReader:
    """The rows of one file, batch by batch."""

    def __init__(self, folder: SharedFolder, name: str, columns: Sequence[str]) -> None:
        self._folder = folder
        self._name = name
        self._columns = columns

    @cached_property
    def _file(self) -> Any:
        with self._folder._failing():
            source = self._folder.source(self._name)
            if not self._columns:
                return pyarrow.ipc.open_file(source)
            whole = pyarrow.ipc.open_file(source)
            wanted = [whole.schema.get_field_index(column) for column in self._columns]
            return pyarrow.ipc.open_file(source, options=pyarrow.ipc.IpcReadOptions(included_fields=wanted))

    @property
    def batches(self) -> int:
        """Number of batches."""
        return int(self._file.num_record_batches)

    def batch(self, at: int) -> dict[str, Array]:
        """The columns of a batch as NumPy arrays, the states as rows of words."""
        with self._folder._failing():
            found = self._file.get_batch(at)
            return {name: _numpy(found.column(name)) for name in found.schema.names}

    def __iter__(self) -> Iterator[dict[str, Array]]:
        return map(self.batch, range(self.batches))


def _arrow(column: Array) -> pa.Array:
    if column.ndim == 1:
        return pa.array(column)
    rows, words = column.shape
    data = pa.py_buffer(np.ascontiguousarray(column))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * words), rows, [None, data])


def _numpy(column: Any) -> Array:
    if pa.types.is_fixed_size_binary(column.type):
        words = column.type.byte_width // 8
        data = np.frombuffer(column.buffers()[1], dtype=np.uint64)
        return data.reshape(-1, words)[column.offset : column.offset + len(column)]
    return np.asarray(column)
