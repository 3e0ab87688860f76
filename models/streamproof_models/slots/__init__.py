"""Slot allocation.

`machine.py` is the scheduler of Flink 1.0 to 1.4, with locks and queues; `variants.py` has the refuted rules.
`pool.py` is Flink 2.3: the ResourceManager, the slot table of a TaskExecutor and the slot pool of a JobMaster;
`pool_variants.py` has its refuted rules, `runtime_rules.py` what the runtime does. `views.py` has what logs show of it,
`views_variants.py`; the rules of both are in `rules.py`. `logical.py` has a request. `owners.py` says who owns a slot, for
any number of tasks; `owners_variants.py`.
"""
