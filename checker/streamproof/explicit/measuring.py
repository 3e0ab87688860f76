"""The largest value of a quantity in the states of a search."""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.explicit.exploration import Exploration
from streamproof.system.flatten import Rewriter
from streamproof.system.measure import Measure, Measured


def measured(explored: Exploration, measures: Iterable[Measure]) -> tuple[Measured, ...]:
    """The largest value of each quantity in the states found.

    A lower bound after an incomplete or reduced search, and where a constraint ends behaviours. After an evaluation error of
    the model, the states found before it are measured.
    """
    rewriter = Rewriter()
    reduced = any(reduction.applied for reduction in explored.reductions)
    cut = any(explored.counts.outside)
    exact = explored.complete and not reduced and not cut
    known = explored.counts.distinct
    states = f"{known:,} reachable state{'' if known == 1 else 's'}"
    found: list[Measured] = []
    for measure in measures:
        mistakes = [rewriter.scalar(check.condition) for check in measure.checks]
        wrong = [c.message for c, met in zip(measure.checks, explored.search.ever_true(mistakes), strict=True) if met]
        if wrong:
            found.append(Measured(measure.name, measure.doc, None, exact, f"has no value in some state: {wrong[0]}"))
            continue
        value = explored.search.largest(rewriter.scalar(measure.expr))
        ended = "a constraint ends behaviours" if cut else "the search left states out"
        because = f"the largest in {states}" + ("" if exact else f"; lower bound: {ended}")
        found.append(Measured(measure.name, measure.doc, value, exact, because))
    return tuple(found)
