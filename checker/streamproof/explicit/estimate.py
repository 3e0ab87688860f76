"""Estimate of the number of distinct states that random walks can visit.

Chao2, a species richness estimator for incidence data (A. Chao, *Estimating the population size for capture-recapture data
with unequal catchability*, Biometrics 43, 1987; interval and bias correction as in R. K. Colwell's EstimateS). A walk is a
sample, a state a species: `once` and `twice` count the states visited by exactly one and exactly two walks.

Limits: walks do not visit all states with the same probability, so the true number is more likely above the estimate than
below. It counts the states that walks of this length can visit, not the reachable states. Guided walks depend on earlier
walks, so they are not independent samples and the estimate is rougher.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from streamproof.system.records import dataclass

QUANTILE = 1.96
"""Quantile of the normal distribution for a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated number of distinct states, with its 95 % interval."""

    states: float
    low: float
    high: float


def chao2(met: Iterable[int], walks: int) -> Estimate | None:
    """The estimate from the number of walks that visited each state; None with fewer than two walks."""
    if walks < 2:
        return None
    among = Counter(met)
    seen, once, twice = sum(among.values()), among[1], among[2]
    share = (walks - 1) / walks
    unseen = share * once * (once - 1) / (2 * (twice + 1))
    if unseen == 0:
        return Estimate(float(seen), float(seen), float(seen))
    total = seen + unseen
    if twice:
        variance = (
            share * once * (once - 1) / (2 * (twice + 1))
            + share**2 * once * (2 * once - 1) ** 2 / (4 * (twice + 1) ** 2)
            + share**2 * once**2 * twice * (once - 1) ** 2 / (4 * (twice + 1) ** 4)
        )
    else:
        variance = (
            share * once * (once - 1) / 2 + share**2 * once * (2 * once - 1) ** 2 / 4 - share**2 * once**4 / (4 * total)
        )
    # The number of unseen states is assumed lognormal, so the interval never goes below the number of visited states.
    spread = math.exp(QUANTILE * math.sqrt(math.log(1 + max(variance, 0.0) / unseen**2)))
    return Estimate(total, seen + unseen / spread, seen + unseen * spread)
