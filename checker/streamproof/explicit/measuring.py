"""The largest value of a quantity in the states of a search, found by asking every state about thresholds."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.explicit.exploration import Exploration
from streamproof.explicit.found import Found
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.measure import Measure, Measured
from streamproof.system.shapes import Rewriter
from streamproof.system.sorts import RangeSort

AT_ONCE = 32
"""So many thresholds are asked about in one pass over the states."""


def measured(explored: Exploration, measures: Iterable[Measure]) -> tuple[Measured, ...]:
    """The largest value of each quantity in the states that were found.

    A search that ended early, or was reduced, leaves states out: then what is found is a lower bound. One that ended at a
    mistake of the model is measured up to there.
    """
    rewriter = Rewriter()
    reduced = any(reduction.applied for reduction in explored.reductions)
    exact = explored.complete and not reduced
    known = explored.counts.distinct
    states = f"{known:,} reachable state{'' if known == 1 else 's'}"
    found: list[Measured] = []
    for measure in measures:
        mistakes = [rewriter.scalar(check.condition) for check in measure.checks]
        wrong = [c.message for c, met in zip(measure.checks, explored.found.ever_true(mistakes), strict=True) if met]
        if wrong:
            found.append(Measured(measure.name, measure.doc, None, exact, f"has no value in some state: {wrong[0]}"))
            continue
        value = _largest(explored.found, rewriter.scalar(measure.expr))
        because = (
            f"the largest in {states}" if exact else f"the largest in {states} that were looked at; there are more"
        )
        found.append(Measured(measure.name, measure.doc, value, exact, because))
    return tuple(found)


def _largest(search: Found, term: Expr) -> int:
    assert isinstance(term.sort, RangeSort)
    least, most = term.sort.lo, term.sort.hi
    while least < most:
        width = max(1, -(-(most - least) // AT_ONCE))
        thresholds = [*range(least + width, most, width), most]
        met = search.ever_true([b.less_eq(b.num(threshold), term) for threshold in thresholds])
        reached = [threshold for threshold, yes in zip(thresholds, met, strict=True) if yes]
        most = min([t for t in thresholds if t not in reached], default=most + 1) - 1
        least = max(reached, default=least)
    return least
