"""``streamproof verify-certificate``: accept or reject the evidence for verdicts, without any engine."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamproof.base.errors import Exit, StreamproofError, UsageError, reject
from streamproof.base.files import GENERATOR, SCRIPTS, SMTLIB, Content, Form, expect_writable, write_all
from streamproof.base.reading import MOST_EVIDENCE, parsed, read_regular
from streamproof.base.text import Line, encodable, line, visible
from streamproof.cli.certificate import ANY
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import amount, json_option, path_option
from streamproof.cli.verbs import SecondsType, Verb
from streamproof.language.declare.model import limits_text
from streamproof.model_registry import find, is_registered
from streamproof.selection import Selection, select
from streamproof.system.model import System
from streamproof.transform.unbounded import Parametric

if TYPE_CHECKING:
    from streamproof.any.certify.verifier import Discharged, Shown

T = TypeVar("T")
SOLVER_NAMES = {"z3": "Z3", "cvc5": "cvc5"}
MISSING = "cvc5 is not installed, so there is no second solver; pip install cvc5 into the environment of streamproof"


@click.command(
    "verify-certificate",
    cls=Verb,
    short_help="Accept or reject the evidence for verdicts.",
    example="streamproof verify-certificate failover.certificate",
)
@click.argument("certificate", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--model", metavar="MODEL", help="Model to check the certificate against; required unless it is bundled.")
@click.option(
    "--unpacked",
    "most",
    callback=amount,
    metavar="SIZE",
    help="Largest size of the unpacked evidence.  [default: 32MB]",
)
@path_option(
    "--smt",
    "DIR",
    "Write the obligations of a proof with --any as SMT-LIB files, for other solvers.",
    file_okay=False,
)
@click.option(
    "--query-timeout",
    type=SecondsType(),
    metavar="SECONDS",
    help="Limit for one obligation of a proof with --any and one solver.  [default: 60]",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the outcome.")
@json_option
def command(
    certificate: Path,
    model: str | None,
    smt: Path | None,
    query_timeout: float | None,
    quiet: bool,
    json_to: str | None,
    most: int | None,
) -> int:
    """Check the certificate FILE of check or prove by a small program that shares no engine with them.

    FILE is untrusted: it causes no import. Only a bundled model is loaded by the name in FILE; --model names any other. The
    checksum of FILE detects damage, not forgery, because anyone can compute it.

    Ends with 0 when every claim is proved, with 161 and the reason otherwise, and with 162 when two solvers disagree. It
    runs at the speed of the interpreter: some thousand states per second.
    """
    from streamproof.report.console import print_lines

    begun = time.perf_counter()
    expect_json_writable(json_to, "streamproof.verify-certificate/1")
    if smt is not None:
        expect_writable(smt, None)
    most = MOST_EVIDENCE if most is None else most
    data = read_regular(certificate, 2 * most)
    shown: Shown | None = None
    if not (for_any := _is_for_any(data)) and (smt is not None or query_timeout is not None):
        given = [name for name, value in (("--smt", smt), ("--query-timeout", query_timeout)) if value is not None]
        raise UsageError(
            f"{certificate} is not a certificate of a proof with --any", remedy=f"leave out {' and '.join(given)}"
        )
    document = {"schema": "streamproof.verify-certificate/1", "file": str(certificate), "bytes": len(data)}
    try:
        with Status(live=not quiet) as status:
            if for_any:
                from streamproof.any.certify.solvers import PATIENCE
                from streamproof.any.certify.verifier import verify_any

                seconds = PATIENCE if query_timeout is None else query_timeout
                shown = verify_any(data, partial(_parametric, model=model), status, seconds=seconds, most=most)
                header = shown.header
            else:
                from streamproof.certify.verifier import verify

                header = verify(data, partial(_system, model=model), status, most)
            header["model"] = model or header["model"]  # the model it was checked against
            if smt is not None and shown is not None:
                _write_scripts(shown, smt)
    except StreamproofError as error:
        if error.exit_code in (Exit.REJECTED, Exit.DISAGREE):
            write_json({**document, **_verdict(None, error, begun)}, json_to)
        raise
    graph = {} if shown is None else {"lemma_graph": _lemma_graph(shown)}
    write_json({**document, **_verdict(header, None, begun), **graph}, json_to)
    stream = people(json_to)
    width = max((len(name) for name in header["claims"]), default=0)

    def write(text: str) -> None:
        stream.write(encodable(text, stream))

    for name, verdict in header["claims"].items():
        write(f"  {name:{width}}  {verdict}\n")
    if (text := header["constraint"]) is not None:
        within = f"the claims are within the constraint {text}: no step from a state outside is followed"
        if shown is None:
            write(f"{within}\n")
        else:
            print_lines([line(within)], stream)
    if (counts := header["counts"]) is not None:
        write(
            f"{counts['generated']} states generated, {counts['distinct']} distinct states, depth {counts['depth']}\n"
        )
    if shown is not None:
        print_lines(_shown_lines(shown, smt), stream)
    words = [header["model"], *header["options"]]
    subject = visible(" ".join(words) if shown is None else shlex.join(words))
    write(f"accepted: {certificate} shows this of {subject} ({time.perf_counter() - begun:.2f} s)\n")
    stream.flush()
    return Exit.HOLDS


def _is_for_any(data: bytes) -> bool:
    """Whether the (unchecked) header of a certificate names free parameters."""
    try:
        return ANY in parsed(data.split(b"\n", 2)[1].decode())["options"]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return False


def _system(header: Mapping[str, Any], model: str | None) -> System:
    """The system of a certificate, from the model it names or from `model`."""

    def system(selection: Selection, _: Mapping[str, Sequence[str]]) -> System:
        if header["options"] != [*selection.options]:
            reject("its options are not in the form in which check writes them")
        return selection.system()

    return _described(header, model, ("--variant", "--size", "-p"), system)


def _parametric(header: Mapping[str, Any], model: str | None) -> Parametric:
    """The parametric system of a certificate, from the model it names or from `model`.

    The options must be in the normal form written by `streamproof prove`, as they are printed.
    """

    def made(selection: Selection, given: Mapping[str, Sequence[str]]) -> Parametric:
        (free,) = given[ANY]
        parametric = selection.target.parametric(
            selection.variant, selection.given, [name for name in free.split(",") if name]
        )
        if header["options"] != [*selection.options, ANY, ",".join(f.name for f in parametric.free)]:
            reject("its options are not in the form in which prove writes them")
        return parametric

    return _described(header, model, ("--variant", "--size", "-p", ANY), made)


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


def _verdict(header: Mapping[str, Any] | None, error: StreamproofError | None, begun: float) -> dict[str, Any]:
    """The result as JSON data; without `header` for a rejected certificate."""
    known = header or {}
    return {
        "accepted": error is None,
        "because": None if error is None else error.message,
        **{name: known.get(name) for name in ("model", "options", "claims", "constraint", "counts")},
        "seconds": time.perf_counter() - begun,
        "exit_code": int(Exit.HOLDS if error is None else error.exit_code),
    }


def _write_scripts(shown: Shown, folder: Path) -> None:
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


def _lemma_graph(shown: Shown) -> dict[str, Any]:
    return {
        "schema": "streamproof.lemma-graph/1",
        "any": {name: [least, most] for name, least, most in shown.free},
        "lemmas": dict(shown.lemmas),
        "solvers": dict(shown.solvers),
        "obligations": [_obligation(one) for one in shown.obligations],
    }


def _shown_lines(shown: Shown, smt: Path | None) -> Iterator[Line]:
    """What a certificate for every size has besides its claims: parameters, lemmas, what needs what, and the solvers."""
    if shown.free:
        every = ", ".join(f"{name} ({limits_text(least, most)})" for name, least, most in shown.free)
        yield line(f"for every value of {every}")
    if shown.lemmas:
        yield line("Lemmas:")
        yield from (line(f"{name}: {text}", indent=2, hang=4) for name, text in shown.lemmas)
    yield line("Lemma graph:")
    needs: dict[str, dict[str, list[str]]] = {}
    for one in shown.obligations:
        row = needs.setdefault(one.claim, {})
        for need in one.needs or ("nothing",):
            row.setdefault(need, []).append(one.rule or "initially")
    for claim, row in needs.items():
        text = ", ".join(f"{need} ({', '.join(rules)})" for need, rules in row.items())
        yield line(f"{claim}  needs: {text}", indent=2, hang=4)
    for solver, version in shown.solvers.items():
        done = sum(one.answers[solver] == "unsat" for one in shown.obligations)
        yield line(f"{SOLVER_NAMES[solver]} {version}: {done} of {len(shown.obligations)} obligations discharged")
    for one in shown.by_one:
        by = ", ".join(SOLVER_NAMES[solver] for solver, answer in one.answers.items() if answer == "unsat")
        yield line(f"discharged by {by} only: {one.claim} {f'after {one.rule}' if one.rule else 'initially'}")
    if "cvc5" not in shown.solvers:
        yield line(f"shown by Z3 alone: {MISSING}")
    if smt is not None:
        yield line(f"scripts: {smt}")
