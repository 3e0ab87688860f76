"""Properties of the locks of flow control: every thread finishes, and no buffer is lost with a channel."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, temporal
from streamproof_models.credit.locks import CreditLocks


@invariant
def floating_conserved(m, s):
    """Every floating buffer is in the pool, at a channel, or in the hands of a thread."""
    held = sum(at in ("RETURN", "NOTIFY", "ADD") for at in s.at)
    return s.pool + sum(s.floating_buffers) + held == m.channels


@invariant
def released_empty(m, s):
    """A channel that was released has no floating buffer, and gets none."""
    return all(job != "release" or s.at[t] != "DONE" or s.floating_buffers[c] == 0 for t, (job, c) in enumerate(m.work))


@temporal
def finished(m, s):
    """Every thread finishes."""
    return eventually(all(at == "DONE" for at in s.at))


SPEC = Spec(
    CreditLocks,
    properties=(floating_conserved, released_empty, finished),
    expected={
        "before-22946": {"deadlock": "violated", "finished": "violated"},
        "before-18595": {"deadlock": "violated", "finished": "violated"},
        "before-9676": {"deadlock": "violated", "finished": "violated"},
        "given-to-released": {"released_empty": "violated"},
        "rejected-dropped": {"floating_conserved": "violated"},
    },
    variant_parameters={  # the two threads of each report
        "before-22946": {"jobs": "recycle0 recycle1"},
        "before-18595": {"jobs": "release0 recycle1"},
        "before-9676": {"jobs": "release0 recycle1"},
        "given-to-released": {"jobs": "release0 recycle1"},
        "rejected-dropped": {"jobs": "release0 recycle1"},
    },
)
