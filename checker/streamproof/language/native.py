"""`Native`: native execution of a model, a single machine or a composition, as plain Python."""

from __future__ import annotations

from streamproof.language.machines import is_composite
from streamproof.language.model import Model
from streamproof.language.native_composite import NativeComposite
from streamproof.language.native_machine import NativeMachine


def Native(model: Model) -> NativeMachine:
    """A model whose rules and properties run as ordinary Python functions.

        credit = Native(Credit(channels=2))
        state = next(credit.initial())
        state = credit.step(state, "send", 0)

    States are tuples, as in `System`; a mapping from variable names to values is also accepted.
    """
    return NativeComposite(model) if is_composite(model) else NativeMachine(model)
