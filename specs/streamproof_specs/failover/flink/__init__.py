"""Failover in Flink's logs.

`binding.py` plans the judgement of a job, `jobmanager_log.py` maps lines to observations, `recorded_machine.py` is the
machine that follows them; `decisions.py`, `restart_reasons.py` and `explain.py` say why; `adaptive.py`, `speculation.py`
and `every_scheduler.py` are about jobs that it does not follow, or not alone.
"""
