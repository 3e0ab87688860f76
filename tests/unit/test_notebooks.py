"""Values as a notebook shows them, tables of escaped text; and the notebook of the documentation, cell by cell."""

from __future__ import annotations

import ast
import json
import linecache
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import streamproof as sp
from nonempty import nonempty
from streamproof.system.verdict import Trace, Verdict


def cells_of(html: str) -> list[str]:
    """The text of all cells of a well-formed table."""
    return [cell.text or "" for cell in ElementTree.fromstring(html).iter() if cell.tag in ("td", "th")]


def test_results_and_systems() -> None:
    """Each value is one table, with the names and verdicts in it."""
    found = sp.check("reference.die_hard")
    assert {"measured", "holds", "overall"} <= set(cells_of(found._repr_html_()))
    assert found.coverage is not None
    assert "fill_small" in cells_of(found.coverage._repr_html_())
    trace = found.finding("measured").trace
    assert trace is not None
    assert cells_of(trace._repr_html_())[4] == "initial state"
    lasso = Trace((trace.states[0],), (), loop=0)
    assert "then stuttering" in lasso._repr_html_()
    odd = replace(found.system, name="<script>alert(1)</script>")
    assert "<script>" not in odd._repr_html_()
    assert "&lt;script&gt;" in odd._repr_html_()
    unknown = replace(found.findings[0], verdict=Verdict.INCONCLUSIVE, because="a < b")
    assert "a < b" in cells_of(replace(found, findings=(unknown,), stopped="time")._repr_html_())


NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


def shown(source: str, number: int, space: dict[str, Any]) -> str:
    """What a notebook shows of a cell: its output, and the display of its last expression; run by Python alone."""
    file = f"<cell {number}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # as IPython does
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    output = StringIO()
    with redirect_stdout(output):
        exec(compile(tree, file, "exec"), space)
        value = eval(compile(ast.Expression(last.value), file, "eval"), space) if isinstance(last, ast.Expr) else None
    html = getattr(value, "_repr_html_", None)
    return output.getvalue() + (html() if html is not None else "")


def test_the_tutorial_notebook_runs() -> None:
    """Each cell of code in order, in one namespace; the text says what the displays show. It is stored without output."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in nonempty(code))
    space: dict[str, Any] = {"__name__": "__main__"}
    model, found, trace, repaired, coverage, score = (
        shown("".join(cell["source"]), number, space) for number, cell in enumerate(code)
    )
    assert {"variable", "action", "property", "no_overrun"} <= set(cells_of(model))
    assert cells_of(found).count("violated") >= 1
    assert cells_of(trace)[-2].startswith("send")
    assert "violated" not in cells_of(repaired)
    assert cells_of(repaired).count("holds") >= 3
    assert {"send", "arrive", "consume", "receive"} <= set(cells_of(coverage))
    assert re.match(r"score \d+%", score)
