"""Whether anything that decides a point has changed since it was decided: a hash of the source files."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import streamproof
from streamproof.registry import Target


def source_of(target: Target) -> str | None:
    """A hash of every file of the packages that a model and its properties come from, and of the checker.

    None for a model that is not in a package: a file may import anything.
    """
    spec = target.spec
    classes = (spec.model, *spec.model.variants.values())
    modules = {cls.__module__ for one in classes for cls in one.__mro__[:-1]}
    modules |= {function.__module__ for function in spec.properties} | {streamproof.__name__}
    hashed = hashlib.sha256()
    for package in sorted({module.partition(".")[0] for module in modules}):
        folders = getattr(sys.modules[package], "__path__", None)
        if folders is None:
            return None
        for file in sorted(file for folder in folders for file in Path(folder).rglob("*.py")):
            hashed.update(str(file).encode())
            hashed.update(file.read_bytes())
    return hashed.hexdigest()
