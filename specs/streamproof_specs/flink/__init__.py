"""Real Flink's logs tied to the machines of this project."""
