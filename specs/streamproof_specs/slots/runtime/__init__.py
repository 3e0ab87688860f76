"""Slot allocation in the runtime's logs: `delivered.py` orders messages, `recorded_machine.py` is the machine."""
