"""Scheduling of pipelined regions: `core.py` is what logs show of the scheduler, `machine.py` the scheduler, `variants.py`
has the refuted rules, and Flink's.

`grouped_job.py` is the job by groups of tasks instead of tasks, for large jobs.
"""
