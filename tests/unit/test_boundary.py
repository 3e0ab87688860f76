"""Formulas that separate points: what is found agrees with every point, and none of as few clauses is smaller."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.base.errors import UsageError
from streamproof.sweep.boundary import Atom, Formula, ProductTerm, Separation, SumAtom, ValueAtom, separate

GRID: list[dict[str, Any]] = [
    {"word": word, "a": a, "b": b, "c": c}
    for word, a, b, c in product(("left", "right", "off"), range(3), range(1, 4), range(1, 3))
]
NUMBERS = ("a", "b", "c")


def marked(formula: Any) -> list[tuple[dict[str, Any], bool]]:
    """The grid, each point with what a formula or function says of it."""
    says = formula.at if isinstance(formula, Formula) else formula
    return [(point, says(point)) for point in GRID]


def found(mark: Any) -> Separation:
    """What separates the points of the grid where `mark` is true from the others."""
    return separate(marked(mark))


@st.composite
def terms(draw: st.DrawFn) -> ProductTerm:
    """A parameter, a product of two, or a product with one more or less of the first."""
    first = draw(st.sampled_from(NUMBERS))
    if draw(st.booleans()):
        return ProductTerm(first)
    second = draw(st.sampled_from([name for name in NUMBERS if name != first]))
    return ProductTerm(first, second, draw(st.integers(-1, 1)))


@st.composite
def atoms(draw: st.DrawFn) -> Atom:
    """A word, a comparison of one term, or of a parameter and another term."""
    if draw(st.integers(0, 3)) == 0:
        return ValueAtom("word", draw(st.sampled_from(("left", "right", "off"))), draw(st.booleans()))
    one = draw(terms())
    other = draw(terms().filter(lambda term: term != one))
    signs = st.sampled_from((1, -1))
    least = draw(st.integers(-3, 3))
    if (one.second is not None and other.second is not None) or draw(st.booleans()):
        return SumAtom(((draw(signs), one),), least)
    return SumAtom(((draw(signs), one), (draw(signs), other)), least)


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    """One or two clauses of one or two atoms, of either form, true of some points of the grid and not of all."""
    clause = st.lists(atoms(), min_size=1, max_size=2).map(tuple)
    drawn = st.builds(Formula, st.lists(clause, min_size=1, max_size=2).map(tuple), st.booleans())
    return draw(drawn.filter(lambda formula: len({mark for _, mark in marked(formula)}) == 2))


@settings(max_examples=20, deadline=None)
@given(formulas())
def test_a_formula_of_the_template_is_recovered(formula: Formula) -> None:
    """From the marks that a random formula gives the grid, one is found that gives the same, and is no larger."""
    said = found(formula)
    assert said.formula is not None
    assert marked(said.formula) == marked(formula)
    assert all(marked(other) == marked(formula) for other in said.others)
    assert len(said.formula.clauses) <= len(formula.clauses)
    if said.smallest and len(said.formula.clauses) == len(formula.clauses):
        assert said.formula.size <= formula.size


@pytest.mark.parametrize(
    ("text", "size", "mark"),
    [
        ("a >= 1", 2, lambda p: p["a"] >= 1),
        ("a <= 0", 2, lambda p: p["a"] == 0),
        ("word == off", 2, lambda p: p["word"] == "off"),
        ("word != off", 2, lambda p: p["word"] != "off"),
        ("a >= b", 2, lambda p: p["a"] > p["b"] - 1),
        ("a + b <= 3", 3, lambda p: p["a"] + p["b"] <= 3),
        ("a >= b * c", 4, lambda p: p["a"] >= p["b"] * p["c"]),
        ("2 * c > (a + 1) * b", 6, lambda p: 2 * p["c"] > (p["a"] + 1) * p["b"]),
        ("a > (b - 1) * c", 5, lambda p: p["a"] > (p["b"] - 1) * p["c"]),
        ("a >= 1 and word == left", 4, lambda p: p["a"] >= 1 and p["word"] == "left"),
        ("a >= 2 or word == left", 4, lambda p: p["a"] >= 2 or p["word"] == "left"),
        (
            "(a >= 2 and word == left) or (b >= 3 and word == off)",
            8,
            lambda p: (p["a"] >= 2 and p["word"] == "left") or (p["b"] >= 3 and p["word"] == "off"),
        ),
        (
            "(a >= 2 or word == left) and (b >= 3 or word == off)",
            8,
            lambda p: (p["a"] >= 2 or p["word"] == "left") and (p["b"] >= 3 or p["word"] == "off"),
        ),
    ],
)
def test_the_smallest_formula_is_found_and_reads_as_people_write_it(text: str, size: int, mark: Any) -> None:
    """Comparisons, words, products, conjunctions and disjunctions, each written in the obvious way."""
    said = found(mark)
    assert said.formula is not None
    assert (text in [str(said.formula), *map(str, said.others)], said.formula.size, said.smallest) == (True, size, True)


def test_nothing_smaller_separates_the_points() -> None:
    """Beside an exhaustive look at all formulas of one atom and of two: none of them is as small."""
    from streamproof.sweep.boundary import _atoms

    points = marked(lambda p: p["a"] >= 1 and p["b"] > p["c"])
    said = separate(points)
    assert said.formula is not None
    assert said.formula.size == 4
    every = sum(1 << at for at in range(len(points)))
    goal = sum(1 << at for at, (_, mark) in enumerate(points) if mark)
    small = [(atom, truth) for atom, truth in _atoms([point for point, _ in points]) if atom.size <= 2]
    assert goal not in {truth for _, truth in small}
    pairs = [(one, other) for one, p in small for other, q in small if p & q == goal and one.size + other.size < 4]
    assert pairs == []
    assert 0 < goal < every


def test_contradictory_points_are_refused() -> None:
    """A point that is both inside and outside is nobody's boundary."""
    with pytest.raises(UsageError, match=r"^the point a=1, b=2 is both inside and outside"):
        separate([({"a": 1, "b": 2}, True), ({"a": 2, "b": 2}, False), ({"a": 1, "b": 2}, False)])


def test_points_that_are_all_alike_are_refused() -> None:
    """Nothing separates points that are all inside, or all outside."""
    for mark in (True, False):
        with pytest.raises(UsageError, match=r"^all points are alike"):
            separate([({"a": 1}, mark), ({"a": 2}, mark)])


def test_where_the_template_has_no_formula_it_says_so() -> None:
    """Every other number of many is no combination of few inequalities."""
    said = separate([({"a": a}, a % 2 == 0) for a in range(20)])
    assert (said.formula, said.because) == (None, "the template has none of up to 4 clauses and size 24")


def test_a_search_that_is_given_up_claims_nothing() -> None:
    """With hardly any effort allowed there is neither a formula nor the claim that there is none."""
    points = marked(lambda p: (p["a"] >= 2 and p["word"] == "left") or (p["b"] >= 3 and p["word"] == "off"))
    said = separate(points, effort=10)
    assert said == Separation(None, because="the search for one of 1 clauses was given up")


def test_one_parameter_that_never_varies_is_in_no_formula() -> None:
    """Parameters with one value tell nothing apart."""
    said = separate([({"a": a, "b": 7}, a >= 2) for a in range(4)])
    assert (str(said.formula), said.others) == ("a >= 2", ())


def test_a_parameter_that_may_be_none_is_compared_but_not_computed_with() -> None:
    """None is a value of its own beside the numbers of an optional parameter."""
    points = [({"a": a, "most": most}, most is None and a > 0) for a in range(3) for most in (None, 0, 1)]
    formula = separate(points).formula
    assert formula is not None
    assert [formula.at(point) for point, _ in points] == [says for _, says in points]
    assert str(formula) == "a >= 1 and most == None"
