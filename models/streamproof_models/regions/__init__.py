"""Scheduling of pipelined regions: `machine.py` is the scheduler, `variants.py` has the refuted rules.

`grouped_job.py` is the job by groups of tasks instead of tasks, for large jobs.
"""
