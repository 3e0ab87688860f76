"""A hook of the build: puts the commit into wheels and source distributions, for `streamproof --version`."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "streamproof/COMMIT", "sdist": "checker/streamproof/COMMIT"}


class Commit(BuildHookInterface[Any]):
    """Writes the file COMMIT of `streamproof.version`, where a commit is known."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to `build_data`; an editable installation asks Git when it runs."""
        source = Path(self.root, "checker", "streamproof")
        if version == "editable" or (source / "COMMIT").exists():
            return
        known = runpy.run_path(str(source / "version.py"))["commit"]()
        if known:
            self._folder = tempfile.TemporaryDirectory()
            written = Path(self._folder.name, "COMMIT")
            written.write_text(known + "\n", encoding="utf-8")
            build_data["force_include"][str(written)] = PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
