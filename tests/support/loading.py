"""Models that tests write: a module from its source text, with a file of its own, as the language reads sources."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(source: str, folder: Path, name: str | None = None) -> ModuleType:
    """The module `name`, or one named after its source, with this source, written into `folder`."""
    name = name or f"rules_{abs(hash(source))}"
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
