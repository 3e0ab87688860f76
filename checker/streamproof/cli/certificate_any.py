"""Certificates of proofs for every value of parameters, on the command line: how they are written, verified and shown."""

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
from streamproof.system.bounded import parsed
from streamproof.system.errors import Exit, StreamproofError, UsageError
from streamproof.system.files import GENERATOR, SCRIPTS, SMTLIB, Content, Form, write_all
from streamproof.system.foreign import visible
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
    tell: Callable[[str], None],
) -> tuple[Written | None, dict[str, str]]:
    """Write the certificate of a proof for every size, and say why there is none of other verdicts.

    None, and no file, where it shows nothing. Raises `SystemFailure`, and `SolversDisagree` where the proof is found wrong.
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
    written, open_ = certify_any(path, parametric, selection.target.text, options, proof, tell)
    return written, {**without, **open_}


def written_json(written: Written | None, without: Mapping[str, str]) -> dict[str, Any]:
    """What the JSON of prove says of the certificate."""
    found = certificate_json(written)
    return {"certificate": None if found is None else {**found, "without": dict(without)}}


def tell_written(
    written: Written | None, without: Mapping[str, str], selection: Selection, json_to: str | None
) -> None:
    """Print what the certificate shows, and for which properties there is none."""
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
    """Whether the header of a certificate, which nothing has checked yet, names free parameters."""
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
    """Verify a certificate, write its JSON and scripts; what is returned prints the outcome. Raises `StreamproofError`."""
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
            write_json(_document(path, data, None, error, begun), json_to)
        raise
    if smt is not None:
        write_scripts(shown, smt)
    if json_to is not None:
        write_json(_document(path, data, shown, None, begun), json_to)

    def tell() -> int:
        _tell(path, shown, smt, begun, json_to)
        return Exit.HOLDS

    return tell


def model_of(header: Mapping[str, Any], model: str | None) -> str:
    """The model to check a certificate against: the one given, or a bundled one of the name in the header.

    A certificate may come from anybody, and a file or a module that it names would be run: raises `UsageError`.
    """
    named = header["model"]
    if model is not None:
        return model
    if not is_registered(named):
        raise UsageError(
            f"the certificate is about {visible(named)}, which is no bundled model",
            remedy="say where the model is: --model FILE.py",
        )
    return str(named)


def _parametric(header: dict[str, Any], model: str | None) -> Parametric:
    """The parametric system that a certificate is about, from the model it names or the one given.

    The options must be the words of `streamproof prove`, in their one form: they are printed. A model given replaces the
    name in the header, which nothing checks.
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
    """What `make` makes of the model and the options of a header, of which only `known` ones may occur.

    Raises `Rejected` for options that the model refuses, and every other error of the model as it is.
    """
    from streamproof.system.errors import reject

    words, given = header["options"], {option: list[str]() for option in known}
    if type(words) is not list or not all(type(word) is str for word in (*words, header["model"])):
        reject("its model and options are no words")
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
    find(text)  # no fault of the certificate
    variant, size = (next(iter(given[option]), None) for option in ("--variant", "--size"))
    try:
        return make(select(text, variant, size, given["-p"]), given)
    except UsageError as error:
        reject(f"its options do not fit the model: {error.message}")


def write_scripts(shown: Shown, folder: Path) -> None:
    """Write every obligation as an SMT-LIB file, with a list of what each says. Raises `SystemFailure`."""
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


def _document(
    path: Path, data: bytes, shown: Shown | None, error: StreamproofError | None, begun: float
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "schema": "streamproof.verify-certificate/1",
        "file": str(path),
        "bytes": len(data),
        "accepted": error is None,
        "because": None if error is None else error.message,
        "model": None if shown is None else shown.header["model"],
        "options": None if shown is None else shown.header["options"],
        "claims": None if shown is None else shown.header["claims"],
        "counts": None,
        "seconds": time.perf_counter() - begun,
        "exit_code": int(Exit.HOLDS if error is None else error.exit_code),
    }
    if shown is not None:
        found["lemma_graph"] = {
            "schema": "streamproof.lemma-graph/1",
            "any": {name: [least, most] for name, least, most in shown.free},
            "lemmas": dict(shown.lemmas),
            "solvers": dict(shown.solvers),
            "obligations": [_obligation(one) for one in shown.obligations],
        }
    return found


def graph_lines(shown: Shown) -> list[tuple[str, str]]:
    """For each claim the claims that it needs, each with the rules for which it does."""
    needs: dict[str, dict[str, list[str]]] = {}
    for one in shown.obligations:
        row = needs.setdefault(one.claim, {})
        for need in one.needs or ("nothing",):
            row.setdefault(need, []).append(one.rule or "initially")
    return [
        (claim, ", ".join(f"{need} ({', '.join(rules)})" for need, rules in row.items()))
        for claim, row in needs.items()
    ]


def _tell(path: Path, shown: Shown, smt: Path | None, begun: float, json_to: str | None) -> None:
    from streamproof.report.console import print_lines
    from streamproof.traces.lines import line

    stream = people(json_to)
    width = max(len(name) for name in shown.header["claims"])
    lines = [line(f"{name:{width}}  {verdict}", indent=2) for name, verdict in shown.header["claims"].items()]
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
    asked = visible(shlex.join([shown.header["model"], *shown.header["options"]]))
    stream.write(f"accepted: {path} shows this of {asked} ({time.perf_counter() - begun:.2f} s)\n")
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
