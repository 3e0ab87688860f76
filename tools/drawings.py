"""Draws `docs/images/*.dot` with Graphviz: each SVG beside its source, with the checksum of the source in it.

`tests/docs/test_pictures.py` compares the checksums, because versions of Graphviz place things differently.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from streamproof.exchange.drawings.dot import render_svg

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def mark(source: Path) -> str:
    """The comment that ties a drawing to its source."""
    return f"<!-- drawn from {source.name}, sha256 {hashlib.sha256(source.read_bytes()).hexdigest()} -->"


def main() -> int:
    """Draw every source whose drawing is missing or older; prints the paths."""
    for source in sorted(IMAGES.glob("*.dot")):
        drawing = source.with_suffix(".svg")
        if not drawing.exists() or mark(source) not in drawing.read_text(encoding="utf-8"):
            drawing.write_text(f"{render_svg(source.read_text(encoding='utf-8'))}{mark(source)}\n", encoding="utf-8")
            print(drawing.relative_to(IMAGES.parent.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
