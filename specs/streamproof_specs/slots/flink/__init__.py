"""Slot allocations in Flink's logs: `binding.py` plans, `gather.py` collects lines, `recorded_machine.py` has the machines."""
