"""Loading of generated Python functions, with their source in `linecache` for tracebacks and debuggers."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

_serial = count(1)


def load(name: str, subject: str, source: str, **given: Any) -> Callable[..., Any]:
    """The function `name` defined by `source`; tracebacks show `subject`, the name of the system.

    `given` has the values of the free names of the source.
    """
    filename = f"<{name} of {subject}, generated {next(_serial)}>"
    namespace: dict[str, Any] = dict(given)
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function
