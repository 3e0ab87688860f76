"""Files and folders that the documents about the code name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("ARCHITECTURE.md", "docs/how-to-extend.md", "tests/README.md")
ROOTS = ("checker/streamproof/", "models/", "specs/", "runtime/", "tests/", "docs/", "tools/", "benchmarks/", "adapters/")


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    """Every path in code marks that begins with a folder of the project."""
    words = re.findall(r"`([\w./-]+/|[\w./-]+\.(?:py|md|toml))`", (ROOT / page).read_text(encoding="utf-8"))
    named = [w for w in words if w.startswith(ROOTS)]
    assert len(named) >= 1
    assert [w for w in named if not (ROOT / w).exists()] == []
