"""Failover of a job by pipelined regions: which tasks restart when one fails, and how.

`answer(case)` gives regions and restart set of a decoded restart oracle case. It is imported here and now
because its module has the same name: whichever is bound last wins, and that has to be the function.
"""

from streamproof_models.failover.answer import answer

__all__ = ["answer"]
