"""Executable state machines of stream-processing protocols."""
