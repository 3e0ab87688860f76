"""``streamproof counterexamples``: find every violation expected by the bundled specifications, and write its trace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from streamproof import __version__
from streamproof.api.replay import confirmed
from streamproof.base.errors import Exit, InputError, StreamproofError
from streamproof.base.files import SUFFIXES, expect_writable, plain_name, write_all
from streamproof.base.options import SearchOptions
from streamproof.base.reading import read_text
from streamproof.base.records import dataclass, replace
from streamproof.base.text import visible
from streamproof.cli.evidence import Evidence, confirm
from streamproof.cli.outputs import Status, expect_json_writable, people, write_json
from streamproof.cli.selection import json_option
from streamproof.cli.verbs import Verb
from streamproof.engines.registry import CHECKS
from streamproof.exchange.itf.reading import read_meta
from streamproof.exchange.itf.writing import itf_text
from streamproof.model_registry import bundled, find
from streamproof.selection import Selection
from streamproof.system.model import System, parameter_json
from streamproof.system.verdict import Verdict

REFERENCE = "reference."
"""Prefix of the names of bundled models from the literature; their counterexamples are published elsewhere."""


SCHEMA = "streamproof.counterexamples/1"
MODEL_ITSELF = "model"
"""The folder of violations of the model itself, in place of a variant's name."""


@click.command(
    "counterexamples",
    cls=Verb,
    short_help="Find every expected violation again.",
    example="streamproof counterexamples --out counterexamples --check",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("counterexamples"),
    show_default=True,
    metavar="DIR",
    help="Folder of the counterexamples.",
)
@click.option("--check", "checking", is_flag=True, help="Check the existing files; write nothing.")
@json_option
def command(out: Path, checking: bool, json_to: str | None) -> int:
    """Find each expected violation of each bundled protocol again, and write MODEL/VARIANT/PROPERTY.itf.json and .txt.

    Equal specifications give equal bytes. With --check, every existing trace must replay, show its violation and be as
    short as possible, its text must be current, and no file may be missing or superfluous; otherwise the exit code is 161.
    """
    expect_json_writable(json_to, SCHEMA)
    if checking and not out.is_dir():
        why = "is a file" if out.exists() else "does not exist"
        raise InputError(f"the folder {out} {why}", remedy="name a folder written by streamproof counterexamples")
    if not checking:
        expect_writable(out, None)
    problems: list[str] = []
    files: set[Path] = set()
    entries: list[dict[str, Any]] = []
    with Status() as status:
        for entry in _entries(status, problems):
            files |= {entry.path(out, ".itf.json"), entry.path(out, ".txt")}
            entries.append(entry.document(out))
            if checking:
                problems += entry.problems(out)
            else:
                entry.write(out)
    for path in sorted(_leftover(out, files)):
        problems.append(f"{path}: no specification expects this violation; remove it")
    for problem in problems:
        sys.stderr.write(f"{visible(problem)}\n")
    done = "checked" if checking else "written"
    people(json_to).write(f"{len(files) // 2} counterexamples {done} in {out}, {len(problems)} problems\n")
    code = Exit.REJECTED if problems else Exit.HOLDS
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": int(code),
        "out": str(out),
        "written": not checking,
        "counterexamples": entries,
        "problems": problems,
    }
    write_json(document, json_to)
    return code


@dataclass(frozen=True, slots=True)
class PromisedViolation:
    """One violation expected by a specification, with its trace."""

    protocol: str
    variant: str | None
    system: System
    evidence: Evidence

    def path(self, out: Path, suffix: str) -> Path:
        """The file of this violation under `out`."""
        parts = (self.protocol, self.variant or MODEL_ITSELF, f"{self.evidence.name}{suffix}")
        return out.joinpath(*map(plain_name, parts))

    def document(self, out: Path) -> dict[str, Any]:
        """The JSON of the violation."""
        return {
            "model": self.protocol,
            "variant": self.variant,
            "property": self.evidence.name,
            "length": len(self.evidence.trace.steps),
            "file": str(self.path(out, ".itf.json")),
        }

    def write(self, out: Path) -> None:
        """Write the two files, each atomically."""
        itf = itf_text(self.system, self.evidence.trace, self.evidence.prop)
        texts = {".itf.json": itf, ".txt": self.evidence.text()}
        write_all([(self.path(out, suffix), text, SUFFIXES[suffix]) for suffix, text in texts.items()])

    def problems(self, out: Path) -> Iterator[str]:
        """The problems of the existing files."""
        path, text = self.path(out, ".itf.json"), self.path(out, ".txt")
        if not text.is_file():
            yield f"{text}: missing"
        if not path.is_file():
            yield f"{path}: missing"
            return
        try:
            meta = read_meta(path)
            trace = confirmed(path, self.system, self.evidence.name).trace
        except StreamproofError as error:
            yield str(error) if str(path) in str(error) else f"{path}: {error}"
            return
        parameters = {name: parameter_json(value) for name, value in self.system.parameters.items()}
        named = (meta.model, meta.variant, meta.property, meta.parameters)
        if named != (self.system.name, self.variant, self.evidence.name, parameters):
            yield f"{path}: its #meta names another model, variant, property or other parameters"
        found, least = len(trace.steps), len(self.evidence.trace.steps)
        if found != least:
            yield f"{path}: {found} steps, the shortest trace has {least}"
        elif text.is_file() and read_text(text) != replace(self.evidence, trace=trace).text():
            yield f"{text}: differs from the text of the trace beside it; run streamproof counterexamples again"


def _entries(status: Status, problems: list[str]) -> Iterator[PromisedViolation]:
    """All expected violations with traces; violations that are not found are added to `problems`."""
    for name in bundled():
        if name.startswith(REFERENCE):
            continue
        target = find(name)
        for variant in (None, *target.spec.model.variants):
            promised = tuple(
                p.name for p in target.properties(variant) if target.spec.expectation(variant, p.name) == "violated"
            )
            if promised:
                status(f"{name} {variant or ''}")
                yield from _violations(Selection(target, variant, {}, promised), problems)


def _violations(selection: Selection, problems: list[str]) -> Iterator[PromisedViolation]:
    system = selection.system()
    words = () if selection.variant is None else ("--variant", selection.variant)
    again = Selection(selection.target, selection.variant, options=words)
    result = CHECKS["explicit"].run(system, SearchOptions(selection.properties))
    if result.interrupted:
        raise KeyboardInterrupt
    for finding in result.findings:
        if finding.verdict is not Verdict.VIOLATED:
            problems.append(f"{selection.name}: {finding.property} {finding.verdict.value}, expected to be violated")
            continue
        reproduce = again.only(finding.property).command("check")
        evidence = confirm(system, finding, "explicit", reproduce)
        # A violated reachability property has no trace.
        if evidence is not None:
            yield PromisedViolation(selection.target.text, selection.variant, system, evidence)


def _leftover(out: Path, files: set[Path]) -> set[Path]:
    """Files of bundled protocols that belong to no expected violation."""
    found: set[Path] = set()
    for name in bundled():
        found |= {*(out / name).rglob("*.itf.json"), *(out / name).rglob("*.txt")}
    return found - files
