"""``streamproof verify-certificate``: accept or reject the evidence for verdicts, without any engine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from streamproof.cli.certificate_any import constraint_lines, described, is_for_any, verification_json, verify_for_any
from streamproof.cli.engines import Status, amount
from streamproof.cli.outputs import expect_json_writable, people, write_json
from streamproof.cli.selection import Selection, json_option
from streamproof.cli.verbs import SecondsType, Verb
from streamproof.system.errors import Exit, StreamproofError, UsageError
from streamproof.system.files import expect_writable
from streamproof.system.model import System
from streamproof.system.reading import MOST_EVIDENCE, read_regular
from streamproof.system.text import visible


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
@click.option(
    "--smt",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the obligations of a proof with --any as SMT-LIB files, for other solvers.",
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
    from streamproof.certify.verifier import verify
    from streamproof.system.errors import Rejected

    begun = time.perf_counter()
    expect_json_writable(json_to, "streamproof.verify-certificate/1")
    if smt is not None:
        expect_writable(smt, None)
    most = MOST_EVIDENCE if most is None else most
    data = read_regular(certificate, 2 * most)
    if is_for_any(data):
        with Status(live=not quiet) as status:
            print_accepted = verify_for_any(certificate, data, model, smt, query_timeout, status, json_to, most)
        return print_accepted()
    if smt is not None or query_timeout is not None:
        raise UsageError(
            f"{certificate} is not a certificate of a proof with --any", remedy="leave out --smt and --query-timeout"
        )
    with Status(live=not quiet) as status:
        try:
            header = verify(data, lambda header: _system(header, model), status, most)
            header["model"] = model or header["model"]  # the model it was checked against
        except StreamproofError as error:
            if json_to is not None and isinstance(error, Rejected):
                write_json(verification_json(certificate, data, None, error, begun), json_to)
            raise
    if json_to is not None:
        write_json(verification_json(certificate, data, header, None, begun), json_to)
    _print_accepted(certificate, header, begun, json_to)
    return Exit.HOLDS


def _system(header: Mapping[str, Any], model: str | None) -> System:
    """The system of a certificate, from the model it names or from `model`."""
    from streamproof.system.errors import reject

    def system(selection: Selection, _: Mapping[str, Sequence[str]]) -> System:
        if header["options"] != [*selection.options]:
            reject("its options are not in the form in which check writes them")
        return selection.system()

    return described(header, model, ("--variant", "--size", "-p"), system)


def _print_accepted(path: Path, header: Mapping[str, Any], begun: float, json_to: str | None) -> None:
    stream = people(json_to)
    width = max((len(name) for name in header["claims"]), default=0)
    for name, verdict in header["claims"].items():
        stream.write(f"  {name:{width}}  {verdict}\n")
    stream.writelines(f"{text}\n" for text in constraint_lines(header))
    counts = header["counts"]
    if counts is not None:
        stream.write(
            f"{counts['generated']} states generated, {counts['distinct']} distinct states, depth {counts['depth']}\n"
        )
    subject = visible(" ".join([header["model"], *header["options"]]))
    stream.write(f"accepted: {path} shows this of {subject} ({time.perf_counter() - begun:.2f} s)\n")
    stream.flush()
