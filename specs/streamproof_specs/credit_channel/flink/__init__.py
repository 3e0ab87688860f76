"""Recorded calls of Flink's flow control: `binding.py` plans, `records.py` reads files, `recorded.py` is the machine."""
