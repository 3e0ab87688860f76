"""Print the lower bounds of the dependencies as exact versions, for `make test-lowest`.

The versions of a requirement `name>=bound` become `name==bound`; all extras are included, and pytest with its plugins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("pytest", "hypothesis")
"""Beginnings of the names of development tools that the tests need."""


def lowest() -> Iterator[str]:
    """The requirements of an environment with the lowest versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        needed += extra
    for text in dict.fromkeys(needed):
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)", text)
        if found is None:
            raise ValueError(f"pyproject.toml: {text!r} has no lower bound of the form name>=version")
        yield f"{found[1]}=={found[2]}"
    yield from (tool for tool in project["dependency-groups"]["dev"] if tool.startswith(TESTS))


if __name__ == "__main__":
    print(*lowest(), sep="\n")
