"""Certificates: the evidence for verdicts as files, and the system that one is about, from its untrusted header."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from streamproof.base.errors import UsageError, reject
from streamproof.base.reading import parsed
from streamproof.base.text import visible
from streamproof.certify.evidence import certify_findings, certify_search
from streamproof.certify.writing import Written, written
from streamproof.engines.registry import explored
from streamproof.model_registry import find, is_registered
from streamproof.selection import Selection, select
from streamproof.system.model import System
from streamproof.system.verdict import CheckResult, Verdict
from streamproof.transform.unbounded import Parametric

if TYPE_CHECKING:
    from streamproof.any.every_size import AnyProof
    from streamproof.any.ranked import RankedProof
    from streamproof.symbolic.proof import Proof

T = TypeVar("T")
RANK = "--rank"
"""The option of a proof by ranking functions, in the header of its certificate with an empty rank: the evidence has it."""
ANY = "--any"
"""The option with the free parameters, in the header of a certificate for every size."""


def certify(path: Path, selection: Selection, system: System, result: CheckResult) -> Written | None:
    """Write the certificate of a result; None, without a file, if the run was interrupted or decided no property.

    Raises `SystemFailure`, `TooLarge`, and `NoRanks` if the verdict turns out wrong.
    """
    if result.interrupted:
        return None
    model, options = selection.target.text, selection.options
    if (states := explored(result)) is not None:
        return certify_search(path, model, options, states)
    lack = "bmc produces no evidence for it; leave out --engine bmc"
    return certify_findings(path, system, model, options, result.findings, lack)


def certify_proved(path: Path, selection: Selection, system: System, proof: Proof) -> Written | None:
    """Write the certificate of a proof; None if it was interrupted. Raises as `certify`, and `Unwritable`."""
    from streamproof.certify.proofs import certify_proof  # which loads the solver

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
    from streamproof.any.certify.proofs import contents_any  # which loads the solver

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


def certify_ranked(
    path: Path,
    selection: Selection,
    free: Sequence[str],
    result: RankedProof,
    status: Callable[[str], None],
) -> Written:
    """Write the certificate of proofs by ranking functions, as `certify_proved_any`."""
    from streamproof.any.certify.proofs import contents_ranked

    without = {f.property: f.because for f in result.findings if f.verdict is not Verdict.HOLDS}
    for one in result.ranks:
        if one.finding.property not in without and not one.proofs:
            without[one.finding.property] = "a rank of one instance has none: check --certificate writes one"
    proved = {one.finding.property: one.proofs for one in result.ranks if one.finding.property not in without}
    if not proved or result.parametric is None:
        return Written(path, 0, {}, without)
    options = (*selection.options, ANY, ",".join(dict.fromkeys(free)), RANK, "")
    header, evidence, open_ = contents_ranked(result.parametric, selection.target.text, options, proved, status)
    return written(path, header, evidence, {**without, **open_})


def is_for_any(data: bytes) -> bool:
    """Whether the (unchecked) header of a certificate names free parameters."""
    try:
        return ANY in parsed(data.split(b"\n", 2)[1].decode())["options"]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return False


def system(header: Mapping[str, Any], model: str | None) -> System:
    """The system of a certificate, from the model it names or from `model`."""

    def made(selection: Selection, _: Mapping[str, Sequence[str]]) -> System:
        if header["options"] != [*selection.options]:
            reject("its options are not in the form in which check writes them")
        return selection.system()

    return _described(header, model, ("--variant", "--size", "-p"), made)


def parametric(header: Mapping[str, Any], model: str | None) -> Parametric:
    """The parametric system of a certificate, from the model it names or from `model`.

    The options must be in the normal form written by `streamproof prove`, as they are printed.
    """

    def made(selection: Selection, given: Mapping[str, Sequence[str]]) -> Parametric:
        (free,) = given[ANY]
        make = selection.target.endless if given[RANK] else selection.target.parametric
        parametric = make(selection.variant, selection.given, [name for name in free.split(",") if name])
        ranked = [RANK, ""] if given[RANK] else []
        if header["options"] != [*selection.options, ANY, ",".join(f.name for f in parametric.free), *ranked]:
            reject("its options are not in the form in which prove writes them")
        return parametric

    return _described(header, model, ("--variant", "--size", "-p", ANY, RANK), made)


def _described(
    header: Mapping[str, Any],
    model: str | None,
    known: Sequence[str],
    make: Callable[[Selection, Mapping[str, Sequence[str]]], T],
) -> T:
    """The result of `make` for the model and the options of a header, which must be among `known`.

    Raises `Rejected` for options that the model rejects, and other errors of the model unchanged.
    """
    words, given = header["options"], {option: list[str]() for option in known}
    if type(words) is not list or not all(type(word) is str for word in (*words, header["model"])):
        reject("its model and options are not strings")
    if len(words) % 2 or not {*words[::2]} <= {*known}:
        reject("its options are not those of a certificate")
    for option, value in zip(words[::2], words[1::2], strict=True):
        given[option].append(value)
    names = [
        name if name != "-p" else value.partition("=")[0] for name, value in zip(words[::2], words[1::2], strict=True)
    ]
    if len({*names}) < len(names):
        reject("an option is given twice")  # only one of the two would count, and both be printed
    text = _model_of(header, model)
    find(text)  # its errors are not defects of the certificate
    variant, size = (next(iter(given[option]), None) for option in ("--variant", "--size"))
    try:
        return make(select(text, variant, size, given["-p"]), given)
    except UsageError as error:
        reject(f"its options do not fit the model: {error.message}")


def _model_of(header: Mapping[str, Any], model: str | None) -> str:
    """The model to check a certificate against: `model`, or the bundled model named in the header.

    Certificates are untrusted, and a file or module named in one would be executed: raises `UsageError` for such names.
    """
    named = header["model"]
    if model is not None:
        return model
    if not is_registered(named):
        raise UsageError(
            f"the certificate is for {visible(named)}, which is not a bundled model",
            remedy="name the model with --model FILE.py",
        )
    return str(named)
