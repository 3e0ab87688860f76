"""Properties of the JobMaster's main thread: no false alarm, no missed crash or hang, and the job runs."""

from __future__ import annotations

import streamproof_models.main_thread.variants  # noqa: F401  (declaring a variant registers it)
from streamproof import Spec, always, eventually, invariant, leads_to, step, temporal
from streamproof_models.main_thread.machine import MainThread


@step
def no_false_alarm(m, s, t):
    """Neither side ends the connection of a TaskExecutor that is up, while the main thread does not hang."""
    return all(
        s.hung or not (s.connected[x] and s.registered[x]) or not t.up[x] or (t.connected[x] and t.registered[x])
        for x in range(m.executors)
    )


@invariant
def no_needless_failover(m, s):
    """There are no more failovers than crashes."""
    return s.failovers <= m.crashes - s.crashes_left


@step
def deployed_where_registered(m, s, t):
    """Tasks are deployed on registered executors."""
    return all(s.hosts[x] or not t.hosts[x] or s.registered[x] for x in range(m.executors))


@temporal
def settles(m, s):
    """The job runs from some time on, unless the main thread hangs."""
    return eventually(always(s.hung or sum(int(r) for r in s.runs) == m.needed))


@temporal
def crash_noticed(m, s):
    """The JobMaster eventually ends the connection of a TaskExecutor that has crashed."""
    return all(leads_to(not s.up[x], not s.registered[x] or s.hung) for x in range(m.executors))


@temporal
def hang_noticed(m, s):
    """All TaskExecutors eventually end their connection to a JobMaster that hangs."""
    return leads_to(s.hung, not any(s.connected))


SPEC = Spec(
    MainThread,
    properties=(
        no_false_alarm, no_needless_failover, deployed_where_registered, settles, crash_noticed, hang_noticed,
    ),
    expected={
        "edge-by-edge": dict.fromkeys(("no_false_alarm", "no_needless_failover", "settles"), "violated"),
        "uncached": dict.fromkeys(("no_false_alarm", "no_needless_failover", "settles"), "violated"),
        "forgiving": dict.fromkeys(("no_false_alarm", "no_needless_failover", "settles"), "violated"),
        "ungrouped": {"no_false_alarm": "violated"},
        "longest-runnable": {"no_false_alarm": "violated"},
        "one-runnable": dict.fromkeys(("no_false_alarm", "no_needless_failover"), "violated"),
        "not-cancelled": dict.fromkeys(("no_false_alarm", "no_needless_failover"), "violated"),
        "no-timeouts": dict.fromkeys(("settles", "crash_noticed", "hang_noticed"), "violated"),
        "heartbeat-thread": {"hang_noticed": "violated"},
        "offloaded-unchecked": dict.fromkeys(("deployed_where_registered", "settles"), "violated"),
    },
    variant_parameters={
        **{variant: {"crashes": 0, "hangs": 0} for variant in ("edge-by-edge", "uncached", "forgiving")},
        **{variant: {"executors": 3, "crashes": 2} for variant in ("longest-runnable", "one-runnable", "not-cancelled")},
    },
)  # fmt: skip
