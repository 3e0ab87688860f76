"""Writing the certificate of a finished search: a claim for each decided property, with its evidence."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.certify.ranks import examined, fruitless, terminating
from streamproof.certify.writing import Contents, Written
from streamproof.explicit.writer import batches
from streamproof.system.formula import recurring
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Finding

if TYPE_CHECKING:
    from streamproof.explicit.exploration import Exploration
    from streamproof.explicit.level_search import LevelSearch


def certify_findings(
    path: Path, system: System, model: str, options: tuple[str, ...], findings: tuple[Finding, ...], lack: str
) -> Written:
    """Writes the behaviours of some findings; `lack` is the reason why other decided properties have no evidence."""
    to = Contents(system, model, options, findings)
    return to.write(path, {f.property: lack for f in to.left} | to.undecided())


def certify_search(path: Path, model: str, options: tuple[str, ...], explored: Exploration) -> Written:
    """Writes the certificate of a search: its behaviours and, if it was complete, the closed set of states and ranks.

    Raises `SystemFailure` if the file cannot be written, `TooLarge` if the state graph exceeds the memory, and
    `NoRanks` if the graph does not prove a termination or temporal property.
    """
    to = Contents(explored.system, model, options, explored.findings)
    without = to.undecided()
    open_ = [f for f in to.left if f.property not in without]
    reduced = [r.name for r in explored.reductions if r.applied]
    if reduced:
        lack = f"a search reduced by {' and '.join(reduced)} does not have all states: leave that out"
        without |= {f.property: lack for f in open_}
    elif explored.complete:
        without |= _add_states(explored, open_, to)
    else:
        without |= {f.property: "not all states were searched" for f in open_}
    return to.write(path, without)


def _add_states(explored: Exploration, findings: list[Finding], to: Contents) -> dict[str, str]:
    """Adds the claims that the closed set of states proves, with ranks where needed, or the reason why not."""
    counts = explored.counts
    to.header["counts"] = {
        "distinct": counts.distinct,
        "generated": counts.generated,
        "depth": counts.depth,
        "levels": list(counts.levels),
    }
    to.evidence["values"] = _closed_set(explored.search)
    without: dict[str, str] = {}
    chosen = {f.property: explored.system.property(f.property) for f in findings}
    for name, prop in list(chosen.items()):
        if prop.formula is not None and any(True for _ in recurring(prop.formula)):
            without[name] = "ranks do not support step conditions of a formula"
            del chosen[name]
    to.claim(*(f for f in findings if f.property in chosen))
    endless = [p for p in chosen.values() if p.kind in (Kind.TERMINATION, Kind.TEMPORAL)]
    if endless:
        _add_ranks(explored, endless, to)
    return without


def _add_ranks(explored: Exploration, properties: list[Property], to: Contents) -> None:
    graph, ranks = explored.search.graph(), to.evidence["ranks"]
    seen = None
    for prop in properties:
        if prop.formula is None:
            ranks[prop.name] = terminating(graph)
            continue
        seen = seen or examined(explored.system, explored.search, graph)
        ranks[prop.name] = fruitless(seen, prop.name, prop.formula)


def _closed_set(found: LevelSearch) -> list[tuple[list[Any], list[int]]]:
    """The closed set of states: for each variable its values, each as its leaves, and the numbers of its values in every
    state. States are in the order of discovery, level by level.
    """
    scalarised = found.scalarised
    variables = scalarised.original.variables
    spans = list(pairwise(accumulate((len(scalarised.leaves[v.name]) for v in variables), initial=0)))
    numberings = [defaultdict[Any, int](count().__next__) for _ in variables]
    columns = [array("I") for _ in variables]
    for batch in batches(found.states()):
        leaves = list(zip(*batch, strict=True))
        for (begin, end), numbering, column in zip(spans, numberings, columns, strict=True):
            keys: Iterable[Any] = zip(*leaves[begin:end], strict=True) if end > begin else [()] * len(batch)
            column.extend(map(numbering.__getitem__, keys))
    return [(list(numbering), column.tolist()) for numbering, column in zip(numberings, columns, strict=True)]
