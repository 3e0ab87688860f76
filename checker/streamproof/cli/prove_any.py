"""``streamproof prove --any``: prints proofs for every value of parameters, and what small instances show of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.any.every_size import AnyProof, elsewhere, prove_for_every_size
from streamproof.base.options import SearchOptions
from streamproof.base.text import BLANK, Line, StyledText, line, parameters_text
from streamproof.cli.answer import Request, certificate_json, print_certificate, print_left_out
from streamproof.cli.outputs import people
from streamproof.cli.ticking import Ticking
from streamproof.engines.proving import seconds_of
from streamproof.report.console import print_lines
from streamproof.system.verdict import Verdict

if TYPE_CHECKING:
    from streamproof.any.engine.showing import ParametricCti

MAX_SHOWN = 2
"""Largest number of counterexamples to induction that are printed."""


def answer_any(
    request: Request,
    free: Sequence[str],
    left_out: Sequence[str],
    options: SearchOptions,
    certificate: Path | None = None,
) -> int:
    """Prove the properties of `options` for every value of `free`, search small instances for the others, and print all."""
    selection = request.selection
    remedies = {p.name: elsewhere(selection, p.kind, free) for p in selection.listed() if p.name in left_out}
    with Ticking(live=not request.output.quiet) as progress:
        result = prove_for_every_size(
            selection,
            free,
            tuple(options.properties or ()),
            query_limit=options.query_limit,
            time_limit=seconds_of(options.time_limit),
            on_progress=progress,
        )
    more = _more(result, left_out)
    if certificate is not None:
        from streamproof.api.certificates import certify_proved_any

        with Ticking(live=not request.output.quiet) as progress:
            written = certify_proved_any(certificate, selection, result, progress)
        more["certificate"] = certificate_json(written) if written.claims else None
    if not request.output.quiet:
        _show(result, request.output.json_to)
    code = request.answer(result.system, result, more)
    for remedy in dict.fromkeys(remedies.values()):
        print_left_out([name for name in left_out if remedies[name] == remedy], request.output.json_to, remedy)
    if certificate is not None:
        print_certificate(written, selection, request.output.json_to, lack="")
    return code


def _more(result: AnyProof, left_out: Sequence[str]) -> dict[str, Any]:
    """The part of the JSON that only proofs for every size have."""
    parametric, proof, same = result.parametric, result.proof, result.compared
    assert parametric is not None, "a proof is of a model"
    return {
        "any": {f.name: [f.least, f.most] for f in parametric.free},
        "readings_compared": {
            "values": [dict(v) for v in same.values],
            "runs": same.runs,
            "refused_by_the_model": [dict(v) for v in same.refused],
        },
        "induction_checked": [dict(v) for v in result.induction_checked],
        "instances_searched": [
            {"values": dict(s.values), "states": s.states, "complete": s.complete} for s in result.instances.searched
        ],
        "lemmas": [
            *({"name": n, "verdict": "holds", "because": "by induction", "used": True} for n in proof.lemmas),
            *({"name": n, "verdict": "holds", "because": "discovered", "used": True} for n in proof.found),
        ],
        "queries": proof.queries,
        "counterexamples_to_induction": [
            {
                "of": cti.of,
                "k": 1,
                "because": cti.because,
                "parameters": dict(cti.parameters),
                "first": dict(cti.before),
                "steps": [] if cti.step is None else [cti.step],
            }
            for cti in proof.ctis.values()
        ],
        "not_for_this_engine": list(left_out),
    }


def _show(result: AnyProof, json_to: str | None) -> None:
    """Print the discovered lemmas, and the counterexamples to induction of open properties."""
    proof, small = result.proof, result.instances
    lines: list[Line] = []
    if proof.found:
        lines.append(line(StyledText("Discovered, and proved with the properties:", "title")))
        lines += [line(name, indent=2, hang=2) for name in proof.found]
        lines.append(BLANK)
    open_ones = [c for n, c in proof.ctis.items() if small.first(n, Verdict.VIOLATED) is None]
    for cti in open_ones[:MAX_SHOWN]:
        lines += [*_not_inductive(cti), BLANK]
    print_lines(lines, people(json_to))


def _not_inductive(cti: ParametricCti) -> Iterator[Line]:
    yield line(StyledText("Not inductive: ", "title"), StyledText(cti.of, "failed"))
    at = parameters_text(dict(cti.parameters))
    if cti.step is None:
        yield line(f"In an initial state{f', at {at}' if at else ''}:", indent=2)
    else:
        where = f", at {at}" if at else ""
        yield line(f"From this state{where}, which satisfies all assumptions and may be unreachable:", indent=2)
    for name, value in cti.before:
        yield line(StyledText(name, "place"), f" = {value}", indent=6)
    if cti.step is not None:
        yield line(StyledText(f"{1:>4}", "faint"), "  ", StyledText(cti.step, "action"), hang=8)
        before = dict(cti.before)
        for name, value in cti.after:
            if before.get(name) != value:
                yield line(StyledText(name, "place"), f": {before.get(name)} -> {value}", indent=8)
    yield line(StyledText(cti.because, "failed"), indent=2, hang=2)
