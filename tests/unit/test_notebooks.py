"""Values as a notebook shows them: tables of escaped text."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import streamproof as sp
from streamproof.system.verdict import Trace, Verdict


def cells(html: str) -> list[str]:
    """The text of all cells of a well-formed table."""
    return [cell.text or "" for cell in ElementTree.fromstring(html).iter() if cell.tag in ("td", "th")]


def test_results_and_systems() -> None:
    """Each value is one table, with the names and verdicts in it."""
    found = sp.check("reference.die_hard")
    assert {"measured", "holds", "overall"} <= set(cells(found._repr_html_()))
    assert found.coverage is not None
    assert "fill_small" in cells(found.coverage._repr_html_())
    trace = found.finding("measured").trace
    assert trace is not None
    assert cells(trace._repr_html_())[4] == "initial state"
    lasso = Trace((trace.states[0],), (), loop=0)
    assert "then stuttering" in lasso._repr_html_()
    odd = replace(found.system, name="<script>alert(1)</script>")
    assert "<script>" not in odd._repr_html_()
    assert "&lt;script&gt;" in odd._repr_html_()
    unknown = replace(found.findings[0], verdict=Verdict.INCONCLUSIVE, because="a < b")
    assert "a < b" in cells(replace(found, findings=(unknown,), stopped="time")._repr_html_())
