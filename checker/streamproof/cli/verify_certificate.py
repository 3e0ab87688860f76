"""``streamproof verify-certificate``: accept or reject the evidence for verdicts, without any engine."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamproof.api.certificates import is_for_any, parametric, system
from streamproof.base.errors import Exit, StreamproofError, UsageError
from streamproof.base.files import GENERATOR, SCRIPTS, SMTLIB, Content, Form, expect_writable, write_all
from streamproof.base.options import flag, parse_bytes
from streamproof.base.reading import MOST_EVIDENCE, read_regular
from streamproof.base.records import dataclass
from streamproof.base.text import Line, encodable, line, visible
from streamproof.certify.verifier import verify
from streamproof.cli.arguments import argument, json_flag, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.language.declare.model import limits_text
from streamproof.report.console import print_lines

if TYPE_CHECKING:
    from streamproof.any.certify.verifier import Discharged, Shown

SOLVER_NAMES = {"z3": "Z3", "cvc5": "cvc5"}
MISSING = "cvc5 is not installed, so there is no second solver; pip install cvc5 into the environment of streamproof"


@dataclass(frozen=True, slots=True)
class VerifyArguments:
    """The arguments of the verb."""

    certificate: Path = argument(type=click.Path(path_type=Path), metavar="FILE")
    model: str | None = flag("Model to check the certificate against; required unless it is bundled.", unit="MODEL")
    most: int | None = flag(
        "Largest size of the unpacked evidence.  [default: 32MB]",
        "--unpacked", kind="str", unit="SIZE", read=parse_bytes,
    )  # fmt: skip
    smt: Path | None = flag(
        "Write the obligations of a proof with --any as SMT-LIB files, for other solvers.",
        unit="DIR",
        path={"file_okay": False},
    )
    query_limit: float | None = flag(
        "Limit for one obligation of a proof with --any and one solver.  [default: 60]", "--query-timeout"
    )
    quiet: bool = flag("No progress, only the outcome.", "-q", "--quiet")
    json_to: str | None = json_flag()


@verb(
    "verify-certificate",
    VerifyArguments,
    example="streamproof verify-certificate failover.certificate",
)
def command(given: VerifyArguments) -> int:
    """Check the certificate FILE of check or prove by a small program that shares no engine with them.

    FILE is untrusted: it causes no import. Only a bundled model is loaded by the name in FILE; --model names any other. The
    checksum of FILE detects damage, not forgery, because anyone can compute it.

    Ends with 0 when every claim is proved, with 161 and the reason otherwise, and with 162 when two solvers disagree. It
    runs at the speed of the interpreter: some thousand states per second.
    """
    begun, certificate, model, smt, json_to = (
        time.perf_counter(),
        given.certificate,
        given.model,
        given.smt,
        given.json_to,
    )
    expect_json_writable(json_to, "streamproof.verify-certificate/1")
    if smt is not None:
        expect_writable(smt, None)
    most = MOST_EVIDENCE if given.most is None else given.most
    data = read_regular(certificate, 2 * most)
    shown: Shown | None = None
    if not (for_any := is_for_any(data)) and (smt is not None or given.query_limit is not None):
        limits = {"--smt": smt, "--query-timeout": given.query_limit}
        names = " and ".join(name for name, value in limits.items() if value is not None)
        raise UsageError(f"{certificate} is not a certificate of a proof with --any", remedy=f"leave out {names}")
    document = {"schema": "streamproof.verify-certificate/1", "file": str(certificate), "bytes": len(data)}
    try:
        with Status(live=not given.quiet) as status:
            if for_any:
                from streamproof.any.certify.verifier import verify_any  # which loads the solvers

                shown = verify_any(data, partial(parametric, model=model), status, seconds=given.query_limit, most=most)
                header = shown.header
            else:
                header = verify(data, partial(system, model=model), status, most)
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
    yield from (line(f"{name} by the rank {rank}", hang=2) for name, rank in shown.ranks)
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
