"""The page of reference models gives the counts and verdicts that its commands really end with."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from streamproof.cli.app import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference-models.md").read_text(encoding="utf-8")
COUNTED = re.findall(r"^\| (.*) \| `streamproof (check .*?)` \| ([\d,]+) \| ([\d,]+) \| (\d+) \|$", PAGE, re.M)
PROVED = re.findall(r"^\| `streamproof (prove .*?)` \| (\w+) \|", PAGE, re.M)
LARGE = "*"
"""Marks the rows that take minutes; `tests/oracles` has them."""


def answer(command: str, folder: Path) -> dict[str, Any]:
    """The JSON of a command of the page."""
    file = folder / "answer.json"
    run([*shlex.split(command), "-q", "--out", str(folder / "traces"), "--json", str(file)])
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize(
    ("command", "counts"), [(c, tuple(n)) for name, c, *n in COUNTED if LARGE not in name], ids=lambda v: str(v)
)
def test_counts(command: str, counts: tuple[str, str, str], tmp_path: Path) -> None:
    """Distinct and generated states and depth are those of the table, and everything holds."""
    document = answer(command, tmp_path)
    states = document["states"]
    assert tuple(f"{states[key]:,}" for key in ("distinct", "generated", "depth")) == counts
    assert document["verdict"] == "holds"


@pytest.mark.parametrize(("command", "verdict"), PROVED)
def test_proofs(command: str, verdict: str, tmp_path: Path) -> None:
    """The attempt to prove ends as the table says."""
    assert answer(command, tmp_path)["verdict"] == verdict


def test_the_tables_are_complete() -> None:
    """Rows are found, and only those that take long are left out."""
    assert (len(COUNTED), len(PROVED)) == (18, 7)
    assert sum(LARGE in name for name, *_ in COUNTED) == 3
