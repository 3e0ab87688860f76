"""The violations that the bundled specifications expect, found again, and the files with their traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from streamproof.api.replay import confirmed
from streamproof.base.errors import StreamproofError
from streamproof.base.files import SUFFIXES, plain_name, write_all
from streamproof.base.options import SearchOptions
from streamproof.base.reading import read_text
from streamproof.base.records import dataclass, replace
from streamproof.engines.registry import CHECKS
from streamproof.exchange.itf.reading import read_meta
from streamproof.exchange.itf.writing import itf_text
from streamproof.model_registry import bundled, find
from streamproof.report.evidence import Evidence, confirm
from streamproof.selection import Selection
from streamproof.system.model import System, parameter_json
from streamproof.system.verdict import Verdict

REFERENCE = "reference."
"""Prefix of the names of bundled models from the literature; their counterexamples are published elsewhere."""
MODEL_ITSELF = "model"
"""The folder of violations of the model itself, in place of a variant's name."""


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


def promised(status: Callable[[str], None], problems: list[str]) -> Iterator[PromisedViolation]:
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


def leftover(out: Path, files: set[Path]) -> set[Path]:
    """Files of bundled protocols that belong to no expected violation."""
    found: set[Path] = set()
    for name in bundled():
        found |= {*(out / name).rglob("*.itf.json"), *(out / name).rglob("*.txt")}
    return found - files
