"""Properties of one execution attempt, for every loss of messages.

Both state machines are Flink's; the failover protocol relies on the agreement of the two views: a task whose attempt
the JobManager considers FINISHED is never run again, and a partition is never served before it is registered.
"""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, leads_to, reachable, step, temporal
from streamproof_models.attempts import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.attempts.machine import AT_WORK, DEPLOYED, OVER, REPORTS, TaskAttempt


@invariant
def finished_is_finished(m, s):
    """The JobManager has the attempt as FINISHED, INITIALIZING or RUNNING only after its task has reached that state."""
    return (
        (s.master != "FINISHED" or s.task == "FINISHED")
        and (s.master != "RUNNING" or s.task not in ("NONE", "CREATED", "DEPLOYING", "INITIALIZING"))
        and (s.master != "INITIALIZING" or s.task not in ("NONE", "CREATED", "DEPLOYING"))
    )


@invariant
def deployed_once(m, s):
    """A task exists only where a deployment was sent and taken."""
    return s.task == "NONE" or s.deployment == "TAKEN"


@step
def ends_are_final(m, s, t):
    """An attempt that has ended is never active again, on either side."""
    return (s.master not in OVER or t.master == s.master) and (s.task not in OVER or t.task == s.task)


@step
def released_for_good(m, s, t):
    """A released partition does not come back."""
    return all(s.partition[p] != "RELEASED" or t.partition[p] == "RELEASED" for p in range(m.partitions))


@invariant
def set_up_at_first(m, s):
    """A task is set up while it is DEPLOYING; its thread may continue after a cancellation or a failure from outside, but a
    task that goes on, or has ended otherwise, has finished its set-up."""
    return s.setting_up == (s.task == "DEPLOYING") or (s.setting_up and s.task in ("CANCELING", "FAILED"))


@invariant
def cancelled_on_request(m, s):
    """A task is CANCELING only if the JobManager has sent the request; a task whose attempt is CANCELING gets one."""
    return (s.task != "CANCELING" or s.cancel_sent) and (
        s.master != "CANCELING" or s.deployment == "NONE" or s.cancel_sent
    )


@invariant
def cut_loses_reports(m, s):
    """No report arrives over a connection that is lost."""
    return not s.cut or len(s.reports) == 0


@step
def every_state_reported(m, s, t):
    """A task reports each state from INITIALIZING on when it takes it, and the TaskManager a deployment that is no task."""
    changes = s.task != t.task and t.task in REPORTS
    rejects = s.deployment == "SENT" and t.deployment == "TAKEN" and t.task == "NONE"
    if s.cut or t.cut or not (changes or rejects):
        return len(t.reports) <= len(s.reports)
    return len(t.reports) == len(s.reports) + 1 and t.reports[len(s.reports)] == (t.task if changes else "FAILED")


@step
def every_report_counts(m, s, t):
    """The JobManager goes on by reports alone, one at a time, and none that shows the next state or an end is ignored."""
    if len(t.reports) >= len(s.reports) or t.cut:
        return s.master == t.master or t.master not in ("INITIALIZING", "RUNNING", "FINISHED")
    if s.master == "CANCELING" and s.reports.head in OVER:
        return t.master == "CANCELED"
    return t.master == (s.reports.head if is_next(s.reports.head, s.master) else s.master)


def is_next(report, state):
    """Whether a report shows an end, or the state after the present one."""
    if report in OVER:
        return state in DEPLOYED
    return (report, state) in (("INITIALIZING", "DEPLOYING"), ("RUNNING", "INITIALIZING"))


@step
def deployed_in_time(m, s, t):
    """A deployment goes out while its attempt is DEPLOYING, and a partition is registered during the set-up."""
    return (s.deployment != "NONE" or t.deployment == "NONE" or s.master == "DEPLOYING") and all(
        s.partition[p] == t.partition[p] or t.partition[p] != "REGISTERED" or s.setting_up for p in range(m.partitions)
    )


@step
def ended_for_cause(m, s, t):
    """Without a report the JobManager ends an attempt as FAILED, with a request to cancel its task, or as CANCELED, if there
    is no task or its report cannot come."""
    if s.master == t.master or len(t.reports) < len(s.reports):
        return True
    return (t.master != "FAILED" or t.cancel_sent) and (
        t.master != "CANCELED" or s.cut or (s.task == "NONE" and s.deployment != "SENT")
    )


@temporal
def ends(m, s):
    """An attempt begins on the JobManager alone, and ends there unless the connection is lost."""
    return (
        s.master == "CREATED" and s.deployment == "NONE" and not (s.setting_up or s.cancel_sent or s.cut)
    ) and eventually(s.master in OVER or s.cut)


@temporal
def cancellation_ends(m, s):
    """A cancelled attempt ends on both sides."""
    return leads_to(s.master == "CANCELING", s.master in OVER) and leads_to(
        s.cancel_sent and s.task in AT_WORK, s.task in OVER
    )


@reachable
def succeeds(m, s):
    """An attempt finishes, and its partitions are released later."""
    return s.master == "FINISHED" and not s.cut and all(s.partition[p] == "RELEASED" for p in range(m.partitions))


@reachable
def rejected(m, s):
    """A TaskManager rejects the deployment of an attempt, which has failed then."""
    return s.master == "FAILED" and s.deployment == "TAKEN" and s.task == "NONE" and not s.cancel_sent


@reachable
def withdrawn(m, s):
    """A task is CANCELED although the JobManager did not ask for it."""
    return s.master == "CANCELED" and s.task == "CANCELED" and not s.cancel_sent


@reachable
def fails_in_set_up(m, s):
    """A task fails during its set-up, which goes on; the JobManager has it as CANCELED."""
    return s.master == "CANCELED" and s.task == "FAILED" and s.setting_up and not s.cut


@reachable
def given_up(m, s):
    """The JobManager has failed an attempt whose task is still CANCELING, and has lost the connection."""
    return s.master == "FAILED" and s.task == "CANCELING" and (s.cut or not m.may_cut)


SPEC = Spec(
    TaskAttempt,
    properties=(
        *(
            finished_is_finished,
            deployed_once,
            ends_are_final,
            released_for_good,
            set_up_at_first,
            cancelled_on_request,
        ),
        *(cut_loses_reports, every_state_reported, every_report_counts, deployed_in_time, ended_for_cause),
        *(ends, cancellation_ends, succeeds, rejected, withdrawn, fails_in_set_up, given_up),
    ),
    termination=True,
    expected={
        "late-reports": {"ends_are_final": "violated", "every_report_counts": "violated"},
        "optimistic": {"finished_is_finished": "violated", "every_report_counts": "violated"},
        "submitted-again": {"deployed_once": "violated", "termination": "violated"},
        "registered-again": {"released_for_good": "violated", "termination": "violated"},
        "retries-rejected": {"termination": "violated", "ends": "violated", "rejected": "violated"},
        "waits-for-report": {"deadlock": "violated", "ends": "violated", "cancellation_ends": "violated"},
    },
)
