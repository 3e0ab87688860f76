"""Flow control of dataflows with loops: `machine.py` puts a loop together from `operators.py`, `feedback.py` and `parts.py`.

`variants.py` has the refuted policies; `counts.py` is the loop with numbers of records in place of queues, for proofs for
every capacity. `head.py` has what logs show of the entry, `head_variants.py`; the rules of both are in `rules.py`.
"""
