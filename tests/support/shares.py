"""Shares of long lists of cases: some run on every push, all of them in the long tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def share(cases: Iterable[Any], of: int, first: int = 0, *, whole: bool = False) -> list[ParameterSet]:
    """Every `of`-th case, from number `first` on, as it is; the others marked `long`. With `whole` a tuple is one value."""
    found = []
    for number, case in enumerate(cases):
        values, marks, name = case if isinstance(case, ParameterSet) else (_values(case, whole), (), None)
        rest = [] if number % of == first else [pytest.mark.long]
        found.append(pytest.param(*values, marks=[*marks, *rest], id=name))
    assert len(found) > first
    return found


def _values(case: Any, whole: bool) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) and not whole else (case,)
