"""Bounded unpacking of the compressed part of a certificate, and errors of what is in it."""

from __future__ import annotations

import lzma

from streamproof.base.options import bytes_text, either
from streamproof.base.reading import Excess


def parts_of(data: bytes, most: int) -> tuple[bytes, bytes]:
    """The first line of data, and the unpacked content of the xz data after it. Raises `Excess` beyond `most` bytes, and
    `lzma.LZMAError`."""
    head, _, packed = data.partition(b"\n")
    reader = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=1 << 27)
    found = reader.decompress(packed, max_length=most + 1)
    if len(found) > most:
        more = either("--unpacked SIZE moves this limit")
        raise Excess("; ".join(filter(None, (f"unpacked it is larger than {bytes_text(most)}", more))))
    if not reader.eof or reader.unused_data:
        raise lzma.LZMAError("the compressed data is incomplete, or goes on behind its end")
    return head, found


def malformed(error: Exception) -> str:
    """The message for data that could not be read because of `error`: a description for exceeded bounds, else its kind."""
    if isinstance(error, Excess):
        return str(error)
    kinds: list[tuple[type[Exception], str]] = [
        (KeyError, "it names a missing entry"),
        (lzma.LZMAError, "its evidence does not unpack"),
        (IndexError, "a number in it is out of range"),
        (ValueError, "a part of it has another form"),
    ]
    other = "a part of it has another type"
    return "it is malformed: " + next((why for kind, why in kinds if isinstance(error, kind)), other)
