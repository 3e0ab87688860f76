"""Certificates of proofs for every value of parameters, on the command line: writing, verification, output."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from streamproof.cli.certificate import certificate_json, verify_line
from streamproof.cli.outputs import people, write_json
from streamproof.cli.selection import Selection, select
from streamproof.language.model import limits_text
from streamproof.registry import find, is_registered
from streamproof.system.errors import Exit, StreamproofError, UsageError
from streamproof.system.files import GENERATOR, SCRIPTS, SMTLIB, Content, Form, write_all
from streamproof.system.reading import parsed
from streamproof.system.text import visible
from streamproof.system.unbounded import Parametric
from streamproof.system.verdict import Finding, Verdict

if TYPE_CHECKING:
    from streamproof.certify.evidence import Written
    from streamproof.certify.verifier_any import Discharged, Shown
    from streamproof.symbolic.parametric import AnySize

T = TypeVar("T")
ANY = "--any"
SOLVER_NAMES = {"z3": "Z3", "cvc5": "cvc5"}
MISSING = "cvc5 is not installed, so there is no second solver; pip install cvc5 into the environment of streamproof"


# --- writing


def certify_proved_any(
    path: Path,
    selection: Selection,
    parametric: Parametric,
    proof: AnySize,
    findings: Sequence[Finding],
    status: Callable[[str], None],
) -> tuple[Written | None, dict[str, str]]:
    """Write the certificate of a proof for every size; also returns the reasons for verdicts without certificate.

    None, without a file, if no verdict is certified. Raises `SystemFailure`, and `SolversDisagree` if the proof is refuted.
    """
    from streamproof.certify.proofs_any import certify_any

    without = {}
    for finding in findings:
        if finding.verdict is Verdict.VIOLATED:
            without[finding.property] = (
                "it is violated at one size: check --certificate at these values writes the evidence"
            )
        elif finding.verdict is not Verdict.HOLDS:
            without[finding.property] = finding.because
    if proof.stopped == "interrupted":
        return None, without
    options = (*selection.options, ANY, ",".join(f.name for f in parametric.free))
    written, open_ = certify_any(path, parametric, selection.target.text, options, proof, status)
    return written, {**without, **open_}


def written_json(written: Written | None, without: Mapping[str, str]) -> dict[str, Any]:
    """The part of the JSON of prove for the certificate."""
    found = certificate_json(written)
    return {"certificate": None if found is None else {**found, "without": dict(without)}}


def print_written(
    written: Written | None, without: Mapping[str, str], selection: Selection, json_to: str | None
) -> None:
    """Print the content of the certificate, and the properties without certificate."""
    stream = people(json_to)
    for name, why in without.items():
        stream.write(f"no certificate for {name}: {why}\n")
    if written is None:
        stream.write("no certificate was written\n")
        return
    stream.write(f"certificate of {len(written.claims)} of {len(written.claims) + len(without)} verdicts,")
    stream.write(f" {written.size:,} bytes; {verify_line(written, selection)}\n")


# --- verifying


def is_for_any(data: bytes) -> bool:
    """Whether the (unchecked) header of a certificate names free parameters."""
    try:
        return ANY in parsed(data.split(b"\n", 2)[1].decode())["options"]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return False


def verify_for_any(
    path: Path,
    data: bytes,
    model: str | None,
    smt: Path | None,
    seconds: float | None,
    status: Callable[[str], None],
    json_to: str | None,
    most: int,
) -> Callable[[], int]:
    """Verify a certificate, and write its JSON and scripts; returns a function that prints the result.

    Raises `StreamproofError`."""
    from streamproof.certify.solvers import PATIENCE
    from streamproof.certify.verifier_any import SolversDisagree, verify_any
    from streamproof.system.errors import Rejected

    begun = time.perf_counter()
    try:
        shown = verify_any(
            data,
            lambda header: _parametric(header, model),
            status,
            seconds=PATIENCE if seconds is None else seconds,
            most=most,
        )
    except (Rejected, SolversDisagree) as error:
        if json_to is not None:
            write_json(verification_json(path, data, None, error, begun), json_to)
        raise
    if smt is not None:
        write_scripts(shown, smt)
    if json_to is not None:
        document = verification_json(path, data, shown.header, None, begun)
        write_json({**document, "lemma_graph": _lemma_graph(shown)}, json_to)

    def print_accepted() -> int:
        _print_accepted(path, shown, smt, begun, json_to)
        return Exit.HOLDS

    return print_accepted


def model_of(header: Mapping[str, Any], model: str | None) -> str:
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


def _parametric(header: dict[str, Any], model: str | None) -> Parametric:
    """The parametric system of a certificate, from the model it names or from `model`.

    The options must be in the normal form written by `streamproof prove`, as they are printed. `model` replaces the name in
    the header, which is not checked.
    """
    from streamproof.system.errors import reject

    def made(selection: Selection, given: Mapping[str, Sequence[str]]) -> Parametric:
        (free,) = given[ANY]
        parametric = selection.target.parametric(
            selection.variant, selection.given, [name for name in free.split(",") if name]
        )
        if header["options"] != [*selection.options, ANY, ",".join(f.name for f in parametric.free)]:
            reject("its options are not in the form in which prove writes them")
        return parametric

    parametric = described(header, model, ("--variant", "--size", "-p", ANY), made)
    header["model"] = model or header["model"]
    return parametric


def described(
    header: Mapping[str, Any],
    model: str | None,
    known: Sequence[str],
    make: Callable[[Selection, Mapping[str, Sequence[str]]], T],
) -> T:
    """The result of `make` for the model and the options of a header, which must be among `known`.

    Raises `Rejected` for options that the model rejects, and other errors of the model unchanged.
    """
    from streamproof.system.errors import reject

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
    text = model_of(header, model)
    find(text)  # its errors are not defects of the certificate
    variant, size = (next(iter(given[option]), None) for option in ("--variant", "--size"))
    try:
        return make(select(text, variant, size, given["-p"]), given)
    except UsageError as error:
        reject(f"its options do not fit the model: {error.message}")


def write_scripts(shown: Shown, folder: Path) -> None:
    """Write every obligation as an SMT-LIB file, with an index of the obligations. Raises `SystemFailure`."""
    rows, files = [], list[tuple[Path, Content, Form]]()
    for number, one in enumerate(shown.obligations, start=1):
        name = f"obligation-{number:04}.smt2"
        files.append((folder / name, f"; {GENERATOR} verify-certificate\n{one.text}", SMTLIB))
        rows.append({"file": name, **_obligation(one)})
    write_all([*files, (folder / "obligations.json", json.dumps(rows, indent=1) + "\n", SCRIPTS)])


def _obligation(one: Discharged) -> dict[str, Any]:
    return {
        "claim": one.claim,
        "rule": one.rule,
        "needs": list(one.needs),
        "instantiation_terms": one.terms,
        "answers": dict(one.answers),
    }


def verification_json(
    path: Path, data: bytes, header: Mapping[str, Any] | None, error: StreamproofError | None, begun: float
) -> dict[str, Any]:
    """The JSON of verify-certificate; without `header` for a rejected certificate."""
    known = header or {}
    return {
        "schema": "streamproof.verify-certificate/1",
        "file": str(path),
        "bytes": len(data),
        "accepted": error is None,
        "because": None if error is None else error.message,
        **{name: known.get(name) for name in ("model", "options", "claims", "constraint", "counts")},
        "seconds": time.perf_counter() - begun,
        "exit_code": int(Exit.HOLDS if error is None else error.exit_code),
    }


def _lemma_graph(shown: Shown) -> dict[str, Any]:
    return {
        "schema": "streamproof.lemma-graph/1",
        "any": {name: [least, most] for name, least, most in shown.free},
        "lemmas": dict(shown.lemmas),
        "solvers": dict(shown.solvers),
        "obligations": [_obligation(one) for one in shown.obligations],
    }


def graph_lines(shown: Shown) -> list[tuple[str, str]]:
    """For each claim, the claims that it needs, each with the rules that need it."""
    needs: dict[str, dict[str, list[str]]] = {}
    for one in shown.obligations:
        row = needs.setdefault(one.claim, {})
        for need in one.needs or ("nothing",):
            row.setdefault(need, []).append(one.rule or "initially")
    return [
        (claim, ", ".join(f"{need} ({', '.join(rules)})" for need, rules in row.items()))
        for claim, row in needs.items()
    ]


def constraint_lines(header: Mapping[str, Any]) -> list[str]:
    """The reservation of the claims of a system with a constraint."""
    text = header["constraint"]
    return (
        []
        if text is None
        else [f"the claims are within the constraint {text}: no step from a state outside is followed"]
    )


def _print_accepted(path: Path, shown: Shown, smt: Path | None, begun: float, json_to: str | None) -> None:
    from streamproof.report.console import print_lines
    from streamproof.system.text import line

    stream = people(json_to)
    width = max(len(name) for name in shown.header["claims"])
    lines = [line(f"{name:{width}}  {verdict}", indent=2) for name, verdict in shown.header["claims"].items()]
    lines += map(line, constraint_lines(shown.header))
    if shown.free:
        every = ", ".join(f"{name} ({limits_text(least, most)})" for name, least, most in shown.free)
        lines.append(line(f"for every value of {every}"))
    if shown.lemmas:
        lines.append(line("Lemmas:"))
        lines += [line(f"{name}: {text}", indent=2, hang=4) for name, text in shown.lemmas]
    lines.append(line("Lemma graph:"))
    lines += [line(f"{claim}  needs: {text}", indent=2, hang=4) for claim, text in graph_lines(shown)]
    lines += [line(text) for text in _solver_lines(shown)]
    if smt is not None:
        lines.append(line(f"scripts: {smt}"))
    print_lines(lines, stream)
    subject = visible(shlex.join([shown.header["model"], *shown.header["options"]]))
    stream.write(f"accepted: {path} shows this of {subject} ({time.perf_counter() - begun:.2f} s)\n")
    stream.flush()


def _solver_lines(shown: Shown) -> list[str]:
    number = len(shown.obligations)
    lines = []
    for solver, version in shown.solvers.items():
        done = sum(one.answers[solver] == "unsat" for one in shown.obligations)
        lines.append(f"{SOLVER_NAMES[solver]} {version}: {done} of {number} obligations discharged")
    for one in shown.by_one:
        by = ", ".join(SOLVER_NAMES[solver] for solver, answer in one.answers.items() if answer == "unsat")
        lines.append(f"discharged by {by} only: {one.claim} {f'after {one.rule}' if one.rule else 'initially'}")
    if "cvc5" not in shown.solvers:
        lines.append(f"shown by Z3 alone: {MISSING}")
    return lines
