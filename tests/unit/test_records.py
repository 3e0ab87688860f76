"""Dataclasses whose methods are written at first use behave as the standard ones."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from streamproof.base.records import annotated, replace
from streamproof.base.records import dataclass as late

MAKERS = [dataclasses.dataclass, late]


def classes(maker: Any) -> tuple[type, type]:
    """A frozen class with slots, defaults and what is computed, and one that inherits from it."""

    @maker(frozen=True, slots=True)
    class Point:
        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        tags: tuple[str, ...] = ()
        total: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    @maker(frozen=True, slots=True)
    class Named(Point):
        name: str = dataclasses.field(default="-", repr=False)

    return Point, Named


@pytest.mark.parametrize("maker", MAKERS)
def test_objects(maker: Any) -> None:
    """Construction, text, equality, hash, matching, replacement and refusals are those of the standard decorator."""
    point, named = classes(maker)
    one, two = point(1), point(1, y=2)
    assert repr(one).endswith("Point(x=1, y=2, tags=(), total=3)")
    assert one == two
    assert hash(one) == hash(two)
    assert one != point(2)
    assert one != named(1)
    assert repr(named(1, name="n")).endswith("Named(x=1, y=2, tags=(), total=3)")
    assert named(1, 2, (), "n").name == "n"
    assert named.__match_args__ == ("x", "y", "tags", "name")
    assert dataclasses.replace(one, y=5).total == 6
    assert [f.name for f in dataclasses.fields(named)] == ["x", "y", "tags", "total", "name"]
    assert dataclasses.asdict(one) == {"x": 1, "y": 2, "tags": (), "total": 3}
    assert dataclasses.is_dataclass(named)
    assert not hasattr(one, "__dict__")
    for change in (lambda: setattr(one, "x", 3), lambda: delattr(one, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        named(1, z=1)


@pytest.mark.parametrize("maker", MAKERS)
def test_changeable(maker: Any) -> None:
    """Without `frozen` objects can be changed and have no hash; defaults that are made are made anew."""

    @maker
    class Box:
        inside: list[int] = dataclasses.field(default_factory=list)
        size: int = 3

        def __repr__(self) -> str:
            return "a box"

    one, two = Box(), Box()
    one.inside.append(1)
    one.size = 4
    assert (two.inside, two.size, Box.size) == ([], 3, 3)
    assert not hasattr(Box, "inside")
    assert repr(one) == "a box"
    assert one != two
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize("maker", MAKERS)
def test_identity(maker: Any) -> None:
    """With ``eq=False`` an object equals itself only."""

    @maker(frozen=True, eq=False, repr=False, slots=True)
    class Node:
        value: int

    assert Node(1) != Node(1)
    assert "Node object" in repr(Node(1))


@pytest.mark.parametrize("replaced", [dataclasses.replace, replace])
def test_replaced(replaced: Any) -> None:
    """Our `replace` keeps, changes, computes anew and refuses what the standard one does."""
    point, named = classes(late)
    one = named(1, 2, ("a",), "n")
    two = replaced(one, y=5, name="m")
    assert type(two) is named
    assert (two.x, two.y, two.tags, two.name, two.total) == (1, 5, ("a",), "m", 6)
    assert (one.y, one.name, one.total) == (2, "n", 3)
    assert replaced(point(4)) == point(4)
    with pytest.raises(ValueError, match="total"):
        replaced(one, total=7)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replaced(one, z=7)


def test_annotated() -> None:
    """The fields of a class come with their annotations, inherited ones first."""
    _, named = classes(late)
    assert annotated(named) == {"x": "int", "y": "int", "tags": "tuple[str, ...]", "total": "int", "name": "str"}


@late(frozen=True, slots=True)
class Sent:
    """Something to pickle."""

    a: int
    b: str = "b"


def test_pickled() -> None:
    """Frozen objects with slots can be pickled, and compared before anything else was done with their class."""
    assert pickle.loads(pickle.dumps(Sent(1))) == Sent(1)


def test_standard_base() -> None:
    """A base made by the standard decorator is refused: its fields would be lost."""

    @dataclasses.dataclass
    class Base:
        a: int

    with pytest.raises(TypeError, match="must be made by streamproof's dataclass"):

        @late
        class Derived(Base):
            b: int


@pytest.mark.parametrize("maker", MAKERS)
def test_arguments_in_any_order(maker: Any) -> None:
    """Fields by position, by name, only by name and left out; classes with as many fields keep their own names."""

    @maker(frozen=True, slots=True)
    class Bolt:
        size: int
        name: str = "m4"
        grade: int = dataclasses.field(default=8, kw_only=True)
        turns: int = dataclasses.field(kw_only=True)

    @maker(frozen=True, slots=True)
    class Screw:
        length: int
        head: str = "flat"
        pitch: int = dataclasses.field(default=1, kw_only=True)
        count: int = dataclasses.field(kw_only=True)

    bolt, screw = Bolt(turns=2, size=1), Screw(3, "round", count=4, pitch=5)
    assert (bolt.size, bolt.name, bolt.grade, bolt.turns) == (1, "m4", 8, 2)
    assert (screw.length, screw.head, screw.pitch, screw.count) == (3, "round", 5, 4)
    with pytest.raises(TypeError, match="positional argument"):
        Bolt(1, "m5", 9, turns=3)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'count'"):
        Screw(3)


@pytest.mark.parametrize("maker", MAKERS)
def test_defaults_come_last(maker: Any) -> None:
    """A field without a default after one with a default is refused, at the latest when the first object is made."""

    class Pair:
        first: int = 1
        second: int

    with pytest.raises(TypeError, match="non-default argument 'second' follows default argument"):
        maker(Pair)(1, 2)
