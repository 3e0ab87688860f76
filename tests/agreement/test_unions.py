"""Unions mean the same in every engine: equal counts, in both tiers, in TLC, symbolically, and in plain Python."""

from __future__ import annotations

from typing import Any

from letters import Letters
from streamproof.conformance.event_log import agrees
from streamproof.system.sorts import BOOL, RangeSort, RecordSort, UnionSort


def test_letters_in_every_engine(panel: Any) -> None:
    """One model with unions in all containers: counts, states and verdicts of interpreter, both tiers and the solver."""
    system = Letters.system()
    referee = panel.interpreter_result(system)
    assert (referee.opinion.distinct, referee.opinion.generated, len(referee.opinion.levels)) == (2904, 9111, 15)
    referee.compare(panel.explored(system, "python"))
    referee.compare(panel.explored(system, "compiled"))
    referee.compare(panel.bounded(system, 3))


def test_recorded_values_of_a_union() -> None:
    """In an event log, a value of a union has its case as a tag and, of its fields, those that were recorded."""
    sort = UnionSort((("Ask", RecordSort((("number", RangeSort(0, 2)), ("of", BOOL)))), ("Stop", RecordSort(()))))
    assert agrees(sort, ("Ask", (1, True)), {"tag": "Ask", "value": {"number": 1}})
    assert agrees(sort, ("Stop", ()), {"tag": "Stop"})
    assert not agrees(sort, ("Ask", (1, True)), {"tag": "Ask", "value": {"number": 2}})
    assert not agrees(sort, ("Stop", ()), {"tag": "Ask", "value": {"number": 1}})
