"""Compilation of a model, a single machine or a composition, to a `System`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from streamproof.language.declarations import class_place
from streamproof.language.declare import Decl
from streamproof.language.model import Model
from streamproof.language.reader import Reader, deep
from streamproof.language.terms import article
from streamproof.system.errors import ModelError
from streamproof.system.model import System
from streamproof.system.unbounded import Unbounded, endless, ranges

if TYPE_CHECKING:
    from streamproof.language.composite import CompositeReader


def compile_model(
    model: Model,
    properties: Iterable[Callable[..., Any]] = (),
    *,
    termination: bool = False,
    without_properties: bool = False,
    carries: Mapping[str, Any] = MappingProxyType({}),
) -> System:
    """The transition system of `model` with its own and the given properties. Raises `ModelError` for a malformed model.

    `without_properties`: omit properties and lemmas, for the abstract model of a refinement. `carries`: properties
    stated outside the models of the parts of a composite.
    """
    with deep():
        reader = _reader(model, without_properties, None, carries)
        for name, decl in reader.declarations.items():
            if any(endless(part) for part in ranges(decl.sort)):
                raise Unbounded(
                    f"{name} is {article(decl.sort)} {decl.sort}: a search counts states, and there are too many",
                    loc=decl.loc,
                    remedy="declare a Range, or prove what must hold: streamproof prove",
                )
        return reader.run(tuple(properties), termination)


def compile_unbounded(
    model: Model,
    free: frozenset[str],
    properties: Iterable[Callable[..., Any]],
    *,
    temporal: bool = False,
    carries: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[System, Mapping[str, Decl]]:
    """The rules, properties and declarations of a model whose parameters `free` are symbolic.

    Temporal properties are included if `temporal`.
    """
    with deep():
        reader = _reader(model, False, free, carries)
        reader.safety_only = not temporal
        return reader.run(tuple(properties), False), reader.declarations


def _reader(
    model: Model, without_properties: bool, free: frozenset[str] | None, carries: Mapping[str, Any]
) -> Reader | CompositeReader:
    """The reader for a model, a single machine or a composition."""
    abstract = partial(compile_model, without_properties=True)
    if type(model).parts is Model.parts:
        if carries:
            raise ModelError(
                f"{type(model).title()} has no parts whose properties could be carried over",
                loc=class_place(type(model)),
                remedy="leave carries={...} out of its Spec",
            )
        return Reader(model, without_properties, free, abstract=abstract)
    from streamproof.language.composite import CompositeReader

    return CompositeReader(model, without_properties, free, carries, abstract)
