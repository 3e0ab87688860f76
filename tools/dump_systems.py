"""The transition systems of all bundled models and variants as text, to compare before and after a change of lowering.

``dump_systems.py FOLDER [MODEL ...]`` writes one file per model, variant and form: ``system`` as the language makes it,
``scalarised``, ``simplified`` and ``measures``, and with each number as a free parameter ``free``. The file of a rejected
model has its message. It prints the SHA-256 of each file: compare the lists first, then the files that differ.
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from streamproof import model_registry
from streamproof.base.errors import StreamproofError
from streamproof.model_registry import Target
from streamproof.system import expr as e
from streamproof.transform.assume import simplify
from streamproof.transform.scalarise import scalarise

ROOT = str(Path(__file__).resolve().parents[1]) + os.sep


class Text:
    """Writes values as text; a shared term is written once, and referred to by its number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[e.Expr, int] = {}

    def of(self, value: Any) -> str:
        """The text of a value, after the lines for its terms."""
        if isinstance(value, e.Node):
            for term in e.subterms(value):  # type: ignore[arg-type]
                if term not in self._numbers:
                    parts = " ".join(f"{f.name}={self.of(getattr(term, f.name))}" for f in fields(term))
                    self._numbers[term] = len(self._numbers)
                    self.lines.append(f"#{self._numbers[term]} {type(term).__name__} {parts}")
            return f"#{self._numbers[value]}"  # type: ignore[index]
        if isinstance(value, Enum):
            return str(value)
        if is_dataclass(value) and not isinstance(value, type):
            parts = ", ".join(f"{f.name}={self.of(getattr(value, f.name))}" for f in fields(value))
            return f"{type(value).__name__}({parts})"
        if isinstance(value, frozenset):
            return f"{{{', '.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{self.of(k)}: {self.of(v)}' for k, v in value.items())}}}"
        if isinstance(value, tuple | list):
            return f"({', '.join(map(self.of, value))})"
        return repr(value).replace(ROOT, "")

    def write(self, value: Any) -> None:
        """Adds a line for each part of a value."""
        for f in fields(value) if is_dataclass(value) else ():
            part = getattr(value, f.name)
            for item in part if isinstance(part, tuple) else (part,):
                self.lines.append(f"{f.name}: {self.of(item)}")


def forms(target: Target, variant: str | None) -> Iterator[tuple[str, Callable[[], tuple[Any, ...]]]]:
    """The forms of one variant, each with the function that makes it."""
    yield "system", lambda: (target.system(variant, {}),)
    yield "scalarised", lambda: (scalarise(target.system(variant, {})).system,)
    yield "simplified", lambda: (simplify(scalarise(target.system(variant, {})).system),)
    yield "measures", lambda: target.measures(variant, {})
    for name, value in target.defaults(variant).items():
        if type(value) is int:
            yield f"free-{name}", lambda name=name: (target.endless(variant, {}, [name]),)  # type: ignore[misc]


def dump(folder: Path, name: str, variant: str | None) -> None:
    """Writes the files of one variant, and prints their hashes."""
    target = model_registry.find(name)
    for form, make in forms(target, variant):
        text, begun = Text(), time.process_time()
        try:
            for value in make():
                text.write(value)
        except StreamproofError as error:
            text.lines = [f"{type(error).__name__}: {error}".replace(ROOT, "")]
        content = "\n".join(text.lines) + "\n"
        file = folder / f"{name}.{variant or ''}.{form}.txt"
        file.write_text(content, encoding="utf-8")
        digest = hashlib.sha256(content.encode()).hexdigest()
        print(f"{digest} {file.name}", flush=True)
        print(f"{time.process_time() - begun:8.2f} s {file.name}", file=sys.stderr, flush=True)


def main() -> None:
    """Write the files, each variant in a process of its own, so that no term is shared with another."""
    gc.disable()
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or model_registry.bundled():
        for variant in (None, *model_registry.find(name).spec.model.variants):
            process = os.fork()
            if process == 0:
                dump(folder, name, variant)
                os._exit(0)
            if os.waitpid(process, 0)[1] != 0:
                raise SystemExit(f"{name} {variant or ''} failed")


if __name__ == "__main__":
    main()
