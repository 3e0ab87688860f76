"""Region scheduling in Flink's logs: `binding.py` plans, `recorded_machine.py` is the machine."""
