"""Slot allocations in Flink's logs: `binding.py` plans, `gather.py` collects, `recorded_machine.py` names the machine."""
