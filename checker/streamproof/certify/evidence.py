"""What a certificate says of a finished search: a claim for each property that was decided, with what shows it."""

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

    `claims` are the verdicts that it shows, by property; `without` says, for each other property asked for, why it claims
    nothing of it. `size` is that of the file in bytes.
    """

    path: Path
    size: int
    claims: dict[str, str]
    without: dict[str, str]


def contents(system: System, model: str, options: tuple[str, ...]) -> Contents:
    """A certificate about `system` that claims nothing yet; `model` and `options` say how it is asked for."""
    return Contents(model, options, fingerprint(system))


def add_traces(system: System, findings: tuple[Finding, ...], to: Contents) -> list[Finding]:
    """Claim what behaviours show; the findings that are left are those that they do not."""
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
    """Write what the behaviours of some findings show; `lack` says why nothing shows the others that were decided."""
    to = contents(system, model, options)
    left = add_traces(system, findings, to)
    return written(path, to, {f.property: undecided(f) or lack for f in left})


def certify_search(path: Path, model: str, options: tuple[str, ...], explored: Exploration) -> Written:
    """Write the certificate of a search: its behaviours and, when it was complete, the closed set of states and ranks.

    Raises `SystemFailure` when the file cannot be written, `TooLarge` when the graph of steps does not fit into memory, and
    `NoRanks` when a property of endless behaviours is not shown by the graph after all.
    """
    to = contents(explored.system, model, options)
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
    """Why there is no verdict to certify; empty where there is one."""
    return finding.because if finding.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR) else ""


def _add_states(explored: Exploration, findings: list[Finding], to: Contents) -> dict[str, str]:
    """Claim what the closed set of states shows, with ranks where they are needed; why not, for what it does not show."""
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
            without[name] = "ranks do not show what is promised of steps"
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
    """Write a certificate, and what was written; one that would claim nothing is not. Raises `SystemFailure`."""
    return Written(path, write_certificate(path, to) if to.claims else 0, to.claims, without)
