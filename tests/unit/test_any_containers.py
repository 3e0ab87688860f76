"""Proofs for every size of models with optional rows, and with copies of arrays whose length is a free parameter."""

from __future__ import annotations

from typing import Any

import pytest

import streamproof as sp
from streamproof import Array, Model, ModelError, Option, Range, State, Verdict, action, invariant, require
from streamproof.language.declare.spec import Spec
from streamproof.system.expr import Const
from streamproof.system.sorts import ArraySort, OptionSort, RangeSort
from streamproof.transform.ground import ground


class Rows(Model):
    """Rows that come and go."""

    n: int = 2
    check_deadlock = False

    def state(self) -> State:
        """A row or none for each index, and a table."""
        return State(
            row=Array(self.n, Option(Array(self.n, Range(0, 2)))), table=Array(self.n, Array(self.n, Range(0, 2)))
        )

    @action(i="n")
    def drop(self, s: Any, i: int) -> None:
        """None in place of a row."""
        require(s.row[i] is not None)
        s.row[i] = None

    @action(i="n")
    def put(self, s: Any, i: int) -> None:
        """A row of the table."""
        s.row[i] = s.table[i]

    @action(i="n")
    def up(self, s: Any, i: int) -> None:
        """One more in the table."""
        require(s.table[i][0] < 1)
        s.table[i][0] += 1

    @invariant
    def small(self, s: Any) -> bool:
        """True."""
        return all(s.row[i] is None or s.row[i][0] <= 1 for i in range(self.n)) and all(
            s.table[i][0] <= 1 for i in range(self.n)
        )


class Smaller(Rows):
    """With a property that is false."""

    @invariant
    def small(self, s: Any) -> bool:
        """False after two steps."""
        return all(s.row[i] is None or s.row[i][0] <= 0 for i in range(self.n))


class Exchange(Model):
    """A copy is kept while the array is replaced."""

    n: int = 2
    check_deadlock = False

    def state(self) -> State:
        """A table and a line."""
        return State(table=Array(self.n, Array(self.n, Range(0, 2))), line=Array(self.n, Range(0, 2)))

    @action(i="n")
    def swap(self, s: Any, i: int) -> None:
        """A row and the line."""
        old = list(s.line)
        s.line = s.table[i]
        s.table[i] = old

    @action(i="n")
    def up(self, s: Any, i: int) -> None:
        """One more."""
        require(s.line[i] < 1)
        s.line[i] += 1

    @invariant
    def small(self, s: Any) -> bool:
        """True."""
        return all(s.line[i] <= 1 for i in range(self.n)) and all(
            s.table[i][j] <= 1 for i in range(self.n) for j in range(self.n)
        )


class Shared(Exchange):
    """A copy of rows, which Python would share."""

    @action(i="n")
    def swap(self, s: Any, i: int) -> None:
        """Not readable for every n."""
        old = list(s.table)
        s.table[i] = s.line
        s.line = old[i]


def test_none_has_the_sort_of_its_size() -> None:
    """A rule that stores None in place of a row has, at each size, the rows of that size."""
    parametric = Spec(model=Rows).parametric(("n",))
    for n in (1, 3):
        system = ground(parametric, {"n": n})
        values = [term for i in system.action("drop").instances for _, term in i.updates]
        nothing = [t.value for t in values if hasattr(t, "value") and isinstance(t.value, Const)]
        rows = OptionSort(ArraySort(RangeSort(0, n - 1), RangeSort(0, 2)))
        assert [t.sort for t in nothing] == [rows] * n


def test_a_copy_of_rows_is_refused() -> None:
    """Python's list would share the rows."""
    with pytest.raises(ModelError, match="any number of elements"):
        Spec(model=Shared).parametric(("n",))
    assert Spec(model=Exchange).parametric(("n",)).system.action("swap")


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "verdict"), [(Rows, Verdict.HOLDS), (Smaller, Verdict.VIOLATED), (Exchange, Verdict.HOLDS)]
)
def test_proofs_for_every_size(model: type[Model], verdict: Verdict) -> None:
    """What holds is proved, with all cross-checks, and what does not is refuted."""
    assert sp.prove_any(model, ["n"]).finding("small").verdict is verdict
