"""How many distinct states there are to meet, estimated from how often each was met.

Chao2, the estimator by which ecologists count species from samples that list who was seen (A. Chao, *Estimating the
population size for capture-recapture data with unequal catchability*, Biometrics 43, 1987; interval and bias correction
as in R. K. Colwell's EstimateS). A walk is a sample, a state a species: `once` and `twice` count the states that exactly
one and exactly two walks met.

What it says, and what not: walks do not meet all states alike often, so the true number lies rather above the estimate
than below; and it counts what walks of this length can meet, not what is reachable. Guided walks learn from earlier ones,
so they are no independent samples: for them the estimate is rougher.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from streamproof.system.records import dataclass

QUANTILE = 1.96
"""Of the normal distribution, for an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated number of distinct states, and the 95 % interval around it."""

    states: float
    low: float
    high: float


def chao2(met: Iterable[int], walks: int) -> Estimate | None:
    """The estimate from the number of walks that met each state; None with fewer than two walks."""
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
    # The unseen part is taken to be lognormal, so the interval never reaches below what was seen.
    spread = math.exp(QUANTILE * math.sqrt(math.log(1 + max(variance, 0.0) / unseen**2)))
    return Estimate(total, seen + unseen / spread, seen + unseen * spread)
