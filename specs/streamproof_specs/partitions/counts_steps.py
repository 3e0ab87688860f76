"""What each step of the life cycle may change, and what it must be able to do, for any number of its parts."""

from __future__ import annotations

from streamproof import invariant, reachable, step
from streamproof_models.partitions.counts import ON_DISK


def drops(s, t, e):
    """Whether TaskExecutor `e` ends."""
    return s.executor[e] == "UP" and t.executor[e] != "UP"


def registers(s, t, p):
    """Whether the TaskExecutor of partition `p` gets its connection."""
    return t.connected[s.location[p]] and not s.connected[s.location[p]]


def is_given_up(s, t, p):
    """Whether the JobMaster does not take partition `p` for stored any longer, or its TaskExecutor registers anew."""
    return t.tracked[p] != "STORED" or registers(s, t, p)


# --- the JobMaster


@invariant
def forgotten_with_master(m, s):
    """A JobMaster that does not run knows no TaskExecutor and counts on no partition, and no consumer reads."""
    return s.master == "RUNNING" or (
        not any(s.registered[e] for e in range(m.executors))
        and all(not m.is_tracked(s, p) and s.reading[p] == 0 for p in range(m.partitions))
    )


@invariant
def ended_forgets(m, s):
    """Of an ended job no partition is tracked, no consumer has finished, and no connection is left to close."""
    return s.master != "ENDED" or (
        all(s.tracked[p] == "NONE" and s.finished[p] == 0 for p in range(m.partitions))
        and not any(s.closing[e] for e in range(m.executors))
    )


@step
def master_lives(m, s, t):
    """A JobMaster ends or crashes while it runs; it comes back after a crash, each time one of its recoveries."""
    back = s.master == "CRASHED" and t.master == "RUNNING"
    stays = s.master == t.master or s.master == "RUNNING"
    return (back and t.recoveries == s.recoveries - 1) or (stays and t.recoveries == s.recoveries)


@step
def produced_again_if_needed(m, s, t):
    """A partition is produced again, one attempt at a time, only while a consumer has to read it and none of its attempts
    counts; a TaskExecutor is then ordered to produce it, and is not idle."""
    return all(
        (t.attempt[p] == s.attempt[p] and (t.tracked[p] != "PRODUCING" or s.tracked[p] == "PRODUCING"))
        or (
            t.attempt[p] == s.attempt[p] + 1
            and s.tracked[p] in ("NONE", "GONE")
            and s.finished[p] < m.consumers
            and t.tracked[p] == "PRODUCING"
            and t.order[p] == "DEPLOY"
            and t.copy[p] == "NONE"
            and not t.reporting[p]
        )
        for p in range(m.partitions)
    )


@step
def former_attempt_kept(m, s, t):
    """When a partition is produced again, the former attempt is the earlier one with its order, or is not looked at."""
    return all(
        t.attempt[p] == s.attempt[p]
        or (t.old_copy[p] == s.copy[p] and t.old_order[p] == s.order[p] and t.old_location[p] == s.location[p])
        or (
            t.old_copy[p] == s.old_copy[p]
            and t.old_order[p] == s.old_order[p]
            and t.old_location[p] == s.old_location[p]
        )
        for p in range(m.partitions)
    )


@step
def stored_as_reported(m, s, t):
    """The JobMaster takes a partition for stored when its producer has reported, and it knows the TaskExecutor; in a grace
    period also one that it has lost, when its TaskExecutor registers with it."""
    return all(
        t.tracked[p] != "STORED"
        or s.tracked[p] == "STORED"
        or (s.tracked[p] == "PRODUCING" and s.reporting[p] and not t.reporting[p] and s.registered[s.location[p]])
        or (s.copy[p] == "STORED" and registers(s, t, p))
        for p in range(m.partitions)
    )


@step
def report_received(m, s, t):
    """A report comes from a producer that finishes; the JobMaster that receives it takes the partition for stored."""
    return all(
        (not t.reporting[p] or s.reporting[p] or (s.copy[p] == "PRODUCING" and t.copy[p] == "STORED"))
        and (s.copy[p] != "PRODUCING" or t.copy[p] != "STORED" or t.reporting[p])
        for p in range(m.partitions)
    )


@step
def released_when_read(m, s, t):
    """The JobMaster releases a stored partition when all its consumers have finished, and orders it to be deleted."""
    return all(
        t.tracked[p] != "RELEASED"
        or s.tracked[p] == "RELEASED"
        or (s.tracked[p] == "STORED" and s.finished[p] == m.consumers and t.order[p] == "RELEASE")
        for p in range(m.partitions)
    )


@invariant
def released_is_read(m, s):
    """No consumer needs a released partition."""
    return all(s.tracked[p] != "RELEASED" or s.finished[p] == m.consumers for p in range(m.partitions))


@step
def gone_with_executor(m, s, t):
    """The JobMaster gives up a partition that it counts on when it loses the TaskExecutor, or a consumer misses it."""
    return all(
        not m.is_tracked(s, p)
        or m.is_tracked(t, p)
        or t.tracked[p] == "RELEASED"
        or t.master != "RUNNING"
        or (s.registered[s.location[p]] != t.registered[s.location[p]])
        or (s.registered[s.location[p]] and t.connected[s.location[p]] and not s.connected[s.location[p]])
        or (s.reading[p] > 0 and s.copy[p] not in ON_DISK)
        for p in range(m.partitions)
    )


@invariant
def counted_is_known(m, s):
    """The JobMaster counts on partitions of TaskExecutors that it knows, while it runs, and a consumer reads only what it
    takes for stored."""
    return all(
        (not m.is_tracked(s, p) or s.registered[s.location[p]])
        and (s.reading[p] == 0 or s.tracked[p] == "STORED")
        and s.reading[p] + m.has_read(s, p) <= m.consumers
        for p in range(m.partitions)
    )


@step
def consumers_counted(m, s, t):
    """A consumer finishes after it has read, and starts anew by a failure, by losing its partition, or with the JobMaster."""
    failed = t.failures_left == s.failures_left - 1
    return (failed or t.failures_left == s.failures_left) and all(
        t.master != s.master
        or t.reading[p] + m.has_read(t, p) == s.reading[p] + m.has_read(s, p) - int(failed)
        or (not failed and m.has_read(t, p) == m.has_read(s, p) and t.reading[p] == s.reading[p] + 1)
        or (not failed and m.has_read(t, p) == m.has_read(s, p) and t.reading[p] == 0 and is_given_up(s, t, p))
        or (failed and t.reading[p] == s.reading[p] and m.has_read(t, p) == m.has_read(s, p))
        for p in range(m.partitions)
    )


@step
def failure_of_one(m, s, t):
    """A failure restarts one consumer of one partition."""
    return t.failures_left == s.failures_left or any(
        t.reading[p] + m.has_read(t, p) < s.reading[p] + m.has_read(s, p) for p in range(m.partitions)
    )


# --- connections and messages


@step
def connected_by_registration(m, s, t):
    """A TaskExecutor gets its connection and is known in one step, with a JobMaster that runs: without earlier orders to
    produce, and without partitions that count, unless it has stored them."""
    return all(
        (s.registered[e] or not t.registered[e] or (not s.connected[e] and t.connected[e]))
        and (
            s.connected[e]
            or not t.connected[e]
            or (
                s.executor[e] == "UP"
                and s.master == "RUNNING"
                and t.registered[e]
                and not t.closing[e]
                and all(
                    t.location[p] != e or (t.order[p] != "DEPLOY" and (not m.is_tracked(t, p) or t.copy[p] == "STORED"))
                    for p in range(m.partitions)
                )
                and all(t.old_location[p] != e or t.old_order[p] != "DEPLOY" for p in range(m.partitions))
            )
        )
        for e in range(m.executors)
    )


@step
def ends_with_messages(m, s, t):
    """A TaskExecutor that ends is gone for good, with its connection, its answer, and the messages from and to it. One that
    only loses its connection may still get them."""
    return all(
        t.executor[s.location[p]] != "UP"
        or t.connected[s.location[p]]
        or not s.connected[s.location[p]]
        or t.order[p] == s.order[p]
        for p in range(m.partitions)
    ) and all(
        (s.executor[e] == "UP" or t.executor[e] == s.executor[e])
        and (
            not drops(s, t, e)
            or (
                not (t.connected[e] or t.empty[e] or t.closing[e])
                and all(
                    t.location[p] != e or (t.order[p] == "NONE" and not t.reporting[p]) for p in range(m.partitions)
                )
                and all(t.old_location[p] != e or t.old_order[p] == "NONE" for p in range(m.partitions))
            )
        )
        for e in range(m.executors)
    )


@invariant
def lives_where_connected(m, s):
    """Only a TaskExecutor that lives has a connection or an answer to the ResourceManager on its way, and only with a
    connection, or in a grace period, it has partitions of the job."""
    return all(s.executor[e] == "UP" or not (s.connected[e] or s.empty[e]) for e in range(m.executors)) and all(
        (s.copy[p] not in ON_DISK or m.may_store(s, s.location[p]))
        and (s.old_copy[p] not in ON_DISK or m.may_store(s, s.old_location[p]))
        for p in range(m.partitions)
    )


@step
def executed_once(m, s, t):
    """A TaskExecutor with a connection executes an order, which is then gone: it starts a producer, or deletes a copy."""
    return all(
        (
            (t.copy[p] != "PRODUCING" or s.copy[p] == "PRODUCING")
            or (s.order[p] == "DEPLOY" and t.order[p] == "NONE" and s.connected[s.location[p]])
        )
        and (
            (t.old_copy[p] != "PRODUCING" or s.old_copy[p] == "PRODUCING" or s.attempt[p] != t.attempt[p])
            or (s.old_order[p] == "DEPLOY" and t.old_order[p] == "NONE" and s.connected[s.old_location[p]])
        )
        for p in range(m.partitions)
    )


@step
def deleted_for_reason(m, s, t):
    """A TaskExecutor deletes a copy by an order to release it, which is then gone, with its connection, or, if it is not
    counted on, when it registers, or by a heartbeat of the JobMaster that knows it."""
    return all(
        (
            t.copy[p] != "DELETED"
            or s.copy[p] == "DELETED"
            or (s.order[p] == "RELEASE" and t.order[p] == "NONE")
            or not (s.connected[s.location[p]] and t.connected[s.location[p]])
            or (s.registered[s.location[p]] and not m.is_tracked(s, p))
        )
        and (
            t.old_copy[p] != "DELETED"
            or s.old_copy[p] == "DELETED"
            or s.attempt[p] != t.attempt[p]
            or (s.old_order[p] == "RELEASE" and t.old_order[p] == "NONE")
            or not (s.connected[s.old_location[p]] and t.connected[s.old_location[p]])
            or s.registered[s.old_location[p]]
        )
        for p in range(m.partitions)
    )


@step
def ordered_by_master(m, s, t):
    """Only the JobMaster sends orders and closes connections, to a TaskExecutor that it knows."""
    return all(
        (t.order[p] in ("NONE", s.order[p]) or s.master == "RUNNING")
        and (t.old_order[p] in ("NONE", s.old_order[p]) or t.attempt[p] != s.attempt[p])
        for p in range(m.partitions)
    ) and all(
        t.closing[e] == s.closing[e] or not t.closing[e] or (s.registered[e] and not t.registered[e])
        for e in range(m.executors)
    )


@step
def released_as_empty(m, s, t):
    """The ResourceManager releases a TaskExecutor that has answered and is idle; a slot in use makes the answer void."""
    return all(
        (s.executor[e] != "UP" or t.executor[e] != "RELEASED" or (s.empty[e] and m.is_idle(s, e)))
        and (not t.empty[e] or s.empty[e] or m.is_idle(s, e))
        for e in range(m.executors)
    )


# --- what must be possible


@reachable
def released_twice(m, s):
    """A partition is read and released twice, because a consumer restarts in between."""
    return (
        m.attempts == 1
        or m.failures == 0
        or any(
            s.attempt[p] == 2 and s.tracked[p] == "RELEASED" and s.copy[p] == "DELETED" and s.old_copy[p] == "DELETED"
            for p in range(m.partitions)
        )
    )


@reachable
def lost_while_stored(m, s):
    """A JobMaster that has not crashed gives up a partition whose TaskExecutor keeps it, with its connection."""
    gone = any(s.tracked[p] == "GONE" and s.copy[p] == "STORED" for p in range(m.partitions))
    return s.recoveries == m.crashes and gone


@reachable
def deployment_lost(m, s):
    """The order to produce a partition is lost, and the connection is not."""
    return any(
        s.tracked[p] == "PRODUCING" and s.order[p] == "NONE" and s.copy[p] == "NONE" and s.connected[s.location[p]]
        for p in range(m.partitions)
    )


@reachable
def report_lost(m, s):
    """The report of a producer is lost, and the connection is not."""
    return any(
        s.tracked[p] == "PRODUCING" and s.copy[p] == "STORED" and not s.reporting[p] and s.connected[s.location[p]]
        for p in range(m.partitions)
    )


@reachable
def deleted_by_heartbeat(m, s):
    """A heartbeat makes a TaskExecutor delete what is released, before the order arrives."""
    return any(
        s.order[p] == "RELEASE" and s.copy[p] == "DELETED" and s.connected[s.location[p]] for p in range(m.partitions)
    )


@reachable
def old_deleted_by_heartbeat(m, s):
    """The same for an earlier attempt, while the newest is produced."""
    return (
        m.attempts == 1
        or m.failures == 0
        or any(
            s.old_order[p] == "RELEASE" and s.old_copy[p] == "DELETED" and s.connected[s.old_location[p]]
            for p in range(m.partitions)
        )
    )


@reachable
def comes_back(m, s):
    """A JobMaster that has come back knows a TaskExecutor again, and produces."""
    return m.crashes == 0 or (s.recoveries < m.crashes and any(s.tracked[p] == "STORED" for p in range(m.partitions)))


@reachable
def ends_with_executors(m, s):
    """A job ends, and a TaskExecutor that had its partitions is released."""
    return s.master == "ENDED" and any(
        s.copy[p] == "DELETED" and s.executor[s.location[p]] == "RELEASED" for p in range(m.partitions)
    )


@reachable
def closing_at_crash(m, s):
    """A JobMaster crashes while it closes the connection to a TaskExecutor that has answered that it stores nothing."""
    return s.master == "CRASHED" and any(s.closing[e] and s.connected[e] and s.empty[e] for e in range(m.executors))


@reachable
def executor_crashed(m, s):
    """A TaskExecutor crashes while consumers read its partition."""
    return any(s.executor[s.location[p]] == "CRASHED" and s.reading[p] > 0 for p in range(m.partitions))


STEPS = (
    forgotten_with_master,
    ended_forgets,
    master_lives,
    produced_again_if_needed,
    former_attempt_kept,
    stored_as_reported,
    report_received,
    released_when_read,
    released_is_read,
    gone_with_executor,
    counted_is_known,
    consumers_counted,
    failure_of_one,
    connected_by_registration,
    ends_with_messages,
    lives_where_connected,
    executed_once,
    deleted_for_reason,
    ordered_by_master,
    released_as_empty,
    released_twice,
    lost_while_stored,
    deployment_lost,
    report_lost,
    deleted_by_heartbeat,
    old_deleted_by_heartbeat,
    comes_back,
    ends_with_executors,
    closing_at_crash,
    executor_crashed,
)
"""The properties of this module."""
