"""TLC and Spin decide the pairs of FlinkBugBench as the bench does: violated before the fix, equally early, and not after it.

They read the exported models and share no code with our engines. For infinite behaviours they give no length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quick_tlc import QUICK
from shares import share
from streamproof.api.bugbench import Side, defects
from streamproof.exchange.promela import spin
from streamproof.exchange.tla import tlc
from streamproof.system import Kind, Verdict

TOOLS: dict[str, Any] = {
    "tlc": (tlc.decide, QUICK),
    "spin": (spin.decide, spin.SpinOptions()),
}
CHEAP = {("FLINK-14701", "tlc"), ("FLINK-19552", "spin")}
"""The pairs of `make test`; the others take ten seconds each."""
TICKETS = sorted(
    path.stem.upper() for path in (Path(__file__).parents[2] / "specs/streamproof_specs/bugbench").glob("*.toml")
)
CASES = [
    pytest.param(ticket, tool, marks=[] if (ticket, tool) in CHEAP else [pytest.mark.long], id=f"{ticket}-{tool}")
    for ticket in TICKETS
    for tool in TOOLS
]


def answer(tool: str, side: Side) -> tuple[Kind, Verdict, int | None]:
    """The kind of the property, the verdict of the other tool, and the number of states of its counterexample."""
    decide, options = TOOLS[tool]
    (decided,) = decide(side.selection.system(), side.selection.properties, options)
    return decided.kind, decided.verdict, decided.length


@pytest.mark.long
@pytest.mark.parametrize(("ticket", "tool"), share(CASES, 2))
def test_other_tools_confirm_the_pair(ticket: str, tool: str, request: pytest.FixtureRequest) -> None:
    """The defect is found after as many steps, and the fix holds at the same parameters."""
    if tool == "tlc":
        request.getfixturevalue("jar")
    elif spin.installed() is not None:
        pytest.skip(f"needs Spin: {spin.installed()}")
    (defect,) = defects(None, (ticket,))
    kind, verdict, length = answer(tool, defect.buggy)
    assert verdict is Verdict.VIOLATED
    if kind is not Kind.TEMPORAL:
        assert length == defect.buggy.expected + 1
    assert answer(tool, defect.fixed)[1:] == (Verdict.HOLDS, None)
