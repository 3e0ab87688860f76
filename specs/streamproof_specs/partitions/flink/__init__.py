"""Result partitions in Flink's logs: `binding.py` plans, `lines.py` explains, `recorded_machine.py` has the machines."""
