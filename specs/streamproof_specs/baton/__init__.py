"""Properties of the baton; `runtime.py` is the binding of the runtime's logs, `scoped_sweep.py` sweeps over scoped graphs.

`counts.py` has the lemmas for any number of records, `attempts.py` the ways of batons in them, `counted.py` the relation of
both machines.
"""
