"""Several initial values, by element: `any_of` and `ANY` in arrays, records, options, queues and sets."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof import ANY, Array, Bool, ModelError, Option, Queue, Range, Record, Set, any_of

EDGES = [(0, 1), (1, 0)]
COUNT = Range(0, 3)


@pytest.mark.parametrize(
    ("declared", "first"),
    [
        (Array(2, COUNT, init=[0, any_of(1, 2)]), [(0, 1), (0, 2)]),
        (Array(2, COUNT, init=[ANY, 0]), [(0, 0), (1, 0), (2, 0), (3, 0)]),
        (Array(2, COUNT, init=any_of([0, 1], [1, 0])), [(0, 1), (1, 0)]),
        (Array(2, Range(0, 3, init=any_of(1, 2))), [(1, 1), (1, 2), (2, 1), (2, 2)]),
        (Array(EDGES, COUNT, init={(0, 1): any_of(0, 1), (1, 0): 2}), [(0, 2), (1, 2)]),
        (Array(EDGES, Option(COUNT), init={(0, 1): None, (1, 0): any_of(None, 3)}), [(None, None), (None, 3)]),
        (Array(2, Array(2, COUNT), init=[[0, any_of(1, 2)], [0, 0]]), [((0, 1), (0, 0)), ((0, 2), (0, 0))]),
        (Record(a=COUNT, b=Bool(), init={"a": any_of(0, 1), "b": ANY}), [(0, False), (0, True), (1, False), (1, True)]),
        (Option(Record(a=COUNT, b=Bool()), init={"a": 1, "b": ANY}), [(1, False), (1, True)]),
        (Option(COUNT, init=any_of(None, 2)), [None, 2]),
        (Queue(COUNT, capacity=2, init=[any_of(1, 2)]), [(1,), (2,)]),
        (Set(COUNT, init=[any_of(1, 2), 3]), [{1, 3}, {2, 3}]),
        (Array(0, COUNT, init=[]), [()]),
    ],
    ids=str,
)
def test_each_combination_is_an_initial_value(declared: Any, first: list[Any]) -> None:
    """Choices in different parts are independent, and nothing else is initial."""
    assert list(declared.first) == first


@pytest.mark.parametrize("init", [any_of(0, 1), {"a": any_of(0, 1)}], ids=str)
def test_one_choice_for_all_elements_is_ambiguous(init: Any) -> None:
    """One value of the element for an array is all elements'; one choice could be one or independent ones."""
    element = Record(a=COUNT) if isinstance(init, dict) else COUNT
    with pytest.raises(ModelError, match=r"any_of\(0, 1\).* are those of one element") as caught:
        Array(2, element, init=init)
    assert "independent choices" in (caught.value.remedy or "")
