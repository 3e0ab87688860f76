"""Failover of a job by pipelined regions (FLIP-1): which tasks restart after a failure, and how.

The restart rule stands in `machine.Failover.regions_to_restart`, which runs. `restart.least_fixpoint` is its definition, pair
by pair, and `restart.regions_to_restart` the fast form; `pseudocode` runs the one that FLIP-1 prints, in all readings. They
are shown equal by `tests/models/test_failover_machine.py`, `test_failover_exhaustive.py` and `test_failover_pseudocode.py`.
`oracle.answer` answers a restart oracle case, `literal` puts the printed form into the machine, `flink` is the variant that
follows recorded runs.
"""
