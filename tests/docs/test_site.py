"""The documentation site has every document, and builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"


def test_every_document_is_in_the_contents() -> None:
    """The table of contents names each document once, and no other."""
    named = re.findall(r"^(\.\./\S+)$", (SITE / "index.md").read_text(encoding="utf-8"), re.M)
    listed = [(SITE / f"{name}.md").resolve() for name in named]
    documents = [*ROOT.glob("*.md"), ROOT / "tests" / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(path for path in documents if path.parent != SITE)


@pytest.mark.long
def test_the_site_builds(tmp_path: Path) -> None:
    """`make site` finds no broken link and no page without a place."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(SITE), str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "docs" / "site" / "index.html").exists()
