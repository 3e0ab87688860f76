"""Sales by region and by product: a batch job of four regions, with blocking exchanges between them.

The amounts are sorted out once and stored; both sums read what is stored. If a sum fails it runs again alone.
"""

from __future__ import annotations

from collections import Counter

from streamproof_runtime import Job

SALES = [(("north", "south", "west")[n % 3], ("tea", "rice")[n % 2], n % 7) for n in range(60)]


def job() -> Job:
    """The sums."""
    made = Job("sales")
    sold = made.source("sales", SALES, parallelism=2).rebalance().blocking()
    valid = sold.process("valid", lambda _, sale: (sale,) if sale[2] else (), parallelism=2)
    for field, name in ((0, "places"), (1, "products")):
        pairs = valid.map(lambda sale, field=field: (sale[field], sale[2])).key_by(lambda pair: pair[0]).blocking()
        summed = pairs.reduce(f"by_{name}", lambda a, b: (a[0], a[1] + b[1]), parallelism=2)
        summed.collect_latest(name)
    return made


def expected() -> dict[str, object]:
    """The sums, computed directly."""
    found: dict[str, Counter[str]] = {"places": Counter(), "products": Counter()}
    for place, product, amount in SALES:
        if amount:
            found["places"][place] += amount
            found["products"][product] += amount
    return {name: dict(sums) for name, sums in found.items()}
