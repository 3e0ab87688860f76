"""Properties and lemmas of failover, given job graphs; bindings of Flink's logs (`flink/`) and the runtime's (`runtime.py`)."""
