"""`streamproof bugbench`: defects are found before their fix and not after it; a row unlike its file is reported."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nonempty import nonempty
from streamproof.api.bugbench import defects

ROOT = Path(__file__).parents[2]
FILES = ROOT / "specs" / "streamproof_specs" / "bugbench"
CHEAP = ("FLINK-16641", "FLINK-18595", "FLINK-12068")
GOOD = """
ticket = "X-1"
title = "the title"
story = "the story"
source = "somewhere"
model = "reference.die_hard"
property = "measured"
[buggy]
steps = 6
[fixed]
states = 16
"""


@pytest.mark.long
def test_all_defects(streamproof: Any) -> None:
    """Every defect is found within ten seconds, every fix holds; lengths and numbers of states are as expected."""
    done = streamproof("bugbench", "--json", "-")
    rows = json.loads(done.out)["defects"]
    assert done.code == 0
    assert len(rows) == len(list(FILES.glob("*.toml")))
    assert {row["buggy"]["verdict"] for row in rows} == {"violated"}
    assert {row["fixed"]["verdict"] for row in rows} == {"holds"}
    assert max(row["buggy"]["seconds"] for row in rows) < 10
    assert sum(row[side]["seconds"] for row in rows for side in ("buggy", "fixed")) < 180


def test_single_defects(streamproof: Any) -> None:
    """Chosen defects are printed in the order of their numbers, each with its title and the covered parameters."""
    done = streamproof("bugbench", *map(str.lower, CHEAP))
    assert done.code == 0
    printed = [line.split()[0] for line in done.out.splitlines() if line.startswith("FLINK")]
    assert printed == ["FLINK-12068", "FLINK-16641", "FLINK-18595"]
    assert "3 defects" in done.out
    assert "holds in credit_locks with channels=3" in done.out


def test_every_file_is_on_the_page() -> None:
    """The page lists each defect with its variant, property, steps and states."""
    page = (ROOT / "docs" / "bugbench.md").read_text(encoding="utf-8")
    every = defects(None)
    assert len(every) == len(list(FILES.glob("*.toml"))) > 12
    for one in every:
        variant = f"`{one.model} --variant {one.buggy.selection.variant}`"
        cells = (one.ticket, one.title, variant, f"`{one.property}`", one.buggy.expected, f"{one.fixed.expected:,}")
        assert f"| {' | '.join(map(str, cells))} |" in page
        assert tomllib.loads((FILES / f"{one.ticket.lower()}.toml").read_text())["ticket"] == one.ticket


def test_expected_violations_only() -> None:
    """Each pair is one that the specification of its model promises."""
    for one in nonempty(defects(None)):
        spec = one.buggy.selection.target.spec
        assert spec.expectation(one.buggy.selection.variant, one.property) == "violated", one.ticket
        assert spec.expectation(one.fixed.selection.variant, one.property) == "holds", one.ticket


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("steps = 6", "steps = 5", "before the fix: steps 6, expected 5"),
        ("states = 16", "states = 15", "after the fix: states 16, expected 15"),
        ("steps = 6", "steps = 6", "before the fix: verdict holds, expected violated"),
    ],
)
def test_a_row_unlike_its_file(streamproof: Any, folder: Path, old: str, new: str, said: str) -> None:
    """A length, a number of states or a verdict that differs is reported, and the exit code is 161."""
    (folder / "mine").mkdir()
    (folder / "mine" / "x-1.toml").write_text(GOOD.replace(old, new))
    done = streamproof("bugbench", "--folder", "mine", "--json", "out.json")
    assert done.code == 161
    assert said in done.out
    assert "1 not as expected" in done.out
    assert said in json.loads((folder / "out.json").read_text())["defects"][0]["problems"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "the title"\n', "", "title is missing"),
        ('title = "the title"', "title = 7", "title is not a text"),
        ("[fixed]", "more = 1\n[fixed]", "[buggy] more is unknown"),
        ("steps = 6", "steps = -6", "[buggy] steps is not a number of steps"),
        ("steps = 6", "steps = true", "[buggy] steps is not a number of steps"),
        ("steps = 6", "steps = 6\nparameters = 3", "[buggy] parameters is not a table"),
        ("steps = 6", "steps = 6\nparameters = { a = 3 }", "has no parameter 'a'"),
        ("steps = 6", 'steps = 6\nvariant = "none"', "has no variant 'none'"),
        ("reference.die_hard", "reference.die_hart", "unknown model 'reference.die_hart'"),
        ('"measured"', '"measure"', "has no property 'measure'"),
        ('"X-1"', '"X-2"', "its ticket is X-2, unlike its name"),
        ("[buggy]", "[buggy", "x-1.toml"),
        ("[buggy]", "[[buggy]]", "[buggy] is not a table"),
    ],
)
def test_a_bad_file(streamproof: Any, folder: Path, old: str, new: str, said: str) -> None:
    """A file of a wrong form is one message that names it, and exit code 2."""
    (folder / "mine").mkdir()
    (folder / "mine" / "x-1.toml").write_text(GOOD.replace(old, new))
    done = streamproof("bugbench", "--folder", "mine")
    assert done.code == 2
    assert said in done.err
    assert "x-1.toml" in done.err
    assert done.out == ""


def test_bad_choices(streamproof: Any, folder: Path) -> None:
    """An unknown ticket, a missing folder, a file in its place and an empty folder are one message each."""
    (folder / "empty").mkdir()
    (folder / "file").touch()
    for words, said in (
        (["FLINK-1"], "the defects: FLINK-2183"),
        (["FLINK-18596"], "FLINK-18595"),
        (["--folder", "nope"], "does not exist"),
        (["--folder", "file"], "is a file"),
        (["--folder", "empty"], "no defects in empty"),
    ):
        done = streamproof("bugbench", *words)
        assert done.code == 2
        assert said in done.err
