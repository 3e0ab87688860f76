"""Properties of checkpoints; bindings of Flink's logs (`flink/`) and of the runtime's (`runtime.py`)."""
