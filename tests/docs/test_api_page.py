"""docs/api.md is made from the docstrings of the public door, and has each public function and result."""

from __future__ import annotations

import runpy
from pathlib import Path

import streamproof

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current() -> None:
    """The page is what `tools/api_page.py` writes."""
    tool = runpy.run_path(str(ROOT / "tools" / "api_page.py"))
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == tool["page"]()


def test_the_page_has_each_name() -> None:
    """Each name that models and logs are checked with has a section."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = [name for _, listed in streamproof.USING.values() for name in listed.split()]
    assert len(names) > 20
    assert [name for name in names if f"\n### `{name}`\n" not in text] == []
