"""Slot allocations in Flink's logs: `binding.py` plans, `gather.py` collects lines, `recorded.py` has the machines."""
