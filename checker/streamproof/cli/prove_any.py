"""``streamproof prove --any``: proofs for every value of parameters; small instances for properties that are not proved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof import interrupts
from streamproof.base.errors import Exit, StreamproofError, UsageError
from streamproof.base.options import SearchOptions, timely
from streamproof.base.records import dataclass, replace
from streamproof.base.text import BLANK, Line, StyledText, line, parameters_text
from streamproof.cli.answer import Request, print_left_out
from streamproof.cli.outputs import people
from streamproof.cli.ticking import Ticking
from streamproof.engines.proving import with_vacuity
from streamproof.language.declare.model import limits_text
from streamproof.system.expr import variables
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import CheckResult, Finding, Seconds, Verdict, number_of
from streamproof.transform.ground import weight

if TYPE_CHECKING:
    from streamproof.any.engine import AnySize
    from streamproof.any.engine.proof import Stage
    from streamproof.any.engine.showing import ParametricCti
    from streamproof.any.readings import GroundingReport
    from streamproof.cli.selection import Selection
    from streamproof.transform.unbounded import Parametric

COMPARING = "comparing the symbolic reading with concrete ones"
FOR_EVERY_SIZE = (Kind.INVARIANT, Kind.STEP, Kind.DEADLOCK)
INSTANCES = 24
"""Largest number of instances searched besides a proof."""
MOST_STATES = 20_000
"""Largest number of states of one instance."""
DEEPEST = 300
"""Largest number of levels of one instance."""
ALL_STATES = 150_000
"""Largest number of states of all instances."""
MOST_STARTS = 100_000
"""Largest number of combinations of initial values of one instance; the initial condition is evaluated for each."""
MAX_SHOWN = 2
SIZES_SHOWN = 3
"""Largest number of instances listed for a property that holds there and is not proved."""


def answer_any(
    request: Request,
    free: Sequence[str],
    chosen: Sequence[str],
    left_out: Sequence[str],
    query_timeout: float | None,
    timeout: float | None,
    certificate: Path | None = None,
) -> int:
    """Prove properties for every value of `free`, search small instances for the others, and print both results."""
    from streamproof.any.engine import prove_any
    from streamproof.any.readings import compare_readings
    from streamproof.cli.certificate import certificate_json, certify_proved_any, print_certificate

    selection = request.selection
    others = {p.name: elsewhere(selection, p.kind, free) for p in selection.listed() if p.kind not in FOR_EVERY_SIZE}
    for listed in selection.listed():
        if listed.name in chosen and listed.name in others:
            what = "proved for every size" if free else "proved by induction"
            raise UsageError(
                f"{listed.name} is of kind {listed.kind.value}, which is not {what}", remedy=others[listed.name]
            )
    begun = time.perf_counter()
    parametric = selection.target.parametric(selection.variant, selection.given, free)
    properties = [parametric.system.property(name) for name in chosen]
    ready = time.perf_counter() - begun
    with Ticking(live=not request.quiet) as progress:
        with timely(COMPARING, silent=True):
            same = compare_readings(selection.target.spec, selection.variant, selection.given, parametric, progress)
        proof = prove_any(
            parametric,
            properties,
            stages(selection, parametric),
            timeout=None if query_timeout is None else int(1000 * query_timeout),
            seconds=timeout,
            on_progress=progress,
        )
        again = check_proof(selection, parametric, proof, progress)
        interrupted = proof.stopped == "interrupted"
        small = (
            Small([], None) if interrupted else search_instances(selection, parametric, proof.proved, chosen, progress)
        )
    findings = tuple(_finding(parametric, proof, small, p) for p in properties)
    notes = (*_notes(proof), *_compared(same, again, small))
    seconds = Seconds(0.0, ready, proof.seconds)
    result = CheckResult(findings, interrupted=interrupted, seconds=seconds, notes=notes)
    more = _more(parametric, proof, same, again, small, left_out)
    if certificate is not None:
        with Ticking(live=not request.quiet) as progress:
            written = certify_proved_any(certificate, selection, parametric, proof, findings, progress)
        more["certificate"] = certificate_json(written) if written.claims else None
    if not request.quiet:
        _show(proof, small, request.json_to)
    system = parametric.system if small.violating is None else small.violating
    code = request.answer(system, result, more)
    for remedy in dict.fromkeys(others[name] for name in left_out):
        print_left_out([name for name in left_out if others[name] == remedy], request.json_to, remedy)
    if certificate is not None:
        print_certificate(written, selection, request.json_to, lack="")
    return code


def elsewhere(selection: Selection, kind: Kind, free: Sequence[str]) -> str:
    """What decides a property of a kind that an induction over unbounded integers, or for every value of `free`, does not
    support."""
    rank = "prove it by a ranking function: --property NAME --rank EXPRESSION" if kind is Kind.TEMPORAL else ""
    if selection.target.is_endless(selection.variant, selection.given):
        return rank or "declare a Range instead of Nat and Int, and use streamproof check"
    return f"use streamproof check at one size{f', or {rank}' if rank else ''}" if free else "use streamproof check"


def stages(selection: Selection, parametric: Parametric) -> list[Stage]:
    """The sources of discovered claims, in the order of use."""
    from streamproof.any.engine.affine import affine_candidates
    from streamproof.any.engine.bounds import bound_candidates
    from streamproof.any.engine.laws import drift_candidates, law_candidates

    def instance(values: Mapping[str, int]) -> System:
        return selection.target.system(selection.variant, {**selection.given, **values})

    return [
        lambda: law_candidates(parametric),
        lambda: drift_candidates(parametric),
        lambda: bound_candidates(parametric, instance),
        lambda: affine_candidates(parametric, instance),
    ]


def check_proof(
    selection: Selection, parametric: Parametric, proof: AnySize, progress: Callable[[str], None] = lambda _: None
) -> tuple[Mapping[str, int], ...]:
    """Check the claims of a proof at small values of the free parameters; returns the values. Raises `NotInductive`."""
    from streamproof.any.ground_induction import check_induction
    from streamproof.any.readings import candidates

    if not proof.proved:
        return ()
    values = candidates(selection.target.spec, selection.variant, selection.given, parametric.free)
    return check_induction(parametric, proof.claims, values, progress)


# --- small instances


class ProofRefuted(StreamproofError):
    """A property was proved for every size, and a behaviour of one size violates it: a defect."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class Searched:
    """A searched instance: the values of the free parameters, the findings, and the extent of the search.

    `vacuous`: as `Exploration.vacuity`, for each property that ranges and parameters alone do not decide.
    """

    values: Mapping[str, int]
    findings: Mapping[str, Finding]
    vacuous: Mapping[str, bool | None]
    states: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Small:
    """The searched instances. `violating`: the values at which a property is violated."""

    searched: list[Searched]
    violating: System | None

    def holds_at(self, name: str) -> tuple[Mapping[str, int], ...]:
        """The values at which a property holds."""
        return tuple(
            s.values for s in self.searched if name in s.findings and s.findings[name].verdict is Verdict.HOLDS
        )

    def examined(self, proved: Finding) -> Finding:
        """A finding for every size, which is not vacuous if it is not at some instance."""
        at = [s.vacuous[proved.property] for s in self.searched if proved.property in s.vacuous]
        if False in at or proved.is_vacuous() is not None:
            return replace(proved, vacuous=bool(proved.vacuous))
        alike = sum(vacuous is True for vacuous in at)
        seen = (
            f"vacuous at {number_of(alike, 'instance')} of {len(at):,} searched" if at else "no instance was searched"
        )
        return with_vacuity(proved, None, f"not known whether it is vacuous: {seen}")

    def first(self, name: str, verdict: Verdict) -> tuple[Mapping[str, int], Finding] | None:
        """The first instance with this verdict for a property."""
        found = ((s.values, s.findings[name]) for s in self.searched if name in s.findings)
        return next((pair for pair in found if pair[1].verdict is verdict), None)


def search_instances(
    selection: Selection,
    parametric: Parametric,
    proved: Sequence[str],
    names: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> Small:
    """Search instances up to a budget of states, until one violates a property.

    Raises `ProofRefuted` if that property was proved."""
    from streamproof.any.readings import HEAVIEST, candidates
    from streamproof.explicit import explore
    from streamproof.language.lower.conversion import first_values_at_most

    searched: list[Searched] = []
    left = ALL_STATES
    worth = candidates(selection.target.spec, selection.variant, selection.given, parametric.free)
    open_below = [f.name for f in parametric.free if f.least is None]  # no lower limit declared
    chosen = [v for v in worth if weight(parametric, v) <= HEAVIEST and all(v[n] >= 0 for n in open_below)]
    chosen = chosen[:INSTANCES] if parametric.free else []
    for values in (*chosen[:1], *sorted(chosen[1:], key=lambda v: (weight(parametric, v), sum(v.values())))):
        if left <= 0 or interrupts.left() <= 0:
            break
        progress(f"searching the instance at {parameters_text(values)}")
        try:
            with interrupts.doing("searching instances"):
                with first_values_at_most(MOST_STARTS):
                    system = selection.target.system(selection.variant, {**selection.given, **values})
                if prod(len(v.initial) for v in system.variables) > MOST_STARTS:
                    continue
                most = min(MOST_STATES, left)
                found = explore(system, SearchOptions(tuple(names), max_states=most, max_depth=DEEPEST))
        except interrupts.TimeUp:
            break
        except StreamproofError:
            continue  # the model rejects these values, or its state space is too large
        left -= found.counts.distinct
        findings = {f.property: f for f in found.findings}
        scalar = [found.search.scalarised.system.property(name) for name in findings]
        vacuous = {p.name: found.vacuity(p.name) for p in scalar if p.formula is not None or variables(p.expr)}
        searched.append(Searched(values, findings, vacuous, found.counts.distinct, found.complete))
        if proved and found.mistake is not None:
            raise _refuted("the absence of evaluation errors", values, found.mistake.error.message)
        for name in proved:
            if findings[name].verdict is Verdict.VIOLATED:
                raise _refuted(name, values, findings[name].because)
        if any(f.verdict is Verdict.VIOLATED for f in found.findings):
            return Small(searched, system)
    return Small(searched, None)


def _refuted(what: str, values: Mapping[str, int], because: str) -> ProofRefuted:
    return ProofRefuted(
        f"{what} was proved for every size, and the explicit search refutes it at {parameters_text(values)}: {because}",
        remedy="one of the two is wrong: a defect of streamproof; please report it with the model",
    )


# --- the answer


def _finding(parametric: Parametric, proof: AnySize, small: Small, prop: Property) -> Finding:
    from streamproof.explicit.findings import antecedents
    from streamproof.symbolic.goals import candid
    from streamproof.transform.unbounded import conjuncts

    if prop.name in proof.proved:
        used = [f"lemma {n}" for n in proof.lemmas]
        if proof.found:
            used.append(f"{len(proof.found)} discovered lemma{'' if len(proof.found) == 1 else 's'}")
        with_ = f", with {' and '.join(used)}" if used else ""
        because = f"by induction, for every {_every(parametric)}{with_}"
        proved = Finding(prop.name, prop.kind, Verdict.HOLDS, None, because, sizes="any")
        if prop.kind is Kind.INVARIANT and not all(antecedents(replace(prop, expr=c)) for c in conjuncts(prop.expr)):
            return replace(proved, vacuous=False)  # some conjunct is no implication
        return small.examined(candid(parametric.system, proved))
    violated = small.first(prop.name, Verdict.VIOLATED)
    if violated is not None:
        values, finding = violated
        because = f"at {parameters_text(values)}: {finding.because}"
        holds = small.holds_at(prop.name)
        return Finding(prop.name, prop.kind, Verdict.VIOLATED, finding.trace, because, sizes=holds)
    holds = small.holds_at(prop.name)
    more = f" and at {len(holds) - SIZES_SHOWN} more" if len(holds) > SIZES_SHOWN else ""
    seen = f"; it holds at {' and at '.join(map(parameters_text, holds[:SIZES_SHOWN]))}{more}" if holds else ""
    because = f"{_why_open(parametric, proof, prop.name)}{seen}"
    return Finding(prop.name, prop.kind, Verdict.INCONCLUSIVE, None, because, sizes=holds)


def _every(parametric: Parametric) -> str:
    if not parametric.free:
        return "reachable state"
    parts = [f"{f.name} ({limits_text(f.least, f.most)})" for f in parametric.free]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _why_open(parametric: Parametric, proof: AnySize, name: str) -> str:
    from streamproof.any.engine.steps import SAFE

    every = " for every size" if parametric.free else ""
    if proof.stopped is not None:
        return f"{proof.stopped} before it was proved{every}: allow more time"
    if name in proof.unknown or (SAFE in proof.unknown and name not in proof.ctis):
        hard = _hard(parametric, name)
        return f"the solver gave up on proving it{every}{hard}: raise --query-timeout, or add a lemma"
    blocking = name if name in proof.ctis else SAFE
    what = "" if blocking == name else f", as long as an evaluation error is possible ({proof.ctis[SAFE].because})"
    if blocking not in proof.ctis:
        what = ""
    elif proof.ctis[blocking].step is None:
        values = dict(proof.ctis[blocking].parameters)
        wild = [f.name for f in parametric.free if f.least is None and int(values[f.name]) < 1]
        limits = f"; {', '.join(wild)} may be any number, negative ones too: declare limits" if wild else ""
        at = f", as at {parameters_text(values)}" if values else ""
        return f"not shown of every initial state{what}{at}{limits}"
    single = ", or prove it at one size" if parametric.free else ""
    return f"not proved{every}{what}: add a lemma that excludes the state of the counterexample to induction{single}"


def _hard(parametric: Parametric, name: str) -> str:
    """A remark about the first term outside of decidable arithmetic, if any."""
    from streamproof.any.engine.claims import products

    for term in products(parametric, parametric.system.property(name)):
        place = "" if term.loc is None else f" ({term.loc.short})"
        return f", as it may on products and quotients of unknowns{place}"
    return ""


def _notes(proof: AnySize) -> tuple[str, ...]:
    tried = f"{proof.candidates} discovered candidates, {len(proof.found)} needed, " if proof.candidates else ""
    return (f"{tried}{proof.queries} queries",)


def _compared(same: GroundingReport, again: Sequence[Mapping[str, int]], small: Small) -> Iterator[str]:
    """The cross-checks of a proof: concrete readings, plain Python, induction at given sizes, explicit search."""
    yield f"compared with concrete readings at {len(same.values)} values, and {same.runs:,} runs of plain Python"
    if again:
        yield f"induction checked without quantifiers at {len(again)} value{'' if len(again) == 1 else 's'}"
    if small.searched:
        states, whole = sum(s.states for s in small.searched), sum(s.complete for s in small.searched)
        cut = ", cut by the time limit" if interrupts.left() <= 0 else ""
        yield f"explicit search of {len(small.searched)} instances, {whole} of them complete: {states:,} states{cut}"


def _more(
    parametric: Parametric,
    proof: AnySize,
    same: GroundingReport,
    again: Sequence[Mapping[str, int]],
    small: Small,
    left_out: Sequence[str],
) -> dict[str, Any]:
    """The part of the JSON that only proofs for every size have."""
    return {
        "any": {f.name: [f.least, f.most] for f in parametric.free},
        "readings_compared": {
            "values": [dict(v) for v in same.values],
            "runs": same.runs,
            "refused_by_the_model": [dict(v) for v in same.refused],
        },
        "induction_checked": [dict(v) for v in again],
        "instances_searched": [
            {"values": dict(s.values), "states": s.states, "complete": s.complete} for s in small.searched
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


def _show(proof: AnySize, small: Small, json_to: str | None) -> None:
    """Print the discovered lemmas, and the counterexamples to induction of open properties."""
    from streamproof.report.console import print_lines

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
