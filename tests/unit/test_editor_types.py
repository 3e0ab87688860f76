"""Type checkers know the parameters of a model, and the variables where an author lists them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

from streamproof import explore
from streamproof.registry import find

SOURCE = """
from typing import Protocol
from streamproof import Model, Range, State, action, require

class Variables(Protocol):
    n: int

class Typed(Model):
    limit: int = 3
    check_deadlock = False

    def state(self):
        return State(n=Range(0, self.limit))

    @action
    def increment(self, s: Variables):
        require(s.n < self.limit)
        s.n += 1
"""
WRONG = """
    @action
    def wrong(self, s: Variables):
        s.m = 1

Typed(limit=2)
Typed(limit="2")
Typed(limt=2)
"""


def test_annotations_of_rules_have_no_effect(tmp_path: Path) -> None:
    """A rule with an annotated state is the same rule."""
    (tmp_path / "typed.py").write_text(SOURCE)
    counts = explore(find(str(tmp_path / "typed.py")).spec.system(None)).counts
    assert counts is not None
    assert counts.distinct == 4


@pytest.mark.long
def test_mypy_knows_parameters_and_variables(tmp_path: Path) -> None:
    """A misspelt variable, a parameter of another type and an unknown one are reported, and nothing else."""
    file = tmp_path / "typed.py"
    file.write_text(SOURCE + WRONG)
    out, err, _ = api.run(["--config-file=", "--check-untyped-defs", "--cache-dir", str(tmp_path / "cache"), str(file)])
    assert err == ""
    assert [line.partition("error: ")[2].partition(";")[0] for line in out.splitlines()[:-1]] == [
        '"Variables" has no attribute "m"  [attr-defined]',
        'Argument "limit" to "Typed" has incompatible type "str"',
        'Unexpected keyword argument "limt" for "Typed"',
    ]
