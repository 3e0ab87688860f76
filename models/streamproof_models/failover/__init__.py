"""Failover of a job by pipelined regions: which tasks restart after a failure, and how.

`answer(case)` gives regions and restart set of a decoded restart oracle case. It is imported here last, because its
module has the same name: the function must be bound last.
"""

from streamproof_models.failover.answer import answer

__all__ = ["answer"]
