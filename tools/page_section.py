"""Sections of `docs/runtime-runs.md` that tools write."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "runtime-runs.md"


def placed(page: str, section: str, text: str) -> str:
    """The page with the text of a section replaced. Raises `ValueError` for a page without it."""
    begin = page.index(f"<!-- {section} -->\n") + len(f"<!-- {section} -->\n")
    end = page.index(f"<!-- end of {section} -->")
    return f"{page[:begin]}\n{text}\n{page[end:]}"


def write_section(section: str, text: str) -> None:
    """Replaces a section of the page."""
    fresh = PAGE.with_suffix(".fresh")
    fresh.write_text(placed(PAGE.read_text(encoding="utf-8"), section, text), encoding="utf-8")
    os.replace(fresh, PAGE)
