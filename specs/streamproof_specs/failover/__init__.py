"""Properties, lemmas, given job graphs of failover; bindings of Flink's logs (`flink/`) and the runtime's (`runtime.py`)."""
