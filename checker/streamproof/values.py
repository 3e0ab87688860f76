"""Types of the variables of a state, for annotations that editors and type checkers read; `values.pyi` has their members.

At run time they are empty: annotations of rules have no effect on a model.
"""

from __future__ import annotations

from typing import Any


class _Annotation:
    """A type that accepts any arguments."""

    def __class_getitem__(cls, _: Any) -> type[_Annotation]:
        return cls


class ArrayOf(_Annotation):
    """The type of an `Array` variable: ``ArrayOf[index, element]``."""


class QueueOf(_Annotation):
    """The type of a `Queue` variable: ``QueueOf[element]``."""


class SetOf(_Annotation):
    """The type of a `Set` variable: ``SetOf[element]``."""


class BagOf(_Annotation):
    """The type of a `Bag` variable: ``BagOf[element]``."""
