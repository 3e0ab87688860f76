"""The file of a certificate, as `verifier` reads it, and the claims that behaviours show; written atomically."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof.base.files import CERTIFICATE, write
from streamproof.base.records import dataclass
from streamproof.certify.verifier import MAGIC
from streamproof.system.fingerprint import fingerprint
from streamproof.system.leaves import encode
from streamproof.system.model import Kind, System
from streamproof.system.verdict import Finding, Verdict

EFFORT = 1
"""Compression level of the evidence, from 0 to 9: higher levels take long and gain little."""


@dataclass(frozen=True, slots=True)
class Written:
    """A certificate that was written, or one without claims, of which there is no file.

    `claims` are its verdicts by property; `without` gives, for every other requested property, the reason why it has no
    claim. `size` is that of the file in bytes.
    """

    path: Path
    size: int
    claims: dict[str, str]
    without: dict[str, str]


class Contents:
    """A certificate of findings, with the claims that behaviours show; `left` are the other findings.

    `options` are the command-line words that select the system, in addition to the model. See `verifier` for the meaning
    of each part of the header and of the evidence.
    """

    def __init__(self, system: System, model: str, options: Sequence[str], findings: Sequence[Finding]) -> None:
        self.claims, self.left = dict[str, str](), list[Finding]()
        self.header: dict[str, Any] = {
            "model": model,
            "options": list(options),
            "fingerprint": fingerprint(system),
            "claims": self.claims,
            "counts": None,
        }
        self.evidence: dict[str, Any] = {"values": [], "traces": {}, "ranks": {}, "proofs": []}
        for finding in findings:
            shown = Verdict.HOLDS if finding.kind is Kind.REACHABLE else Verdict.VIOLATED
            fails = finding.verdict is Verdict.ERROR and finding.kind is not Kind.TERMINATION  # a cycle may come first
            if finding.trace is None or not (finding.verdict is shown or fails):
                self.left.append(finding)
                continue
            self.claim(finding)
            rows = (zip(system.variables, state, strict=True) for state in finding.trace.states)
            self.evidence["traces"][finding.property] = {
                "states": [[encode(v.sort, value) for v, value in row] for row in rows],
                "steps": [instance.label for instance in finding.trace.steps],
                "loop": finding.trace.loop,
            }

    def claim(self, *findings: Finding) -> None:
        """Claims the verdicts of these findings."""
        self.claims.update((finding.property, finding.verdict.value) for finding in findings)

    def undecided(self) -> dict[str, str]:
        """The properties left without a verdict to certify, with the reasons."""
        open_ = (Verdict.INCONCLUSIVE, Verdict.ERROR)
        return {f.property: f.because for f in self.left if f.verdict in open_ and f.because}

    def write(self, path: Path, without: dict[str, str]) -> Written:
        """As `written`."""
        return written(path, self.header, self.evidence, without)


def written(path: Path, header: Mapping[str, Any], evidence: Mapping[str, Any], without: dict[str, str]) -> Written:
    """Writes a certificate atomically, unless it has no claims. Raises `SystemFailure`."""
    data = packed(header, evidence) if header["claims"] else b""
    if data:
        write(path, data, CERTIFICATE)
    return Written(path, len(data), header["claims"], without)


def packed(header: Mapping[str, Any], evidence: Mapping[str, Any]) -> bytes:
    """The bytes of a certificate: the checksum of the rest, the header, the compressed evidence."""
    rest = _json(header) + b"\n" + lzma.compress(_json(evidence), preset=EFFORT)
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
