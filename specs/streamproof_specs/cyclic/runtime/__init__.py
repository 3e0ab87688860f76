"""Loop heads in the runtime's logs: `binding.py` reads the events, `recorded.py` is the machine."""
