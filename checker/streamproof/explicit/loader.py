"""Generated Python functions: compiled once, with their source where tracebacks and debuggers look for it."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

_serial = count(1)


def load(name: str, subject: str, source: str, **given: Any) -> Callable[..., Any]:
    """The function `name` that `source` defines; `subject` says in tracebacks what it was generated for.

    `given` are the values of the names that the source leaves open.
    """
    filename = f"<{name} of {subject}, generated {next(_serial)}>"
    namespace: dict[str, Any] = dict(given)
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function
