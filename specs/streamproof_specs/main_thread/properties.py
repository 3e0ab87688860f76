"""Properties of the JobMaster's main thread: no false alarm, no missed crash or hang, and the job runs."""

from __future__ import annotations

import streamproof_models.main_thread.variants  # noqa: F401  (declaring a variant registers it)
from streamproof import Spec, always, eventually, invariant, leads_to, lemma, step, temporal
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


# --- why there is no false alarm, for every parallelism, interval and reserve


@lemma
def connected_while_up(m, s):
    """While the main thread does not hang, exactly the executors that are up are connected, and none registers again."""
    return all(
        (not s.connected[x] or (s.up[x] and s.registered[x]))
        and (not s.registering[x] or s.up[x])
        and (s.hung or not s.up[x] or (s.connected[x] and not s.lost[x] and not s.registering[x]))
        for x in range(m.executors)
    )


@lemma
def tasks_in_one_place(m, s):
    """Tasks are deployed, to be deployed, or being deployed on registered executors; work is that of one runnable."""
    busy = s.doing != "NOTHING"
    return (
        all(not s.hosts[x] or (not busy and not s.deploy_due) for x in range(m.executors))
        and all(not s.chosen[x] or (s.doing == "DEPLOYING" and s.registered[x]) for x in range(m.executors))
        and s.work <= (m.deployment if s.doing == "DEPLOYING" else m.restart if busy else 0)
        and not (busy and s.deploy_due)
    )


@lemma
def failovers_counted(m, s):
    """Each failover is about an executor that has crashed and is not registered any more."""
    gone = sum(int(not s.up[x] and not s.registered[x]) for x in range(m.executors))
    crashed = sum(int(not s.up[x]) for x in range(m.executors))
    return s.failovers <= gone and crashed == m.crashes - s.crashes_left


def bounded(m, s, ticks, has_tasks):
    """The bound of a silence: that of the requests, or an interval and what the main thread has done since."""
    done = (
        m.deployment - s.work
        if s.doing == "DEPLOYING"
        else m.deployment + m.restart - s.work
        if s.doing == "RESTARTING"
        else m.deployment
        if has_tasks
        else m.deployment + m.restart
    )
    return ticks <= s.since_request if s.since_request < m.interval else ticks < m.interval + done


@lemma
def requests_in_time(m, s):
    """A TaskExecutor that waits for a request has waited for an interval and one or two runnables at most."""
    return s.hung or all(
        not s.connected[x]
        or (
            s.quiet[x] < m.interval + m.deployment + m.restart
            and (s.asked[x] or bounded(m, s, s.quiet[x], any(s.hosts)))
        )
        for x in range(m.executors)
    )


@lemma
def answers_in_time(m, s):
    """So has the JobMaster, for an answer that is not on its way."""
    return s.hung or all(
        not s.connected[x]
        or (
            s.silent[x] < m.interval + m.deployment + m.restart
            and (s.asked[x] or s.answered[x] or bounded(m, s, s.silent[x], any(s.hosts)))
        )
        for x in range(m.executors)
    )


@lemma
def heard_in_time(m, s):
    """Where requests and answers never wait, no silence is longer than an interval."""
    return (
        not m.undisturbed
        or s.hung
        or all(
            not s.connected[x]
            or (
                s.quiet[x] <= m.interval
                and s.silent[x] <= m.interval
                and (s.asked[x] or s.quiet[x] <= s.since_request)
                and (s.asked[x] or s.answered[x] or s.silent[x] <= s.since_request)
            )
            for x in range(m.executors)
        )
    )


SPEC = Spec(
    MainThread,
    properties=(
        no_false_alarm, no_needless_failover, deployed_where_registered, settles, crash_noticed, hang_noticed,
        connected_while_up, tasks_in_one_place, failovers_counted, requests_in_time, answers_in_time, heard_in_time,
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
