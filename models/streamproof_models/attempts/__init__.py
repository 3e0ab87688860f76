"""One execution attempt of a task, on the JobManager and on its TaskManager: `machine.py` has all state and rules."""
