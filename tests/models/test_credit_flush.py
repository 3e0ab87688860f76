"""Flow control with writers: every expected verdict, with exact counts, and what the sender's pool does not protect from."""

from __future__ import annotations

from typing import Any

import pytest

from model_verdicts import established
from streamproof import Spec, leads_to, temporal
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.system import Verdict
from streamproof_models.credit.flush import CreditFlush
from streamproof_specs.credit.flush import SPEC
from streamproof_specs.credit.properties import SPEC as FLOW

COUNTS = {
    None: (3444, 16478, 28),
    "only-when-full": (754, 3247, 19),
    "flushed-once": (2738, 12144, 28),
    "event-waits": (2602, 12737, 28),
    "no-limit": (1606, 8227, 25),
    "credit-before-free": (6118, 32979, 30),
    "uncounted-lending": (1250, 6951, 18),
    "lost-announcement": (1820, 8743, 30),
}
"""Distinct states, generated states and depth, at the parameters that a variant is refuted at."""


@pytest.mark.parametrize("variant", [None, *SPEC.model.variants], ids=str)
def test_every_expected_verdict_is_established(variant: str | None) -> None:
    """Records become visible in time and pools are kept; each broken rule shows in what is expected of it."""
    result = established(SPEC, variant, COUNTS[variant])
    assert {f.property for f in result.findings} >= {f"flow.{function.__name__}" for function in FLOW.properties}


@pytest.mark.parametrize(
    ("parameters", "distinct"),
    [
        ({"size": 1}, 1590),
        ({"size": 3}, 3426),
        ({"timeout": 1}, 1611),
        ({"timeout": 3}, 5499),
        ({"channels": 2, "records": 2, "events": 0}, 25082),
    ],
    ids=str,
)
def test_the_machine_holds_at_other_sizes(parameters: dict[str, int], distinct: int) -> None:
    """Buffers of one record and of as many as there are, other timeouts, and two channels that share the pools."""
    result = explore(SPEC.system(**parameters))
    assert {f.verdict for f in result.findings} == {Verdict.HOLDS}
    assert result.counts.distinct == distinct


def test_a_writer_may_wait_for_ever_for_a_channel_that_stalls() -> None:
    """Credits isolate receivers, not writers: the buffers of the sender's pool can all wait for a consumer that stalled."""

    @temporal
    def siblings(m: CreditFlush, s: Any) -> Any:
        """A writer whose consumer reads gets a buffer in the end, whatever the others do."""
        return all(
            leads_to(
                m.writer[c].needs_buffer(s.writer[c]),
                s.flow.consumer[c] != "LIVE" or not m.writer[c].needs_buffer(s.writer[c]),
            )
            for c in range(m.channels)
        )

    system = Spec(CreditFlush, properties=(siblings,)).system(channels=2, floating=0, records=3, size=1, events=0)
    stuck = explore(system, SearchOptions(properties=("siblings",))).finding("siblings")
    assert stuck.verdict is Verdict.VIOLATED
    at = {v.name: k for k, v in enumerate(system.variables)}
    last = stuck.trace.states[-1]
    (waiting,) = (
        c for c in range(2) if not last[at[f"writer[{c}].buffer_builder"]] and last[at[f"writer[{c}].records_left"]]
    )
    assert last[at["flow.consumer"]] == tuple("LIVE" if c == waiting else "STALLED" for c in range(2))
    assert last[at["flow.buffers_in_backlog"]][1 - waiting] + last[at[f"writer[{1 - waiting}].buffer_builder"]] == 2
