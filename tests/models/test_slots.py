"""Slot allocation with locks and queues: every expected verdict with exact counts; the subtask that Flink's rule forgets."""

from __future__ import annotations

from typing import Any

import pytest

from model_verdicts import established
from shares import share
from streamproof import ModelError, Spec, step
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.slots.machine import Slots
from streamproof_specs.slots.properties import SPEC

COUNTS = {
    None: (22016, 51009, 22),
    "literal": (145, 227, 14),
    "synchronous-announcement": (145, 220, 14),
    "leak-on-error": (23, 28, 9),
    "unused-kept": (655, 1165, 15),
    "shared-twice": (106, 151, 12),
    "dead-instance": (58, 94, 11),
    "released-place": (4076, 8415, 17),
    "location-preferred": (5036, 10059, 23),
    "far-place": (639, 1153, 14),
    "partial-gang": (10797, 20477, 25),
    "newest-first": (8938, 17769, 26),
    "coalesced": (80, 107, 13),
    "not-put-back": (188, 301, 15),
    "never-locked": (700, 1233, 15),
    "place-withheld": (535, 843, 19),
    "future-fails": (4095, 9279, 18),
    "future-leaks": (18, 20, 8),
    "refusing": (3985, 9220, 18),
    "forced-location": (184, 278, 9),
    "forced-location-only": (12023, 26074, 19),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted with."""


@pytest.mark.parametrize("variant", share([None, *SPEC.model.variants], 8), ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """The scheduler loses no slot and no subtask; each broken rule shows in what is expected of it."""
    established(SPEC, variant, COUNTS[variant])


def test_every_property_is_refuted_by_a_variant() -> None:
    """No property holds whatever the rules are."""
    refuted = {name for expected in SPEC.expected.values() for name in expected}
    assert refuted == {function.__name__ for function in SPEC.properties} | {"forced_respected", "deadlock"}


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    share(
        [
            ({"tasks": "A A B"}, 17348),
            ({"tasks": "A B Q", "slots": 2}, 62283),
            ({"tasks": "A H0 T0", "slots": 2}, 21462),
            pytest.param({"tasks": "A H0 T0 Q Q"}, 1041534, marks=pytest.mark.long),
        ],
        3,
    ),
    ids=str,
)
def test_the_scheduler_holds_at_other_sizes(parameters: dict[str, Any], distinct: int) -> None:
    """Several subtasks of a vertex, two slots for each instance, a constraint beside another vertex."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


@pytest.mark.parametrize(
    ("variant", "distinct"), share([("refusing", 23222), ("future-fails", 24522), ("forced-location-only", 35906)], 3)
)
def test_sound_calls_hold_at_the_small_size(variant: str, distinct: int) -> None:
    """Two co-located subtasks and one to be queued: failing futures, refused calls and forced locations break nothing."""
    result = explore(SPEC.system(variant, tasks="H0 T0 Q"))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


def test_one_announcement_taken_away_is_enough() -> None:
    """Flink's rule with one slot for each instance: a call that can use no other location takes the announcement."""
    system = SPEC.system("literal", instances=2, slots=1, tasks="H0 T0 Q", deaths=0)
    lost = explore(system, SearchOptions(properties=("served",))).finding("served")
    assert lost.verdict is Verdict.VIOLATED
    assert not any(step.label.startswith(("handle_new_slot", "serve_queue")) for step in lost.trace.steps)


def test_a_forced_location_is_left_for_a_place_of_the_group() -> None:
    """No new slot is at the forced location: the quoted code uses the place elsewhere. No subtask is queued there."""
    found = explore(SPEC.system("forced-location", tasks="A B", deaths=0))
    assert [f.property for f in found.findings if f.verdict is Verdict.VIOLATED] == ["forced_respected"]
    assert found.finding("forced_respected").trace.steps[-1].label.startswith("decide")


def test_merged_announcements_only_delay_subtasks_that_end() -> None:
    """Without a gang, the first queued subtask ends, and the slot that it returns is announced."""
    system = SPEC.system("coalesced", instances=1, slots=2, tasks="Q Q", gang=1, deaths=0)
    assert {f.verdict for f in explore(system).findings} == {Verdict.HOLDS}


def test_a_dead_instance_may_still_have_a_place() -> None:
    """Its slots are released one after the other; before that, the group offers a place in a shared one of them."""

    @step
    def no_place_in_dead(m: Slots, s: Any, t: Any) -> Any:
        """A call that begins after the death of an instance gets no place there."""
        return all(
            s.at[k] != "CREATED" or t.slot[k] is None or t.instance[m.instance_of(t.slot[k])] == "ALIVE"
            for k in m.threads
        )

    found = explore(Spec(Slots, properties=(no_place_in_dead,)).system(instances=1, tasks="A B"))
    trace = found.finding("no_place_in_dead").trace
    labels = [step.label.partition("(")[0] for step in trace.steps]
    assert "die" in labels
    assert labels[-1] == "schedule"


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ("", "at least one subtask"),
        ("a", "'a' is not a subtask"),
        ("Q1", "'Q1' is not a subtask"),
        ("AB", "'AB' is not"),
    ],
)
def test_words_that_are_no_subtask_are_rejected(tasks: str, words: str) -> None:
    """A small letter, a queued subtask with a constraint, two letters, and nothing."""
    with pytest.raises(ModelError, match=words):
        SPEC.system(tasks=tasks)
