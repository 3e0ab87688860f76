"""Properties of flow control in loops; `head.py` has those of a loop head, which `runtime/` follows in the runtime's logs."""
