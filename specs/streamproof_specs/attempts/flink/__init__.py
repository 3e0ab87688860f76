"""Execution attempts in Flink's logs: `attempts.py` plans, `attempt_lines.py` and `task_lines.py` say what lines mean."""
