"""The tables of the protocol pages have every counterexample with its length, and name variants that break a property."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nonempty import nonempty
from streamproof.model_registry import find

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "loop-checkpoints.md": ("loop_checkpoints", "loop_checkpoint_counts"),
    "main-thread.md": ("main_thread",),
    "partition-lifecycle.md": ("partition_lifecycle", "partition_counts"),
    "slots.md": ("slots", "slot_owners", "slot_pool", "slot_views", "logical_slot"),
    "regions.md": ("regions", "region_core", "task_descriptors"),
    "compositions.md": ("lifecycle_failover", "region_slots", "baton_channels"),
}
"""Page -> its models with a table of variants."""


def tables(page: str) -> Iterator[list[list[str]]]:
    """The tables of a page: rows of cells, the head first."""
    text = (ROOT / "docs" / "protocols" / page).read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
        yield [rows[0], *rows[2:]]


def names(cell: str) -> list[str]:
    """The names in code marks."""
    return re.findall(r"`([\w.-]+)`", cell)


def shown(page: str) -> set[tuple[str, str, int]]:
    """(variant, property, steps) in the tables of a page: lists side by side, or one cell for each property."""
    found = set()
    for head, *rows in tables(page):
        for row in rows if head[0] == "variant" else ():
            if head[-1] == "steps":
                pairs = list(zip(names(row[-2]), row[-1].split(", "), strict=True))
            else:
                cells = zip(map("".join, map(names, head)), row, strict=True)
                pairs = (
                    (name, match[1]) for name, cell in cells if (match := re.fullmatch(r"violated, (\d+) steps", cell))
                )
            for name, steps in pairs:
                found |= {(variant, name, int(steps)) for variant in names(row[0]) if steps != "-"}
    return found


def stored(model: str) -> set[tuple[str, str, int]]:
    """(variant, property, steps) of the committed counterexamples, the cycle of a lasso included."""
    found = set()
    for file in (ROOT / "counterexamples" / model).glob("*/*.txt"):
        length = re.search(r"^  length +(\d+) step", file.read_text(encoding="utf-8"), re.M)
        assert length, file
        found.add((file.parent.name, file.stem, int(length[1])))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_counterexample_has_its_length_on_the_page(page: str) -> None:
    """The tables of variants have the committed traces and no others."""
    assert shown(page) == set().union(*map(stored, PAGES[page]))


@pytest.mark.parametrize("page", PAGES)
def test_what_refutes_a_property_does(page: str) -> None:
    """Each variant in a column "refuted by" is expected to violate the property; a property without one notices a mutant."""
    lines = (Path(__file__).parents[1] / "models" / "noticed_mutants.tsv").read_text(encoding="utf-8").splitlines()
    noticing = {line.split("\t")[1] for line in lines if line.split("\t")[0] in PAGES[page]}
    expected: dict[str, set[str]] = {}
    for model in PAGES[page]:
        for variant, verdicts in find(model).spec.expected.items():
            expected.setdefault(variant, set()).update(verdicts)
    for row in nonempty(row for head, *rows in tables(page) if head[-1] == "refuted by" for row in rows):
        (name,) = names(row[0])
        refuting = [v for v in names(row[-1]) if v in expected]
        assert refuting or (row[-1].strip() == "mutants" and name in noticing), name
        assert [v for v in refuting if name not in expected[v]] == [], name
