"""`replay`: replay a recorded trace, and check that it shows its property."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.api.origin import model_at_origin
from streamproof.api.subject import NO_PARAMETERS, Subject
from streamproof.base.errors import InputError
from streamproof.base.records import dataclass, replace
from streamproof.exchange.itf.reading import load, read_itf, read_meta
from streamproof.language.declare.declarations import parameter_types
from streamproof.model_registry import Target, titled, unknown
from streamproof.selection import Selection, selected
from streamproof.system.model import Property, System
from streamproof.system.verdict import Trace
from streamproof.traces.replay import replay as replay_trace
from streamproof.traces.replay import verify

if TYPE_CHECKING:
    from streamproof.exchange.itf.reading import Document


@dataclass(frozen=True, slots=True)
class Replayed:
    """A trace that the interpreter has replayed: a behaviour of `system` that shows `property`; None: only a behaviour."""

    system: System
    trace: Trace
    property: Property | None


def replay(
    trace: str | PathLike[str],
    model: Subject | None = None,
    property: str | None = None,
    *,
    variant: str | None = None,
    parameters: Mapping[str, Any] = NO_PARAMETERS,
) -> Replayed:
    """Replays a trace file in ITF in the interpreter, as `streamproof replay` does.

    Model, variant, parameters and property are those that the file names, unless they are given. Raises `InputError` for a
    file without a trace of the system, and `ReplayError` (exit code 161) if the trace is not a behaviour or does not show
    its property.
    """
    document = load(Path(trace))
    if isinstance(model, System):
        system, claimed = model, property if property is not None else read_meta(document).property
    else:
        name = model_of(document) if model is None else model
        meta = read_meta(document)
        selection = selected(name, variant if variant is not None else meta.variant, None, parameters)
        selection = with_recorded(document, selection)
        claimed = claim_of(document, selection, property)
        system = selection.system()
    return confirmed(document, system, claimed)


def confirmed(trace: Path | Document, system: System, claimed: str | None) -> Replayed:
    """The trace of a file, replayed on `system`, and the property that it shows.

    Raises `InputError` for a file without a trace of the system, `ReplayError` if the trace is not a behaviour or does not
    show its property, `EvaluationError` for an evaluation error of the model.
    """
    behaviour = read_itf(trace, system)
    shown = None if claimed is None else system.property(claimed)
    if shown is None:
        replay_trace(system, behaviour)
    else:
        verify(system, shown, behaviour)
    return Replayed(system, behaviour, shown)


def model_of(document: Document) -> str:
    """The model that a trace file names: that of its origin, if this user's streamproof wrote it, or a bundled one. Raises
    `InputError`."""
    meta, path = read_meta(document), document.name
    own = model_at_origin(read_meta(document).origin, document.name)
    if own is not None:
        return own
    if meta.origin is not None:
        raise InputError(
            f"{path} is of the model {meta.origin.text!r}, which is not here, or was named by another user",
            remedy="name it with --model path/to/file.py",
        )
    if meta.model is None:
        raise InputError(f"{path} names no model", remedy="name it with --model")
    target = titled(meta.model)
    if target is None:
        raise InputError(
            f"{path} is of the model {meta.model!r}, which is not a bundled model",
            remedy="name it with --model path/to/file.py",
        )
    return target.text


def with_recorded(document: Document, selection: Selection) -> Selection:
    """The selection with the parameters of a trace file, unless others are given. Raises `InputError`."""
    # With another variant the file's parameters still apply: the trace was found with them.
    recorded = _recorded(document.name, selection.target, selection.variant, read_meta(document).parameters)
    return replace(selection, given={**recorded, **selection.given}, properties=None)


def claim_of(document: Document, selection: Selection, prop: str | None) -> str | None:
    """The property that a trace is to show: the given one, or that of the file. Raises `UsageError` and `InputError`."""
    meta = read_meta(document)
    claimed = prop if prop is not None else meta.property
    known = {p.name: p.kind.value for p in selection.target.properties(selection.variant)}
    if claimed is not None and claimed not in known:
        raise unknown(f"{selection.target.name} has no property", claimed, known, "its properties")
    if claimed is not None and prop is None and meta.kind not in (None, known[claimed]):
        raise InputError(
            f"{document.name}: #meta.kind: {claimed} is of kind {known[claimed]}, the file says {meta.kind!r}",
            remedy="correct the file, or name the property with --property",
        )
    return claimed


def _recorded(path: str, target: Target, variant: str | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The file's parameters, converted to the types of the model."""
    cls = target.variant(variant)
    types, values = parameter_types(cls), {}
    for name, value in found.items():
        if name not in cls.parameters():
            raise InputError(
                f"{path}: #meta.parameters.{name}: {target.name} has no such parameter",
                remedy=f"its parameters: {', '.join(cls.parameters()) or 'none'}",
            )
        if not types[name].accepts(value):
            raise InputError(f"{path}: #meta.parameters.{name}: {value!r} is not of type {types[name]}")
        values[name] = value
    return values
