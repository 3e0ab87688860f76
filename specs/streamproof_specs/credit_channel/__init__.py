"""Properties and lemmas of one channel; `flink/` follows the calls that the agent records."""
