"""Writing the certificate of a finished search: a claim for each decided property, with its evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streamproof.certify.writing import Contents, trace_data, write_certificate
from streamproof.system.fingerprint import fingerprint
from streamproof.system.formula import recurring
from streamproof.system.model import Kind, Property, System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Verdict

if TYPE_CHECKING:
    from streamproof.explicit import Exploration


@dataclass(frozen=True, slots=True)
class Written:
    """A certificate that was written.

    `claims` are its verdicts by property; `without` gives, for every other requested property, the reason why it has no
    claim. `size` is that of the file in bytes.
    """

    path: Path
    size: int
    claims: dict[str, str]
    without: dict[str, str]


def add_traces(system: System, findings: tuple[Finding, ...], to: Contents) -> list[Finding]:
    """Adds claims with behaviours as evidence; returns the other findings."""
    sorts, left = [v.sort for v in system.variables], []
    for finding in findings:
        shown = Verdict.HOLDS if finding.kind is Kind.REACHABLE else Verdict.VIOLATED
        if finding.trace is not None and finding.verdict in (shown, Verdict.ERROR):
            to.claims[finding.property] = finding.verdict.value
            to.traces[finding.property] = trace_data(sorts, finding.trace)
        else:
            left.append(finding)
    return left


def certify_findings(
    path: Path, system: System, model: str, options: tuple[str, ...], findings: tuple[Finding, ...], lack: str
) -> Written:
    """Writes the behaviours of some findings; `lack` is the reason why other decided properties have no evidence."""
    to = Contents(model, options, fingerprint(system))
    left = add_traces(system, findings, to)
    return written(path, to, {f.property: undecided(f) or lack for f in left})


def certify_search(path: Path, model: str, options: tuple[str, ...], explored: Exploration) -> Written:
    """Writes the certificate of a search: its behaviours and, if it was complete, the closed set of states and ranks.

    Raises `SystemFailure` if the file cannot be written, `TooLarge` if the state graph exceeds the memory, and
    `NoRanks` if the graph does not prove a termination or temporal property.
    """
    to = Contents(model, options, fingerprint(explored.system))
    left = add_traces(explored.system, explored.findings, to)
    without = {f.property: why for f in left if (why := undecided(f))}
    open_ = [f for f in left if f.property not in without]
    reduced = [r.name for r in explored.reductions if r.applied]
    if reduced:
        lack = f"a search reduced by {' and '.join(reduced)} does not have all states: leave that out"
        without |= {f.property: lack for f in open_}
    elif explored.complete:
        without |= _add_states(explored, open_, to)
    else:
        without |= {f.property: "not all states were searched" for f in open_}
    return written(path, to, without)


def undecided(finding: Finding) -> str:
    """The reason why there is no verdict to certify; empty if there is one."""
    return finding.because if finding.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR) else ""


def _add_states(explored: Exploration, findings: list[Finding], to: Contents) -> dict[str, str]:
    """Adds the claims that the closed set of states proves, with ranks where needed, or the reason why not."""
    from streamproof.certify.states import closed_set

    counts = explored.counts
    to.counts = {
        "distinct": counts.distinct,
        "generated": counts.generated,
        "depth": counts.depth,
        "levels": list(counts.levels),
    }
    to.values = closed_set(explored.search)
    without: dict[str, str] = {}
    chosen = {f.property: explored.system.property(f.property) for f in findings}
    for name, prop in list(chosen.items()):
        if prop.formula is not None and any(True for _ in recurring(prop.formula)):
            without[name] = "ranks do not support step conditions of a formula"
            del chosen[name]
    to.claims |= {f.property: f.verdict.value for f in findings if f.property in chosen}
    endless = [p for p in chosen.values() if p.kind in (Kind.TERMINATION, Kind.TEMPORAL)]
    if endless:
        _add_ranks(explored, endless, to)
    return without


def _add_ranks(explored: Exploration, properties: list[Property], to: Contents) -> None:
    from streamproof.certify.ranks import examined, fruitless, terminating

    graph = explored.search.graph()
    seen = None
    for prop in properties:
        if prop.formula is None:
            to.ranks[prop.name] = terminating(graph)
            continue
        seen = seen or examined(explored.system, explored.search, graph)
        to.ranks[prop.name] = fruitless(seen, prop.name, prop.formula)


def written(path: Path, to: Contents, without: dict[str, str]) -> Written:
    """Writes a certificate, unless it has no claims. Raises `SystemFailure`."""
    return Written(path, write_certificate(path, to) if to.claims else 0, to.claims, without)
