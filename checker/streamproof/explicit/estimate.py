"""Lower estimate of the number of distinct states that random walks can visit.

Chao2, a species richness estimator for incidence data (A. Chao, *Estimating the population size for capture-recapture data
with unequal catchability*, Biometrics 43, 1987; bias correction as in R. K. Colwell's EstimateS). A walk is a sample, a state
a species: `once` and `twice` count the states visited by exactly one and exactly two walks.

It estimates a lower bound: walks do not visit all states with the same probability, so the true number is mostly far
above it. Intervals from its variance assume equal probabilities and miss the true number; none is given. The samples must be
independent: guided walks, which depend on earlier ones, have no estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def chao2(met: Iterable[int], walks: int) -> float | None:
    """The estimate from the number of walks that visited each state; None with fewer than two walks."""
    if walks < 2:
        return None
    among = Counter(met)
    seen, once, twice = sum(among.values()), among[1], among[2]
    return seen + (walks - 1) / walks * once * (once - 1) / (2 * (twice + 1))
