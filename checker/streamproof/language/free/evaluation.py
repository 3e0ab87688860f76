"""Functions of the user that compute with free parameters outside rules: ``setup()``, ``state()``, ``parts()``, domains.

The syntax tree of each is lowered, as that of a rule is, with the parameters as terms; what is not part of the language is
rejected at its line. Only a function that gets no model runs as ordinary Python. In ``setup()`` the attributes of the model
are a local dictionary until the end.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.language.declare.model import Model
from streamproof.language.free.host_values import host_value
from streamproof.language.free.symbolic_parameters import (
    ParameterWatch,
    depends,
    native,
    watch,
)
from streamproof.language.lower import inlining
from streamproof.language.lower.lowering import Lowering
from streamproof.language.lower.lowering_context import Context, Halt
from streamproof.language.lower.model_reader import deep
from streamproof.language.lower.sources import ordinary
from streamproof.transform.unbounded import Undecided


def evaluate(
    function: Callable[..., Any], args: tuple[Any, ...], what: str, home: Loc | None, model: Model | None = None
) -> Any:
    """The result of a function of the user; `model` receives the attributes that it assigns. Raises `ModelError`."""
    own = watch()
    assert own is not None
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType) or not any(map(depends, (getattr(function, "__self__", None), *args))):
        return ordinary(partial(native, function, *args), what, home)
    loc = home or Loc(plain.__code__.co_filename, plain.__code__.co_firstlineno, plain.__name__)
    try:
        with deep():
            return _lowered(own, function, args, what, loc, model)
    except ModelError as error:  # the user's code may have called this, and catch it
        own.refused.append(error)
        raise


def _lowered(
    own: ParameterWatch,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    what: str,
    loc: Loc,
    model: Model | None,
) -> Any:
    """The result of a function by lowering."""
    context = Context({}, {}, what, in_action=False, free=own.free)
    if model is not None:
        context.attributes = model, context.allocate({})
    ev = Lowering(context)
    halted, term = False, None
    with own.lowering():
        try:
            if isinstance(function, types.FunctionType) and function.__name__ == "<lambda>":
                term = inlining.lambda_value(ev, function, list(args), loc)
            else:
                term = inlining.inline(ev, function, list(args), {}, 0, loc)
        except Halt:
            halted = True
    if context.checks or halted:
        check = context.checks[0].check if context.checks else None
        raise Undecided(
            f"{check.message if check else what + ' fails'} at some values of the parameters",
            loc=check.loc if check else loc,
            remedy="declare limits that exclude them, or give the parameter a value",
        )
    if context.attributes is not None:
        content = context.content(context.attributes[1])
        assert isinstance(content, Mapping)
        for name, value in content.items():
            made = host_value(ev, value, loc)
            object.__getattribute__(model, "__dict__")[name] = made
            if depends(made):
                own.mark(model, name)
    return host_value(ev, term, loc)
