"""Partitions in the runtime's logs: `binding.py` plans, `reading.py` reads events, `recorded.py` is the machine."""
