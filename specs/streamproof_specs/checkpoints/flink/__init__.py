"""Checkpoints in Flink's logs: `binding.py` reads the lines, `recorded_machine.py` is the machine that follows them."""
