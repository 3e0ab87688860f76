"""Loop heads in the runtime's logs: `binding.py` follows their events through `loop_head`."""
