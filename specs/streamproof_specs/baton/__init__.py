"""Properties of the baton; `runtime.py` is the binding of the runtime's logs, `scoped_sweep.py` sweeps over scoped graphs."""
