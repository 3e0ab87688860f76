"""`refines`, the claim that a model refines another one."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from streamproof.base.errors import ModelError
from streamproof.language.declare.model import Model
from streamproof.language.declare.primitives import RefinementMark, put_mark
from streamproof.language.lower.sources import caller

F = TypeVar("F", bound=Callable[..., Any])


def refines(
    spec: Any,
    mapping: Callable[..., Any] | Mapping[str, str] | None = None,
    /,
    *,
    variant: str | None = None,
    **parameters: Any,
) -> Any:
    """Claims that the model refines `spec`, a `Model` class or a `Spec`, under a refinement mapping.

    `mapping` is a function ``(self, s)`` that returns a dict with the value of every variable of `spec`, or a dict from
    variables of `spec` to variables of the model; variables of the same name and sort may be omitted. Without it,
    `refines(...)` is the decorator of such a function. Parameters of `spec`: a value, or the name of an attribute of
    the model.

    The claim consists of the properties NAME_start (initial states), NAME (steps) and, if `spec` has fairness
    constraints, NAME_fairness. Raises `ModelError` if `spec` is not a model.
    """
    loc = caller()
    model = spec if isinstance(spec, type) else getattr(spec, "model", None)
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise ModelError(
            f"refines({spec!r}) names no model",
            loc=loc,
            remedy="give a Model class or a Spec: @refines(TransactionCommit)",
        )
    given = tuple(parameters.items())
    if mapping is None:

        def mark(function: F) -> F:
            return put_mark(function, RefinementMark(model, variant, given, loc=loc))

        return mark
    if isinstance(mapping, types.FunctionType):
        return put_mark(mapping, RefinementMark(model, variant, given, loc=loc))
    if isinstance(mapping, Mapping) and all(isinstance(v, str) for v in mapping.values()):
        return put_mark(_carrier(), RefinementMark(model, variant, given, tuple(mapping.items()), loc))
    raise ModelError(
        f"{mapping!r} is not a mapping of states",
        loc=loc,
        remedy="write def seen(self, s): return dict(variable=value, ...), or {'variable': 'one of ours'}",
    )


def _carrier() -> types.FunctionType:
    """The function of a mark that contains the mapping."""

    def same_names(self: Any, s: Any) -> None:
        """The refinement of a model."""

    assert isinstance(same_names, types.FunctionType)
    return same_names
