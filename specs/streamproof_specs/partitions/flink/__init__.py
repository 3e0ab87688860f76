"""Result partitions in Flink's logs: `binding.py` plans, `lines.py` explains lines, `recorded.py` has the machines."""
