"""Properties of termination by a baton: no operator terminates early, and all terminate eventually."""

from __future__ import annotations

from streamproof import Spec, always, eventually, invariant, leads_to, measure, refines, step, temporal
from streamproof_models.baton import buffers, readings, two_types, variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.baton.detection import Detection
from streamproof_models.baton.machine import Baton
from streamproof_specs.baton.scoped_sweep import every_graph


@invariant
def nothing_lost(m, s):
    """No record is delivered to an operator that has terminated."""
    return not s.lost


@invariant
def no_early_end(m, s):
    """No operator has terminated while a record can still reach it, from a channel, an operator or a source."""
    return all(s.phase[o] != "TERMINATED" or quiet(m, s, o) for o in m.operators)


def quiet(m, s, o):
    """Whether no record can reach an operator, and it holds none."""
    tasks, channels = m.routes.upstream(o)
    return all(s.phase[t] == "TERMINATED" if t in m.sources else s.held[t] == 0 for t in tasks) and all(
        m.has_no_record(s, c) for c in channels
    )


@invariant
def outer_first(m, s):
    """A scope is complete only when every scope around it is: one of the heads of which records come has completed it."""
    return all(
        s.phase[inner] != "TERMINATED" or any(s.phase[outer] == "TERMINATED" for outer in outers)
        for inner in m.heads
        for outers in m.routes.outer_heads(inner)
    )


@step
def completed_once(m, s, t):
    """What has terminated stays so: a scope is completed at most once."""
    return all(s.phase[o] != "TERMINATED" or t.phase[o] == "TERMINATED" for o in m.tasks)


@step
def heads_agree(m, s, t):
    """Heads of one scope whose batons meet complete it by the same attempt, or none of them does."""
    return all(
        s.phase[h] != "ATTEMPTING"
        or (
            (t.phase[h] != "TERMINATED" or s.phase[other] == "TERMINATED" or s.id[other] == s.id[h])
            and (t.id[h] == s.id[h] or t.phase[h] == "TERMINATED" or s.phase[other] != "TERMINATED")
        )
        for h in m.heads
        for other in m.routes.peers(h)
    )


@step
def stale_never_completes(m, s, t):
    """A head that completes its scope has just taken a baton of the current attempt."""
    return all(
        s.phase[h] != "ATTEMPTING"
        or t.phase[h] != "TERMINATED"
        or any(
            len(s.channel[c]) > len(t.channel[c])
            and s.channel[c].head.kind in map(str, m.routes.own(h))
            and s.channel[c].head.id == s.id[h]
            for c in m.routes.feedback_inputs[h]
        )
        or any(c in m.routes.outputs[h] for c in m.routes.feedback_inputs[h])
        for h in m.heads
    )


@invariant
def batons_bounded(m, s):
    """Batons under way are bounded: a channel has one at a time, two where several heads of a scope meet."""
    return all(sum(item.kind in m.kinds for item in s.channel[c]) <= m.most_batons for c in m.channels)


@invariant
def only_current(m, s):
    """Every baton on its way belongs to the current attempt of a head of its scope."""
    return all(
        item.kind != kind
        or any(s.phase[h] == "ATTEMPTING" and s.id[h] == item.id for h in m.routes.heads_of(baton.origin))
        for c in m.channels
        for kind, baton in m.batons[c].items()
        for item in s.channel[c]
    )


@temporal
def everybody_terminates(m, s):
    """When no work is left, every operator terminates eventually."""
    return not eventually(always(s.records == 0)) or eventually(
        always(all(s.phase[t] == "TERMINATED" for t in m.tasks))
    )


@temporal
def quiet_ones_terminate(m, s):
    """An operator that no record can reach terminates eventually, whatever happens in other parts of the computation."""
    return all(leads_to(quiet(m, s, t), s.phase[t] == "TERMINATED") for t in m.tasks)


@temporal
def records_get_through(m, s):
    """No record stays behind batons forever, whatever attempts are made or aborted."""
    return all(
        always(eventually(len(s.channel[c]) == 0 or s.channel[c].head.kind not in m.kinds or m.has_no_record(s, c)))
        for c in m.channels
    )


def detects(m, s):
    """The job, and each loop, becomes quiet for good, and is found to be quiet only then."""
    active = [any(s.phase[t] != "TERMINATED" for t in m.sources) or s.records > 0]
    detected = [all(s.phase[t] == "TERMINATED" for t in m.operators) if m.operators else False]
    if not m.operators:
        active = [True]
    for scope in m.routes.graph.scopes:
        heads = m.routes.heads_of(scope)
        active.append(not all(quiet(m, s, h) for h in heads))
        detected.append(all(s.phase[h] == "TERMINATED" for h in heads))
    return {"active": active, "detected": detected}


refines(Detection, detects, sections="sections")


@measure
def batons_under_way(m, s):
    """Batons in all channels."""
    return sum(item.kind in m.kinds for c in m.channels for item in s.channel[c])


@measure
def longest_channel(m, s):
    """Records, batons and ENDs in one channel."""
    return max(len(s.channel[c]) for c in m.channels) if m.channels else 0


_ENDS_EARLY = {"nothing_lost": "violated", "no_early_end": "violated", "detects": "violated"}
_GETS_STUCK = {"everybody_terminates": "violated", "quiet_ones_terminate": "violated", "deadlock": "violated"}

SPEC = Spec(
    Baton,
    measures=(batons_under_way, longest_channel),
    properties=(
        nothing_lost,
        no_early_end,
        outer_first,
        completed_once,
        heads_agree,
        stale_never_completes,
        batons_bounded,
        only_current,
        everybody_terminates,
        quiet_ones_terminate,
        records_get_through,
        detects,
    ),
    expected={
        "no-alignment": {
            **_ENDS_EARLY,
            "batons_bounded": "violated",
            "only_current": "violated",
            "records_get_through": "violated",
            "deadlock": "violated",
        },
        "no-second-wait": {
            **_ENDS_EARLY,
            "batons_bounded": "violated",
            "only_current": "violated",
            "everybody_terminates": "violated",
            "quiet_ones_terminate": "violated",
        },
        "first-end": _ENDS_EARLY,
        "first-entry": _ENDS_EARLY,
        "no-dirty-check": _ENDS_EARLY,
        "status-dropped": _ENDS_EARLY,
        "stale-attempt": {},
        "eager-retry": {"batons_bounded": "violated", "only_current": "violated"},
        "eager-retry-stale": {
            **_ENDS_EARLY,
            "stale_never_completes": "violated",
            "batons_bounded": "violated",
            "only_current": "violated",
        },
        "inner-first": {**_ENDS_EARLY, **_GETS_STUCK, "outer_first": "violated"},
        "uncoordinated-heads": {
            "nothing_lost": "violated",
            "no_early_end": "violated",
            "heads_agree": "violated",
            **_GETS_STUCK,
        },
        "timeout": {**_ENDS_EARLY, "stale_never_completes": "violated", "only_current": "violated"},
        "reopened": {
            **_ENDS_EARLY,
            "completed_once": "violated",
            "stale_never_completes": "violated",
            "only_current": "violated",
            "everybody_terminates": "violated",
            "quiet_ones_terminate": "violated",
        },
        "unscoped": _ENDS_EARLY,
        "inner-forward": _ENDS_EARLY,
        "head-unasked": {**_ENDS_EARLY, "step_4_1_is_enough": "violated"},
        "upstream-unwaited": _ENDS_EARLY,
        "blocking-alignment": {},
        "broadcast": {"batons_bounded": "violated", "only_current": "violated"},
        "completed-together": _ENDS_EARLY,
        "scope-kept": _GETS_STUCK,
        "tight": {},
        "tight-weak": {"records_get_through": "violated"},
        "bounded": {"deadlock": "violated"},
        "bounded-without-end": {"everybody_terminates": "violated"},
        "first-status": _ENDS_EARLY,
        "mark-reset": {
            "nothing_lost": "violated",
            "no_early_end": "violated",
            "heads_agree": "violated",
            **_GETS_STUCK,
        },
        "not-absorbed": {
            **_ENDS_EARLY,
            **_GETS_STUCK,
            "batons_bounded": "violated",
            "only_current": "violated",
            "records_get_through": "violated",
        },
        "second-pass-unchecked": _ENDS_EARLY,
        "unstarted": {**_ENDS_EARLY, "completed_once": "violated", "detects_start": "violated"},
        "two-types": {},
        "literal": _ENDS_EARLY,
        "literal-two-types": _ENDS_EARLY,
    },
    variant_parameters={  # the smallest that show what breaks
        "no-alignment": {"topology": "two-returns"},
        "no-second-wait": {"topology": "nested-small"},
        "first-end": {"topology": "acyclic"},
        "first-entry": {"topology": "two-entries"},
        "no-dirty-check": {"topology": "self-loop"},
        "status-dropped": {"topology": "loop"},
        "stale-attempt": {"work": 2},
        "eager-retry": {"topology": "self-loop"},
        "eager-retry-stale": {"topology": "self-loop"},
        "inner-first": {"topology": "nested-small"},
        "uncoordinated-heads": {"topology": "parallel"},
        "timeout": {"topology": "loop"},
        "reopened": {"topology": "loop"},
        "inner-forward": {"topology": "nested-small"},
        "head-unasked": {"topology": "self-loop"},
        "upstream-unwaited": {"topology": "late-entry"},
        "blocking-alignment": {"topology": "diamond", "work": 2},
        "broadcast": {"topology": "side-branch"},
        "completed-together": {"topology": "nested-side"},
        "scope-kept": {"topology": "sequential"},
        "tight": {"topology": "loop", "work": 3},
        "tight-weak": {"topology": "loop", "work": 3},
        "bounded": {"topology": "loop", "work": 2},
        "bounded-without-end": {"topology": "loop", "work": 3},
        "first-status": {"topology": "diamond"},
        "mark-reset": {"topology": "parallel"},
        "not-absorbed": {"topology": "nested-small"},
        "second-pass-unchecked": {"topology": "nested-small"},
        "unstarted": {"topology": "self-loop"},
        "literal": {"topology": "nested-small"},
        "two-types": {"topology": "nested-small"},
        "literal-two-types": {"topology": "nested-small"},
    },
    sweeps=every_graph("nothing_lost", "no_early_end", "everybody_terminates", "deadlock"),
)
