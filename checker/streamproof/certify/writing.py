"""The file of a certificate, as `verifier` reads it: complete or not there."""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, assert_never

from streamproof.certify.verifier import MAGIC
from streamproof.exchange.files import write_bytes
from streamproof.system.records import dataclass
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    Value,
    ordered,
)
from streamproof.system.verdict import Trace

EFFORT = 6
"""How hard the evidence is compressed, from 1 to 9."""


@dataclass
class Contents:
    """What a certificate says; see `verifier` for the meaning of each part."""

    model: str
    options: tuple[str, ...]
    """The words of a command line that choose the system beside the model."""
    fingerprint: str
    claims: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Any] | None = None
    values: list[list[Any]] = field(default_factory=list)
    traces: dict[str, Any] = field(default_factory=dict)
    ranks: dict[str, Any] = field(default_factory=dict)
    proofs: list[Any] = field(default_factory=list)
    numbers: list[bytes] = field(default_factory=list)

    def file(self) -> bytes:
        """The certificate as it is written."""
        header = {
            "model": self.model,
            "options": list(self.options),
            "fingerprint": self.fingerprint,
            "claims": self.claims,
            "counts": self.counts,
        }
        evidence = {"values": self.values, "traces": self.traces, "ranks": self.ranks, "proofs": self.proofs}
        return packed(header, evidence, self.numbers)


def packed(header: Mapping[str, Any], evidence: Mapping[str, Any], numbers: Iterable[bytes]) -> bytes:
    """The bytes of a certificate: the checksum of all that follows, the header, the compressed evidence."""
    packing = zlib.compressobj(EFFORT)
    parts = [_line(header), packing.compress(_line(evidence)), *map(packing.compress, numbers), packing.flush()]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join((MAGIC, digest.hexdigest().encode(), b"\n", *parts))


def write_certificate(path: Path, contents: Contents) -> int:
    """Write a certificate in one piece; its size in bytes. Raises `SystemFailure`."""
    data = contents.file()
    write_bytes(path, data)
    return len(data)


def trace_data(sorts: Sequence[Sort], trace: Trace) -> dict[str, Any]:
    """A behaviour as JSON data: its states, the labels of its steps, and where its loop leads back to."""
    return {
        "states": [[data_of(sort, value) for sort, value in zip(sorts, s, strict=True)] for s in trace.states],
        "steps": [instance.label for instance in trace.steps],
        "loop": trace.loop,
    }


def data_of(sort: Sort, value: Value) -> Any:
    """A value as JSON data: what has parts is a list of them, the members of a set in their order."""
    match sort:
        case RecordSort(fields):
            return [data_of(s, part) for (_, s), part in zip(fields, value, strict=True)]
        case ArraySort(_, element) | QueueSort(element, _):
            return [data_of(element, part) for part in value]
        case OptionSort(element):
            return None if value is None else data_of(element, value)
        case SetSort(element):
            return [data_of(element, part) for part in ordered(element, value)]
        case BoolSort() | RangeSort() | EnumSort():
            return value
        case _:
            assert_never(sort)


def numbers_data(numbers: array[int], bound: int) -> bytes:
    """Numbers that are all below `bound`, as `Verifier.take_numbers` reads them."""
    code = "B" if bound <= 1 << 8 else "H" if bound <= 1 << 16 else "I"
    return (numbers if numbers.typecode == code else array(code, numbers)).tobytes()


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode() + b"\n"
