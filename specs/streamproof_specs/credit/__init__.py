"""Properties of credit-based flow control, with a file for each model; `runtime.py` is the binding of the runtime's logs."""
