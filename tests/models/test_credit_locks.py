"""The locks under flow control: the deadlocks that were, and none now."""

from __future__ import annotations

import pytest

from model_verdicts import established
from streamproof import ModelError
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_specs.credit.locks import SPEC

COUNTS = {
    None: (1029, 2394, 19),
    "before-22946": (160, 267, 17),
    "before-18595": (189, 323, 18),
    "before-9676": (158, 258, 18),
    "given-to-released": (187, 320, 17),
    "rejected-dropped": (142, 240, 19),
}
"""Distinct states, generated states and depth, at the jobs that a variant is refuted with."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Threads finish and no buffer goes to a channel that is gone; each age before shows its deadlock."""
    established(SPEC, variant, COUNTS[variant])


@pytest.mark.parametrize(
    ("channels", "jobs"),
    [
        (3, "release0 recycle1 recycle0"),
        (2, "release0 release1 recycle1 recycle0"),
        (3, "release0 release1 release2 recycle1"),
        (3, "release0 recycle1 recycle0 recycle2"),
    ],
)
def test_no_deadlock_with_more_threads(channels: int, jobs: str) -> None:
    """Several threads that release, and several that recycle, finish."""
    result = explore(SPEC.system(channels=channels, jobs=jobs))
    assert [f.property for f in result.findings] == ["floating_conserved", "released_empty", "finished", "deadlock"]
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}


def test_refusing_first_leaves_a_window() -> None:
    """A thread may look before the other marks its channel: FLINK-18595 alone leaves the deadlock that it is about."""
    result = explore(SPEC.system("before-22946", jobs="release0 recycle1"))
    stuck = result.finding("deadlock")
    assert stuck.verdict is Verdict.VIOLATED
    labels = [step.label for step in stuck.trace.steps]
    assert labels.index("notify_buffer_available(t=1, d=0)") < labels.index("begin(t=0)")
    assert "notify_buffer_available(t=0, d=1)" in labels


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ("release0 borrow1", "'borrow1' is not a job"),
        ("release0 release0", "release no channel twice"),
        ("", "at least one job"),
        ("recycle2", "'recycle2' is not a job"),
    ],
)
def test_jobs_that_are_none_are_refused(jobs: str, words: str) -> None:
    """A word that is no job, a channel that is not there or is released twice, and no job at all."""
    with pytest.raises(ModelError, match=words):
        SPEC.system(jobs=jobs)
