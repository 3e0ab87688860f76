"""Unions mean the same in every engine: equal counts, in both tiers, in TLC, symbolically, and in plain Python."""

from __future__ import annotations

from typing import Any

from letters import Letters


def test_letters_in_every_engine(panel: Any) -> None:
    """One model with unions in all containers: counts, states and verdicts of interpreter, both tiers and the solver."""
    system = Letters.system()
    referee = panel.interpreter_result(system)
    assert (referee.opinion.distinct, referee.opinion.generated, len(referee.opinion.levels)) == (2904, 9111, 15)
    referee.compare(panel.explored(system, "python"))
    referee.compare(panel.explored(system, "compiled"))
    referee.compare(panel.bounded(system, 3))
