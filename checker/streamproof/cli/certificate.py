"""``--certificate FILE`` of check and prove: the evidence for verdicts, for `verify-certificate`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.cli.outputs import people
from streamproof.engines.registry import explored
from streamproof.model_registry import is_registered
from streamproof.selection import Selection
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Verdict

if TYPE_CHECKING:
    from streamproof.any.every_size import AnyProof
    from streamproof.certify.writing import Written
    from streamproof.symbolic import Proof

ANY = "--any"
"""The option with the free parameters, in the header of a certificate for every size."""


def certify(path: Path, selection: Selection, system: System, result: CheckResult) -> Written | None:
    """Write the certificate of a result; None, without a file, if the run was interrupted or decided no property.

    Raises `SystemFailure`, `TooLarge`, and `NoRanks` if the verdict turns out wrong.
    """
    from streamproof.certify.evidence import certify_findings, certify_search

    if result.interrupted:
        return None
    model, options = selection.target.text, selection.options
    if (states := explored(result)) is not None:
        return certify_search(path, model, options, states)
    lack = "bmc produces no evidence for it; leave out --engine bmc"
    return certify_findings(path, system, model, options, result.findings, lack)


def certify_proved(path: Path, selection: Selection, system: System, proof: Proof) -> Written | None:
    """Write the certificate of a proof; None if it was interrupted. Raises as `certify`, and `Unwritable`."""
    from streamproof.certify.proofs import certify_proof

    if proof.interrupted:
        return None
    return certify_proof(path, system, selection.target.text, selection.options, proof)


def certify_proved_any(
    path: Path,
    selection: Selection,
    result: AnyProof,
    status: Callable[[str], None],
) -> Written:
    """Write the certificate of a proof for every size; no file if no verdict is certified.

    Raises `SystemFailure`, and `SolversDisagree` if the proof is refuted.
    """
    from streamproof.any.certify.proofs import contents_any
    from streamproof.certify.writing import Written, written

    parametric, proof, without = result.parametric, result.proof, {}
    assert parametric is not None, "a proof is of a model"
    for finding in result.findings:
        if finding.verdict is Verdict.VIOLATED:
            without[finding.property] = (
                "it is violated at one size: check --certificate at these values writes the evidence"
            )
        elif finding.verdict is not Verdict.HOLDS:
            without[finding.property] = finding.because
    if proof.stopped == "interrupted":
        return Written(path, 0, {}, without)
    options = (*selection.options, ANY, ",".join(f.name for f in parametric.free))
    header, evidence, open_ = contents_any(parametric, selection.target.text, options, proof, status)
    return written(path, header, evidence, {**without, **open_})


def certificate_json(written: Written | None) -> dict[str, Any] | None:
    """The JSON of a certificate; null if none was requested or the run was interrupted."""
    if written is None:
        return None
    file = str(written.path) if written.claims else None
    return {"file": file, "bytes": written.size, "claims": written.claims, "without": written.without}


def print_certificate(
    written: Written | None, selection: Selection, json_to: str | None, lack: str = ": no verdict has evidence"
) -> None:
    """Print the content of the certificate, the command that verifies it, and the properties without certificate.

    `lack`: why no certificate was written, if no verdict is certified.
    """
    stream = people(json_to)
    if written is None:
        stream.write("no certificate was written: interrupted\n")
        return
    for name, why in written.without.items():
        stream.write(f"no certificate for {name}: {why}\n")
    if not written.claims:
        stream.write(f"no certificate was written{lack}\n")
        return
    text = selection.target.text
    model = () if is_registered(text) else ("--model", text)  # the place of a model that is not bundled
    command = shlex.join(["streamproof", "verify-certificate", str(written.path), *model])
    stream.write(f"certificate of {len(written.claims)} of {len(written.claims) + len(written.without)} verdicts,")
    stream.write(f" {written.size:,} bytes; {command}\n")
