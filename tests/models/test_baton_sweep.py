"""The published sweep of the baton: its table is what its page says, and what is decided again comes out the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shares import share
from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import explore
from streamproof.model_registry import find
from streamproof_models.scopes.enumeration import Bounds, graphs_of
from streamproof_models.scopes.text import parse

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "protocols"
ROWS: list[dict[str, Any]] = pq.read_table(FOLDER / "baton-sweep.parquet").to_pylist()
PROPERTIES = ("nothing_lost", "no_early_end", "everybody_terminates", "deadlock")


def of(part: str, variant: str | None = None) -> list[dict[str, Any]]:
    """The rows of one part of the sweep."""
    return [row for row in ROWS if (row["part"], row["variant"]) == (part, variant)]


def operators(row: dict[str, Any]) -> int:
    """How many operators a row's graph has."""
    return len(parse(row["topology"]).operators)


def test_the_table_covers_every_graph_of_its_bounds() -> None:
    """No graph is missing, and none is there twice: of five operators, and of six where each has one input."""
    for part, bounds in (("every", Bounds(5)), ("trees", Bounds(6, joins=0)), ("feedback", Bounds(4, feedback=4))):
        wanted = [str(g) for k in range(2, bounds.operators + 1) for g in graphs_of(k, bounds)]
        assert Counter(row["topology"] for row in of(part)) == Counter(wanted)
    nested = [row for row in of("trees") if any(s.level == 2 for s in parse(row["topology"]).scopes)]
    assert max(operators(row) for row in nested) == 6


def test_the_rules_hold_on_every_graph_of_the_table() -> None:
    """Each property holds at each row of the model itself, whatever the part."""
    own = [row for row in ROWS if row["variant"] is None]
    assert {row[name] for row in own for name in PROPERTIES} == {"holds"}
    assert len(own) > 7_000


def test_the_page_says_what_the_table_says() -> None:
    """The numbers of graphs and states by size, and each smallest graph that refutes a variant, are those of the table."""
    page = (FOLDER / "baton-sweep.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\| [\d ]*\| [^|]*\| (\d) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| none \|$", page, re.M)
    counted = []
    for part in dict.fromkeys(row["part"] for row in ROWS):
        sizes: dict[int, list[int]] = {}
        for row in of(part):
            sizes.setdefault(operators(row), []).append(row["states"])
        counted += [(str(n), f"{len(s):,}", f"{sum(s):,}", f"{max(s):,}") for n, s in sorted(sizes.items())]
    assert sorted(rows) == sorted(counted)
    shown = re.findall(r"\| (\w+) \| (\d+) \| `([^`]+)` \| (\d+) of (\d+) with (\d) operators \|$", page, re.M)
    assert len(shown) > 20
    for name, length, graph, alike, among, size in shown:
        same = [r for r in ROWS if r["variant"] and r["topology"] == graph and r[name] == "violated"]
        assert int(length) in {r[f"{name}_length"] for r in same}
        assert operators(same[0]) == int(size)
        assert 0 < int(alike) <= int(among)


@pytest.mark.parametrize(
    "row", share(of("every")[100:3800:400] + of("trees")[500::900], 3), ids=lambda row: str(row["topology"])
)
def test_rows_come_out_the_same(row: dict[str, Any]) -> None:
    """Some rows decided again: as many states, the same verdicts."""
    system = find("baton").system(None, {"topology": row["topology"], "work": row["work"]})
    found = explore(system, SearchOptions(properties=PROPERTIES))
    assert found.counts.distinct == row["states"]
    assert {f.property: f.verdict.value for f in found.findings} == {name: row[name] for name in PROPERTIES}
