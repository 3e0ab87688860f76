"""Files and folders that the documents about the code name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("ARCHITECTURE.md", "docs/how-to-extend.md", "tests/README.md")
ROOTS = (
    "checker/streamproof/",
    "models/",
    "specs/",
    "runtime/",
    "tests/",
    "docs/",
    "tools/",
    "benchmarks/",
    "adapters/",
)


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    """Every path in code marks that begins with a folder of the project."""
    words = re.findall(r"`([\w./-]+/|[\w./-]+\.(?:py|md|toml))`", (ROOT / page).read_text(encoding="utf-8"))
    named = [w for w in words if w.startswith(ROOTS)]
    assert len(named) >= 1
    assert [w for w in named if not (ROOT / w).exists()] == []


def test_the_map_of_the_tests_is_complete() -> None:
    """The table in tests/README.md has a row for each folder of tests, and no row for a folder that does not exist."""
    rows = re.findall(r"^\| `([\w/]+)/` \|", (ROOT / "tests" / "README.md").read_text(encoding="utf-8"), re.M)
    folders = {file.parent.relative_to(ROOT / "tests").as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    assert "certificates/every_size" in folders
    assert sorted(rows) == sorted({*folders, "support", "data"})
