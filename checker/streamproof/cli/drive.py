"""``streamproof drive``: call an implementation step by step, and compare what it does with a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamproof import __version__
from streamproof.base.files import DRIVE_LOG, ITF, JUNIT, PYTEST, expect_writable
from streamproof.base.options import flag
from streamproof.base.records import dataclass
from streamproof.cli.arguments import json_flag, part, verb
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import ModelArguments
from streamproof.driving.connection import adapter_source
from streamproof.driving.drive import USUAL, DriveOptions, drive, record
from streamproof.driving.lines import drive_lines
from streamproof.driving.outputs import DriveFiles
from streamproof.driving.suite import MOST_STATES, drive_suite, occurring, reachable, scripts_of_suite
from streamproof.driving.testing import scripts_of, subject_of
from streamproof.report.console import print_lines
from streamproof.system.model import parameter_json

SCHEMA = "streamproof.driven/1"


@dataclass(frozen=True, slots=True)
class DriveArguments:
    """The arguments of the verb."""

    chosen: ModelArguments = part(ModelArguments, "model", "variant", "size", "parameters")
    adapter: str = flag(
        "The adapter: a command line, module:Class or file.py:Class; --adapter 'java Lease.java'.",
        unit="COMMAND",
        required=True,
    )
    scripts: Path | None = flag(
        "Run the scripts of this event log, or this trace in ITF, instead of a suite of the model.",
        unit="FILE",
    )
    no_suite: bool = flag("Random walks only.", default=False)
    options: DriveOptions = part(DriveOptions, usual=USUAL)
    itf: Path | None = flag("Write the model's side of a difference as ITF.", unit="FILE")
    log: Path | None = flag("Write what the implementation did in the last script as an event log.", unit="FILE")
    pytest: Path | None = flag("Write a difference as a test for pytest.", unit="FILE")
    junit: Path | None = flag("Also write the result as JUnit XML.", unit="FILE")
    json_to: str | None = json_flag()


@verb(
    "drive",
    DriveArguments,
    example="streamproof drive examples/lease/lease.py --adapter examples/lease/adapter.py:LeaseAdapter",
)
def command(given: DriveArguments) -> int:
    """Drive an implementation of MODEL through an adapter, and compare each answer and each observed value with the model.

    Runs a suite of scripts that covers the actions and refusals of the model, if its state space is small, and then random
    walks. The implementation may choose among the steps that the model has, and take steps on its own; it is followed. Ends
    at the first difference with 161, after shortening its script. Ends with 160 if nothing was observed, an action never
    happened, a script could not be decided, or a limit was reached. docs/how-to-drive.md describes adapters.
    """
    for path, form in ((given.itf, ITF), (given.log, DRIVE_LOG), (given.pytest, PYTEST), (given.junit, JUNIT)):
        if path is not None:
            expect_writable(path, form)
    expect_json_writable(given.json_to, SCHEMA)
    selection = given.chosen.select()
    subject = subject_of(selection)
    system = subject.system
    source = adapter_source(given.adapter, given.options.answer_seconds)
    possible, states = None, None
    with Status() as status:
        if given.scripts is not None:
            scripts = scripts_of(given.scripts, subject)
        elif given.no_suite:
            scripts = []
        else:
            status("making a suite")
            suite = drive_suite(subject, MOST_STATES)
            scripts = scripts_of_suite(suite)
            possible, states = occurring(subject, scripts), reachable(subject, suite)
        found = drive(subject, source, scripts, given.options, possible, states, status)
    files = DriveFiles(given.itf, given.log, given.pytest, given.junit)
    earlier = files.write(found, given.chosen.model, selection)
    chosen = {
        "model": system.name,
        "variant": system.variant,
        "parameters": {name: parameter_json(value) for name, value in system.parameters.items()},
    }
    code = found.exit_code
    write_json(
        {"schema": SCHEMA, "version": __version__, "exit_code": int(code), **chosen, **record(found)}, given.json_to
    )
    out = people(given.json_to)
    print_lines(drive_lines(found), out)
    for path in earlier:
        print(f"{path} is of an earlier difference, and was left as it is", file=out)
    print(f"{found.answer} (exit code {int(code)})", file=out)
    if found.difference is not None or found.answer == "inconclusive":
        print("reproduce: " + selection.command("drive", *_words(given, found.seed)), file=out)
    return code


def _words(given: DriveArguments, seed: int) -> Iterator[str]:
    """The options that choose the calls."""
    yield from ("--adapter", given.adapter)
    if given.scripts is not None:
        yield from ("--scripts", str(given.scripts))
    if given.no_suite:
        yield "--no-suite"
    for name in ("walks", "steps"):
        number = getattr(given.options, name)
        if number != getattr(USUAL, name):
            yield from (f"--{name}", str(number))
    for action in given.options.without or ():
        yield from ("--without", action)
    yield from ("--seed", str(seed))
