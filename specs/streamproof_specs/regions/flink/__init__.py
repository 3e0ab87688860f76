"""Region scheduling in Flink's logs: `binding.py` plans, `recorded.py` is the machine."""
