"""Properties of region scheduling; bindings of Flink's logs (`flink/`) and of the runtime's (`runtime.py`)."""
