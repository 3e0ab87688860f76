"""Partitions in the runtime's logs: `binding.py` plans, `reading.py` reads events, `recorded_machine.py` is the machine."""
