"""Keys of known dicts mean what they mean to Python, or are refused at the line that looks one up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HEAD = """
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from streamproof import Model, Range, State, action, invariant


class One:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return other == 1


class Other:
    pass


TABLE = {table}


class M(Model):
    check_deadlock = False

    def state(self):
        return State(k=Range(0, 2), x=Range(0, 9))

    @action(i=range(3))
    def pick(self, s, i):
        s.k = i

    @action
    def pay(self, s):
        s.x = TABLE[s.k]

    @invariant
    def cheap(self, s):
        return s.x < 4
"""
LINE = 1 + HEAD[: HEAD.index("TABLE[s.k]")].count("\n")


@pytest.mark.parametrize(
    "table",
    [
        "Counter({1.0: 5, 2: 3})",
        "defaultdict(int, {1.0: 5, 2: 3})",
        "{0: 0, 1.0: 5, 2: 3}",
        "{0: 0, Fraction(1): 5, 2: 3}",
        "{0: 0, Decimal(1): 5, 2: 3}",
        "{0: 0, complex(1): 5, 2: 3}",
        "{0: 0, One(): 5, 2: 3}",
    ],
)
def test_keys_that_may_be_equal_to_a_value_are_refused(table: str, streamproof: Any, folder: Path) -> None:
    """Python finds 5 there; none is passed over."""
    (folder / "m.py").write_text(HEAD.replace("{table}", table))
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert f"m.py:{LINE}: the key " in done.err
    assert "may be equal to a value of Range(0, 2)" in done.err


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("{0: 0, 1: 1, 2: 3}", 0),
        ("{0: 0, True: 1, 2: 3}", 0),
        ("{0: 0, True: 5, 2: 3}", 12),
        ("{0: 0, 1: 1, 2: 3, Other(): 9, 'a': 9, None: 9, (1,): 9, 7: 9}", 0),
        ("OrderedDict({0: 0, 1: 1, 2: 3})", 0),
        ("types.MappingProxyType({0: 0, 1: 1, 2: 3})", 0),
        ("types.MappingProxyType(Counter({0: 1}))", 0),
        ("types.MappingProxyType(defaultdict(lambda: 5, {0: 1}))", 12),
    ],
)
def test_other_keys_are_distinguished(table: str, code: int, streamproof: Any, folder: Path) -> None:
    """Truth values are numbers; what is equal to itself alone is never met."""
    (folder / "m.py").write_text(HEAD.replace("{table}", table))
    assert streamproof("check", "m.py").code == code


@pytest.mark.parametrize("table", ["UserDict({0: 0})", "ChainMap(Counter({0: 0}))"])
def test_mappings_that_are_no_dicts_are_refused(table: str, streamproof: Any, folder: Path) -> None:
    """How they find a key is their own affair."""
    (folder / "m.py").write_text(HEAD.replace("{table}", table))
    done = streamproof("check", "m.py")
    assert done.code == 150
    assert f"m.py:{LINE}: a {table.partition('(')[0]} has its own way to find a key" in done.err
