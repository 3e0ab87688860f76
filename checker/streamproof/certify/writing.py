"""The file of a certificate, as `verifier` reads it; written atomically."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from streamproof.certify.verifier import MAGIC
from streamproof.system.files import CERTIFICATE, write
from streamproof.system.leaves import encode
from streamproof.system.records import dataclass
from streamproof.system.sorts import Sort
from streamproof.system.verdict import Trace

EFFORT = 1
"""Compression level of the evidence, from 0 to 9: higher levels take long and gain little."""


@dataclass
class Contents:
    """The contents of a certificate; see `verifier` for the meaning of each part."""

    model: str
    options: tuple[str, ...]
    """The command-line words that select the system, in addition to the model."""
    fingerprint: str
    claims: dict[str, str] = field(default_factory=dict)
    counts: dict[str, Any] | None = None
    values: list[tuple[list[Any], list[int]]] = field(default_factory=list)
    traces: dict[str, Any] = field(default_factory=dict)
    ranks: dict[str, Any] = field(default_factory=dict)
    proofs: list[Any] = field(default_factory=list)

    def file(self) -> bytes:
        """The certificate as JSON data."""
        header = {
            "model": self.model,
            "options": list(self.options),
            "fingerprint": self.fingerprint,
            "claims": self.claims,
            "counts": self.counts,
        }
        evidence = {"values": self.values, "traces": self.traces, "ranks": self.ranks, "proofs": self.proofs}
        return packed(header, evidence)


def packed(header: Mapping[str, Any], evidence: Mapping[str, Any]) -> bytes:
    """The bytes of a certificate: the checksum of the rest, the header, the compressed evidence."""
    rest = _json(header) + b"\n" + lzma.compress(_json(evidence), preset=EFFORT)
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def write_certificate(path: Path, contents: Contents) -> int:
    """Writes a certificate atomically; returns its size in bytes. Raises `SystemFailure`."""
    data = contents.file()
    write(path, data, CERTIFICATE)
    return len(data)


def trace_data(sorts: Sequence[Sort], trace: Trace) -> dict[str, Any]:
    """A behaviour as JSON data: its states (each value as its leaves), the labels of its steps, the target of its loop."""
    return {
        "states": [[encode(sort, value) for sort, value in zip(sorts, s, strict=True)] for s in trace.states],
        "steps": [instance.label for instance in trace.steps],
        "loop": trace.loop,
    }


def _json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
