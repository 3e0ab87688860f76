"""Properties of region scheduling: no cycle of regions, current descriptors, caches that break no deployment."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, leads_to, lemma, reachable, temporal
from streamproof_models.regions import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.regions.machine import RegionScheduling
from streamproof_specs.failover.job_graphs import (
    as_flink,
    cautions,
    graph_of_file,
    grouped_infeasible,
    regions_of,
    scheduled_by_flink,
    what_if,
)


@invariant
def acyclic(m, s):
    """No regions with tasks in state CREATED wait for each other."""
    names = list(m.regions)
    return not any(all(s.status[t] == "CREATED" for r in cycle for t in m.regions[names[r]]) for cycle in m.cycles)


@invariant
def together(m, s):
    """The tasks of a region are scheduled together."""
    return all(
        all(s.status[t] == "CREATED" for t in tasks) or all(s.status[t] != "CREATED" for t in tasks)
        for tasks in m.regions.values()
    )


@invariant
def inputs_finished(m, s):
    """A region that is scheduled lazily reads finished partitions of other regions only; a task that has finished has read
    finished partitions, and the consumers of its pipelined partitions run."""
    lazily = m.eager or all(
        s.status[t] == "CREATED" or not m.crosses(g) or all(s.status[p] == "FINISHED" for p in m.producers[g])
        for t, g in m.gates
    )
    return (
        lazily
        and all(s.status[t] != "FINISHED" or all(s.status[p] == "FINISHED" for p in m.producers[g]) for t, g in m.gates)
        and all(
            m.blocking[g] or s.status[p] != "FINISHED" or s.status[t] in ("RUNNING", "FINISHED")
            for t, g in m.gates
            for p in m.producers[g]
        )
    )


@invariant
def counted(m, s):
    """The counter of a group is the number of its unfinished partitions, counted one by one."""
    return all(s.unfinished[g] == sum(int(s.status[t] != "FINISHED") for t in m.producers[g]) for g in m.groups)


@invariant
def current(m, s):
    """No task has a stale descriptor, and the JobMaster has cached those of tasks at work."""
    return all(
        s.gate[t, g] == "NONE"
        or (s.descriptor[t, g] == s.epoch[g] and (s.status[t] == "FINISHED" or s.cached[g] is not None))
        for t, g in m.gates
    )


@invariant
def fetchable(m, s):
    """A blob that a task still has to read is in its TaskExecutor's cache or on the server; a task that runs has read those
    that it was deployed with."""
    return all(
        (not m.is_waiting(s, t, g) or s.server[g] == s.descriptor[t, g] or m.is_cached(s, t, g))
        and (s.status[t] not in ("RUNNING", "FINISHED") or (t, g) in m.late or s.gate[t, g] == "LOADED")
        for t, g in m.gates
    )


@invariant
def bounded(m, s):
    """No blob cache exceeds its limit."""
    return all(s.blobs[x][m.cache] is None for x in range(m.executors))


@invariant
def server_current(m, s):
    """A blob on the server describes partitions that exist or will."""
    return all(s.server[g] is None or (s.server[g] == s.epoch[g] and not s.releasable[g]) for g in m.groups)


@invariant
def kept(m, s):
    """A partition is not released while a region that reads it has not finished, and is when nobody needs it."""
    groups = {p: [g for g in m.groups if p in m.partitions_of[g]] for p in m.partitions}
    return all(
        not s.gone[p] or s.status[t] == "FINISHED"
        for p in m.partitions
        for r in m.consuming_regions[p]
        for t in m.regions[r]
    ) and all(s.gone[p] or not all(s.releasable[g] for g in some) for p, some in groups.items() if len(some) > 0)


@reachable
def finishes_after_failures(m, s):
    """The job can finish after all of its failures, of which one made partitions void."""
    void = m.failures == 0 or len(m.groups) == 0 or any(s.epoch[g] > 0 for g in m.groups)
    return s.failures_left == 0 and void and all(s.status[t] == "FINISHED" for t in m.tasks)


@temporal
def scheduled(m, s):
    """Every region is eventually scheduled, after a restart too."""
    return all(leads_to(s.status[t] == "CREATED", s.status[t] != "CREATED") for t in m.tasks)


@temporal
def started(m, s):
    """Every task that is being deployed eventually runs, or restarts."""
    return all(leads_to(s.status[t] == "DEPLOYING", s.status[t] != "DEPLOYING") for t in m.tasks)


@temporal
def completed(m, s):
    """The job finishes."""
    return eventually(all(s.status[t] == "FINISHED" for t in m.tasks))


@temporal
def cleaned(m, s):
    """Every blob is eventually deleted from the server."""
    return all(leads_to(s.server[g] is not None, s.server[g] is None) for g in m.groups)


@lemma
def epochs_counted(m, s):
    """A group has as many epochs as regions have failed, or fewer."""
    return all(s.epoch[g] + s.failures_left <= m.failures for g in m.groups)


@lemma
def descriptors_current(m, s):
    """Descriptors in the cache, and their blob, are current until all consumers have finished."""
    return all(
        (s.cached[g] is None or s.cached[g] == s.epoch[g])
        and (s.server[g] == s.cached[g] if m.is_offloaded(g) else s.server[g] is None)
        and not (s.releasable[g] and s.cached[g] is not None)
        for g in m.groups
    )


@lemma
def sent_when_deployed(m, s):
    """A task that was sent descriptors is deployed; until it has finished they are cached."""
    return all(
        s.gate[t, g] == "NONE"
        or s.status[t] == "FINISHED"
        or (s.status[t] in ("DEPLOYING", "RUNNING") and s.cached[g] is not None and not s.releasable[g])
        for t, g in m.gates
    )


@lemma
def deployed_with_descriptors(m, s):
    """A task that is deployed was sent the descriptors of each group, but for those that are sent later."""
    return all(
        s.status[t] in ("CREATED", "SCHEDULED") or s.gate[t, g] != "NONE" or (t, g) in m.late for t, g in m.gates
    )


@lemma
def releasable_when_consumed(m, s):
    """All regions that read a releasable group have finished."""
    return all(not s.releasable[g] or m.is_consumed(s, g) for g in m.groups)


SPEC = Spec(
    RegionScheduling,
    properties=(
        *(acyclic, together, inputs_finished, counted, current, fetchable, bounded, server_current, kept),
        finishes_after_failures,
        *(scheduled, started, completed, cleaned, epochs_counted, descriptors_current),
        *(sent_when_deployed, deployed_with_descriptors, releasable_when_consumed),
    ),
    inputs={"job_graph": graph_of_file},
    questions={"what_if": what_if},
    facts=regions_of,
    cautions=cautions,
    beside=as_flink,
    decided=scheduled_by_flink,
    infeasible=grouped_infeasible,
    expected={
        "no-merging": dict.fromkeys(
            ("acyclic", "finishes_after_failures", "scheduled", "completed", "deadlock"), "violated"
        ),
        "merge-within-logical-region-only": dict.fromkeys(
            ("acyclic", "finishes_after_failures", "scheduled", "completed", "deadlock"), "violated"
        ),
        "stale-cache": {"current": "violated", "server_current": "violated"},
        "cached-by-group": {"current": "violated"},
        "deleted-when-fetched": dict.fromkeys(("fetchable", "started", "completed", "deadlock"), "violated"),
        "evicted-everywhere": dict.fromkeys(("fetchable", "started", "completed", "cleaned", "deadlock"), "violated"),
        "no-eviction": {"bounded": "violated"},
        "read-without-lock": dict.fromkeys(("started", "completed", "cleaned"), "violated"),
        "never-deleted": {"server_current": "violated", "cleaned": "violated"},
        "cleared-together": dict.fromkeys(("fetchable", "started", "completed", "deadlock"), "violated"),
        "counter-not-reset": {"inputs_finished": "violated", "counted": "violated"},
        "released-after-one": dict.fromkeys(("current", "server_current", "kept", "cleaned"), "violated"),
        "releasable-kept": dict.fromkeys(("server_current", "kept", "cleaned"), "violated"),
        "task-by-task": dict.fromkeys(
            ("together", "finishes_after_failures", "scheduled", "completed", "deadlock"), "violated"
        ),
    },
    variant_parameters={  # the smallest job graphs that show what breaks
        "no-merging": {"topology": "cyclic-region", "failures": 0},
        "merge-within-logical-region-only": {"topology": "cyclic-detour", "parallelism": 1, "failures": 0},
        "stale-cache": {"parallelism": 1},
        "cached-by-group": {"parallelism": 1},
        "deleted-when-fetched": {"topology": "all-to-all", "executors": 2, "failures": 0},
        "evicted-everywhere": {"topology": "cyclic-region", "failures": 0},
        "no-eviction": {"topology": "cyclic-detour", "parallelism": 1, "failures": 0},
        "read-without-lock": {"topology": "disjoint", "parallelism": 1, "failures": 0},
        "never-deleted": {"topology": "pair", "parallelism": 1, "failures": 0},
        "cleared-together": {"topology": "disjoint", "parallelism": 1, "failures": 0},
        "counter-not-reset": {"parallelism": 1},
        "released-after-one": {"topology": "all-to-all", "failures": 0},
        "releasable-kept": {"topology": "tee", "parallelism": 1},
        "task-by-task": {"parallelism": 1, "failures": 0},
    },
)
