"""The page of reference models gives the published counts, and the verdicts that its commands really end with.

`tests/oracles` explores the larger models, with the same counts and verdicts.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from published_counts import COUNTED as COUNTED_HERE
from published_counts import COUNTED_BY_TLC, PUBLISHED
from shares import share
from streamproof.cli.verbs import run
from streamproof.model_registry import find

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference-models.md").read_text(encoding="utf-8")
COUNTED = re.findall(r"^\| (.*) \| `streamproof (check .*?)` \| ([\d,]+) \| ([\d,]+) \| (\d+) \|$", PAGE, re.M)
PROVED = re.findall(r"^\| `streamproof (prove .*?)` \| (\w+) \|", PAGE, re.M)
LARGE = "*"
"""Marks the rows that take long for a reader."""
QUICK = 1_000
"""States up to which the commands are run here."""


def answer(command: str, folder: Path) -> dict[str, Any]:
    """The JSON of a command of the page."""
    file = folder / "answer.json"
    run([*shlex.split(command), "-q", "--out", str(folder / "traces"), "--json", str(file)])
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def number(shown: str) -> int:
    """The number that is shown with separators."""
    return int(shown.replace(",", ""))


@pytest.mark.parametrize(("command", "counts"), [(c, n) for _, c, *n in COUNTED], ids=lambda v: str(v))
def test_published(command: str, counts: list[str]) -> None:
    """Every row is one of the models that `tests/oracles` explores, with its counts."""
    (_, title, *options) = shlex.split(command)
    given = {name: int(value) for name, _, value in (o.partition("=") for o in options if o != "-p")}
    cls = find(title).spec.model
    wanted = {**cls.parameters(), **given}
    rows = [
        r for r in PUBLISHED + COUNTED_BY_TLC + COUNTED_HERE if r[0] is cls and {**cls.parameters(), **r[1]} == wanted
    ]
    assert [list(r[2:]) for r in rows] == [[number(shown) for shown in counts]]


@pytest.mark.parametrize(
    ("command", "counts"), [(c, tuple(n)) for _, c, *n in COUNTED if number(n[0]) <= QUICK], ids=lambda v: str(v)
)
def test_counts(command: str, counts: tuple[str, str, str], tmp_path: Path) -> None:
    """Distinct and generated states and depth are those of the table, and everything holds."""
    document = answer(command, tmp_path)
    states = document["states"]
    assert tuple(f"{states[key]:,}" for key in ("distinct", "generated", "depth")) == counts
    assert document["verdict"] == "holds"


@pytest.mark.parametrize(("command", "verdict"), share(PROVED, 12))
def test_proofs(command: str, verdict: str, tmp_path: Path) -> None:
    """The attempt to prove ends as the table says."""
    assert answer(command, tmp_path)["verdict"] == verdict


def test_the_tables_are_complete() -> None:
    """Rows are found, and enough of them are small."""
    assert (len(COUNTED), len(PROVED)) == (23, 7)
    assert sum(LARGE in name for name, *_ in COUNTED) == 3
    assert sum(number(distinct) <= QUICK for _, _, distinct, *_ in COUNTED) == 8
