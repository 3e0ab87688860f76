"""Termination by a baton: every expected verdict with exact counts, every named topology, and where batons go."""

from __future__ import annotations

import pytest

from model_verdicts import established
from nonempty import nonempty
from shares import share
from streamproof import ModelError, UsageError
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.baton.detection import Detection
from streamproof_models.baton.machine import Routes
from streamproof_models.scopes.enumeration import Bounds, scoped_graphs
from streamproof_models.scopes.topologies import NAMED, topology
from streamproof_specs.baton.properties import SPEC

COUNTS = {
    None: (507, 1097, 32),
    "no-alignment": (37252, 94079, 35),
    "no-second-wait": (2798, 6816, 62),
    "first-end": (46, 91, 9),
    "first-entry": (300, 774, 15),
    "no-dirty-check": (28, 44, 10),
    "status-dropped": (72, 128, 15),
    "stale-attempt": (4833, 16164, 33),
    "eager-retry": (41, 65, 11),
    "eager-retry-stale": (56, 88, 12),
    "inner-first": (105, 202, 16),
    "uncoordinated-heads": (1242, 2764, 29),
    "timeout": (114, 190, 16),
    "reopened": (182, 292, 19),
    "unscoped": (367, 740, 21),
    "restored": (507, 1104, 26),
    "inner-forward": (106, 200, 17),
    "head-unasked": (26, 42, 11),
    "upstream-unwaited": (72, 143, 13),
    "blocking-alignment": (5695, 19896, 27),
    "broadcast": (968, 2298, 26),
    "completed-together": (114, 241, 15),
    "scope-kept": (70, 150, 12),
    "tight": (328, 811, 17),
    "tight-weak": (328, 811, 17),
    "bounded": (93, 175, 15),
    "bounded-without-end": (26, 76, 8),
    "first-status": (671, 1593, 25),
    "mark-reset": (2160, 4940, 37),
    "not-absorbed": (11332, 22912, 45),
    "second-pass-unchecked": (194, 374, 20),
    "unstarted": (58, 99, 12),
    "two-types": (379, 756, 27),
    "literal": (106, 200, 17),
    "literal-two-types": (456, 894, 33),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""

LENGTHS = {
    "no-alignment": {
        "nothing_lost": 8,
        "no_early_end": 6,
        "batons_bounded": 5,
        "only_current": 3,
        "records_get_through": 15,
        "detects": 6,
        "deadlock": 15,
    },
    "no-second-wait": {
        "nothing_lost": 12,
        "no_early_end": 9,
        "batons_bounded": 5,
        "only_current": 4,
        "everybody_terminates": 12,
        "detects": 9,
        "quiet_ones_terminate": 12,
    },
    "first-end": {"nothing_lost": 7, "no_early_end": 4, "detects": 7},
    "first-entry": {"nothing_lost": 6, "no_early_end": 4, "detects": 4},
    "no-dirty-check": {"nothing_lost": 9, "no_early_end": 7, "detects": 7},
    "status-dropped": {"nothing_lost": 9, "no_early_end": 6, "detects": 6},
    "eager-retry": {"batons_bounded": 6, "only_current": 6},
    "eager-retry-stale": {
        "nothing_lost": 10,
        "no_early_end": 7,
        "stale_never_completes": 7,
        "batons_bounded": 6,
        "only_current": 6,
        "detects": 7,
    },
    "inner-first": {
        "nothing_lost": 8,
        "no_early_end": 6,
        "outer_first": 4,
        "everybody_terminates": 4,
        "detects": 6,
        "quiet_ones_terminate": 4,
        "deadlock": 4,
    },
    "uncoordinated-heads": {
        "nothing_lost": 16,
        "no_early_end": 11,
        "heads_agree": 13,
        "everybody_terminates": 15,
        "quiet_ones_terminate": 15,
        "deadlock": 15,
    },
    "timeout": {"nothing_lost": 9, "no_early_end": 7, "stale_never_completes": 3, "only_current": 3, "detects": 7},
    "reopened": {
        "nothing_lost": 13,
        "no_early_end": 7,
        "completed_once": 9,
        "stale_never_completes": 3,
        "only_current": 3,
        "everybody_terminates": 13,
        "detects": 7,
        "quiet_ones_terminate": 13,
    },
    "unscoped": {"nothing_lost": 12, "no_early_end": 7, "detects": 7},
    "inner-forward": {"nothing_lost": 12, "no_early_end": 9, "detects": 9},
    "head-unasked": {"step_4_1_is_enough": 5, "nothing_lost": 7, "no_early_end": 5, "detects": 5},
    "upstream-unwaited": {"nothing_lost": 9, "no_early_end": 7, "detects": 7},
    "broadcast": {"batons_bounded": 6, "only_current": 4},
    "completed-together": {"nothing_lost": 11, "no_early_end": 9, "detects": 9},
    "scope-kept": {"everybody_terminates": 3, "quiet_ones_terminate": 3, "deadlock": 3},
    "tight-weak": {"records_get_through": 10},
    "bounded": {"deadlock": 7},
    "bounded-without-end": {"everybody_terminates": 0},
    "first-status": {"nothing_lost": 15, "no_early_end": 13, "detects": 13},
    "mark-reset": {
        "nothing_lost": 20,
        "no_early_end": 15,
        "heads_agree": 17,
        "everybody_terminates": 19,
        "quiet_ones_terminate": 19,
        "deadlock": 19,
    },
    "not-absorbed": {
        "nothing_lost": 18,
        "no_early_end": 16,
        "batons_bounded": 5,
        "only_current": 5,
        "everybody_terminates": 23,
        "quiet_ones_terminate": 23,
        "records_get_through": 21,
        "detects": 16,
        "deadlock": 21,
    },
    "second-pass-unchecked": {"nothing_lost": 15, "no_early_end": 12, "detects": 12},
    "unstarted": {"nothing_lost": 2, "no_early_end": 0, "completed_once": 1, "detects_start": 0, "detects": 1},
    "literal": {"nothing_lost": 12, "no_early_end": 9, "detects": 9},
    "literal-two-types": {"nothing_lost": 23, "no_early_end": 19, "detects": 19},
}
"""Steps of the counterexamples."""

TOPOLOGIES = {
    "acyclic": (33, 65, 8),
    "self-loop": (25, 41, 9),
    "loop": (58, 106, 15),
    "alignment": (92, 181, 15),
    "late-entry": (33, 57, 12),
    "two-entries": (74, 149, 16),
    "diamond": (653, 1558, 25),
    "two-returns": (214, 478, 17),
    "two-tails": (466, 1103, 19),
    "two-exits": (157, 327, 21),
    "side-branch": (92, 181, 15),
    "bypass": (89, 173, 16),
    "sequential": (102, 210, 14),
    "siblings": (2656, 7470, 33),
    "in-turn": (393, 855, 25),
    "nested": (507, 1097, 32),
    "nested-small": (153, 303, 17),
    "nested-leaving": (323, 693, 24),
    "nested-side": (140, 296, 15),
    "deep": (585, 1249, 30),
    "parallel": (1166, 2832, 29),
    "parallel-self-loop": (5419, 16136, 33),
    "parallel-pointwise": (239, 540, 13),
    "parallel-nested": (10254, 34097, 29),
}

SAFETY = ("nothing_lost", "no_early_end", "outer_first", "heads_agree", "batons_bounded", "only_current", "deadlock")


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 5), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The rules hold; each broken one shows in what is expected of it, after so many steps."""
    result = established(SPEC, variant, COUNTS[variant])
    traces = {f.property: f.trace for f in result.findings if f.verdict is Verdict.VIOLATED}
    assert {name: len(t.steps) for name, t in traces.items() if t is not None} == LENGTHS.get(variant or "", {})


SIDE_BY_SIDE = {
    ("literal", 1): {"self-loop": 25, "loop": 58, "alignment": 92, "diamond": 653, "sequential": 102},
    ("literal", 3): {"self-loop": 157, "loop": 798, "alignment": 1814, "diamond": 26393, "sequential": 1893},
    ("literal-two-types", 1): {"self-loop": 48, "loop": 101, "alignment": 149, "diamond": 962, "sequential": 195},
    ("literal-two-types", 3): {"self-loop": 378, "loop": 1575, "alignment": 3256, "diamond": 43025, "sequential": 4493},
}
"""Distinct states of the text at its word."""


@pytest.mark.parametrize(
    ("variant", "name", "work"),
    share([(variant, name, work) for (variant, work), names in SIDE_BY_SIDE.items() for name in names], 6),
)
def test_the_text_holds_where_loops_have_one_head_and_none_inside(variant: str, name: str, work: int) -> None:
    """With the status of step 3.2, all properties hold on loops side by side with one head each."""
    result = explore(SPEC.system(variant, topology=name, work=work))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == SIDE_BY_SIDE[variant, work][name]


@pytest.mark.parametrize(("variant", "states"), share([("literal", 663), ("literal-two-types", 1444)], 2))
def test_the_text_holds_on_every_small_graph_without_nested_loops(variant: str, states: int) -> None:
    """Up to three operators, of one subtask each; the page has the sweep up to four."""
    found = 0
    for graph in nonempty(g for g in scoped_graphs(Bounds(3, depth=1)) if g.edges):
        result = explore(SPEC.system(variant, topology=str(graph)), SearchOptions(properties=SAFETY))
        assert {f.verdict for f in result.findings} == {Verdict.HOLDS}, graph
        found += result.counts.distinct
    assert found == states


@pytest.mark.parametrize(
    ("variant", "name", "steps"),
    [
        ("literal", "nested", 13),
        ("literal", "nested-small", 9),
        ("literal", "parallel", 11),
        ("literal-two-types", "nested", 29),
        ("literal-two-types", "nested-small", 19),
        ("literal-two-types", "parallel", 17),
    ],
)
def test_the_text_fails_where_loops_are_nested_or_have_two_heads(variant: str, name: str, steps: int) -> None:
    """Nested loops and loops with several heads end early."""
    result = explore(SPEC.system(variant, topology=name), SearchOptions(properties=("no_early_end",)))
    trace = result.finding("no_early_end").trace
    assert trace is not None
    assert len(trace.steps) == steps


TYPED = {
    "acyclic": 33,
    "self-loop": 48,
    "loop": 101,
    "alignment": 149,
    "late-entry": 57,
    "two-entries": 119,
    "diamond": 962,
    "two-returns": 335,
    "two-tails": 711,
    "two-exits": 249,
    "side-branch": 149,
    "bypass": 148,
    "sequential": 195,
    "siblings": 8119,
    "in-turn": 1043,
    "nested": 988,
    "nested-small": 379,
    "nested-leaving": 693,
    "nested-side": 269,
    "deep": 1606,
    "parallel": 2415,
    "parallel-self-loop": 9830,
    "parallel-pointwise": 1017,
    "parallel-nested": 23986,
}
"""Distinct states with both types of operators."""


@pytest.mark.parametrize("name", share(NAMED, 5))
def test_every_named_topology_holds_with_both_types(name: str) -> None:
    """The head apart from the operator with the feedback link changes no verdict; with liveness up to a thousand states."""
    small = TYPED[name] <= 1000
    result = explore(SPEC.system("two-types", topology=name), SearchOptions(properties=None if small else SAFETY))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == TYPED[name]


@pytest.mark.parametrize("name", share(NAMED, 5))
def test_every_named_topology_holds(name: str) -> None:
    """All properties, with one record at a time; liveness and refinement where there are at most a thousand states."""
    small = TOPOLOGIES[name][0] <= 1000
    result = explore(SPEC.system(topology=name), SearchOptions(properties=None if small else SAFETY))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert (result.counts.distinct, result.counts.generated, result.counts.depth) == TOPOLOGIES[name]


@pytest.mark.parametrize(
    ("name", "work", "distinct"),
    share(
        [("loop", 3, 798), ("siblings", 2, 24980), ("diamond", 2, 5783), ("nested", 3, 23689), ("parallel", 2, 8546)], 2
    ),
)
def test_more_records_at_a_time(name: str, work: int, distinct: int) -> None:
    """What is safe with one record is safe with several under way at once."""
    result = explore(SPEC.system(topology=name, work=work), SearchOptions(properties=SAFETY))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


@pytest.mark.parametrize("name", ["self-loop", "diamond", "two-tails", "sequential", "nested-small"])
def test_small_buffers_with_a_disk_do_no_harm(name: str) -> None:
    """Where batons and records share one buffer a channel, nothing is stuck, and all properties hold."""
    result = explore(SPEC.system("tight", topology=name, work=2))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("work", "with_baton", "without"), [(1, True, True), (2, False, True), (3, False, True), (4, False, False)]
)
def test_the_baton_deadlocks_a_loop_that_records_do_not(work: int, with_baton: bool, without: bool) -> None:
    """Two operators without a disk: four records stop each other, but two and a baton do."""
    for variant, free in (("bounded", with_baton), ("bounded-without-end", without)):
        result = explore(SPEC.system(variant, topology="loop", work=work), SearchOptions(properties=("deadlock",)))
        assert (result.finding("deadlock").verdict is Verdict.HOLDS) is free


def test_strays_are_batons_too() -> None:
    """A baton in its second turn has left the inner loop wherever it leads back, but a broadcast one goes on inside it."""
    system = SPEC.system("broadcast", topology="a L:b L.M:c L.M:d; a>b b>c c>d; c~b c~c")
    result = explore(system, SearchOptions(properties=SAFETY))
    assert {f.property for f in result.findings if f.verdict is Verdict.VIOLATED} == {"batons_bounded", "only_current"}
    assert "L/M+" in str(system.variables)


@pytest.mark.parametrize("name", ["loop", "diamond", "nested-small", "parallel"])
def test_ids_are_not_needed_where_batons_are_awaited(name: str) -> None:
    """With ids that are all the same the rules hold as well."""
    result = explore(SPEC.system(topology=name, ids=1), SearchOptions(properties=SAFETY))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


@pytest.mark.parametrize(("ids", "verdict"), [(4, Verdict.VIOLATED), (16, Verdict.HOLDS)])
def test_a_hasty_head_needs_more_ids_than_there_are_batons(ids: int, verdict: Verdict) -> None:
    """A head that aborts at once has many batons under way; an id that is used again is taken for the current one."""
    system = SPEC.system("eager-retry", topology="loop", work=2, ids=ids)
    result = explore(system, SearchOptions(("nothing_lost",)))
    assert result.finding("nothing_lost").verdict is verdict


def test_where_batons_go() -> None:
    """Each attempt goes around its loop, twice around a loop in it, and nowhere from which it does not come back."""
    carried = {c: [str(b) for b in batons] for c, batons in Routes(topology("nested")).carried.items()}
    assert carried == {
        "a>b": [],
        "b>c": ["L"],
        "c>d": ["L.M", "L/M", "L/M+"],
        "d>e": ["L"],
        "e>f": [],
        "d~c": ["L.M", "L/M"],
        "e~b": ["L"],
    }
    side = {c: [str(b) for b in batons] for c, batons in Routes(topology("nested-side")).carried.items()}
    assert side == {"a>b": [], "b>c": ["L"], "b>d": [], "c~b": ["L"], "d~d": ["L.M"]}
    parallel = {c: [str(b) for b in batons] for c, batons in Routes(topology("parallel-pointwise")).carried.items()}
    assert parallel["b0~b0"] == ["L", "L+"]
    assert "b0~b1" not in parallel


def test_a_batons_cost() -> None:
    """On figure 2 of the proposal there is one baton under way at a time, and a channel holds it and the record."""
    explored = explore(SPEC.system(), SearchOptions(properties=("nothing_lost",)))
    found = {m.name: m.value for m in explored.measured(SPEC.measured())}
    assert found == {"batons_under_way": 1, "longest_channel": 2}


def test_the_promise_by_itself() -> None:
    """Three things become quiet, and are found to be, in any order: three states each."""
    result = explore(Detection.system(sections=3))
    assert result.counts.distinct == 27


def test_a_topology_that_is_none_is_refused() -> None:
    """A name that is not in the catalogue is answered with the catalogue, a bad graph with what is wrong with it."""
    with pytest.raises((UsageError, ModelError), match="unknown topology 'ring'; known are acyclic, alignment"):
        SPEC.system(topology="ring")
    with pytest.raises((UsageError, ModelError), match="edge a to c: there is no operator c"):
        SPEC.system(topology="a b; a>c")
