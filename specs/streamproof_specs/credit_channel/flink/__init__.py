"""Recorded calls of Flink's flow control: `binding.py` plans, `records.py` reads files, `recorded_machine.py` is the machine."""
