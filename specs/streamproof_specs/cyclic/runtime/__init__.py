"""Loop heads in the runtime's logs: `binding.py` reads the events, `recorded_machine.py` is the machine."""
