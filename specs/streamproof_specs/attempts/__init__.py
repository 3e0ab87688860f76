"""Properties of one execution attempt; `flink/` follows the attempts of Flink's logs."""
