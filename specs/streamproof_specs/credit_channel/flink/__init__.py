"""Recorded calls of Flink's flow control.

`binding.py` finds them, `records.py` reads files, `following.py` plans, `recorded_machine.py` is the machine.
"""
