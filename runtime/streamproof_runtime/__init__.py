"""The reference runtime: runs dataflows with loops, records what it did, and can be simulated with faults.

It is an implementation under test: it shares the form of the event log with the checker and nothing else. It imports
neither the engines nor the models, so that an agreement between the two is evidence.
"""

from streamproof_runtime.errors import JobError, JobFailed, OutsideSimulation, RuntimeFailure
from streamproof_runtime.jobs.api import Connected, Exchange, Job, Stream
from streamproof_runtime.jobs.functions import Context
from streamproof_runtime.jobs.scopes import Scope

__all__ = [
    "Connected",
    "Context",
    "Exchange",
    "Job",
    "JobError",
    "JobFailed",
    "OutsideSimulation",
    "RuntimeFailure",
    "Scope",
    "Stream",
]
