"""Slot allocation in the runtime's logs: `binding.py` plans, `delivered.py` orders messages, `recorded.py` is the machine."""
