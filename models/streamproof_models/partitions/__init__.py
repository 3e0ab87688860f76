"""The life cycle of blocking result partitions (FLIP-1, phase 2): `machine.py` has all state and rules.

`variants.py` has the refuted rules, `types.py` other kinds of partitions, `flink.py` what Flink does instead and
`flink_repairs.py` its repairs; `counts.py` counts partitions by state, for proofs for any number of them.
"""
