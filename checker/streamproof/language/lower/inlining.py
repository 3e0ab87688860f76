"""Lowering of the body of a function that a rule calls: its frame with the arguments, and its result."""

from __future__ import annotations

import ast
import inspect
import types
from functools import lru_cache
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.language.lower.elements import refuse_used_up
from streamproof.language.lower.lift import merge
from streamproof.language.lower.lowering_context import Evaluator, Frame, where
from streamproof.language.lower.sources import (
    definition,
    is_users,
    lambda_of,
    local_names,
    outer_declaration,
    parameters,
    place,
    signature,
    text,
    underlying,
)
from streamproof.language.lower.terms import Closure, StateRef, Term, simple
from streamproof.system import build as b


def inline(ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], depth: int, loc: Loc) -> Term:
    """The result of a function body on symbolic arguments."""
    try:
        frame = enter(ev, function, args, kwargs, depth, loc)
        body = definition(underlying(function)).body
        ev.block(body, frame)
    except ModelError as error:
        if error.loc is None or is_users(error.loc.file):
            raise
        raise type(error)(error.message, loc=loc, remedy=error.remedy) from error
    return _result(frame, body, loc)


def lambda_value(ev: Evaluator, function: types.FunctionType, args: list[Term], loc: Loc) -> Term:
    """The result of a lambda outside rules, such as the domain of a parameter."""
    node, defaults = lambda_of(function), function.__defaults__ or ()
    names = [a.arg for a in node.args.args]
    home = Frame(function, function.__code__.co_filename, {}, function.__globals__)
    values = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    return call_closure(ev, Closure(node, home, tuple(values)), args, {}, home, loc)


def enter(
    ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], depth: int, loc: Loc | None
) -> Frame:
    """A frame with the arguments bound."""
    plain = underlying(function)
    form = _form(plain)
    if form.asynchronous:
        raise ModelError(
            f"{plain.__name__}() is 'async'",
            loc=place(plain),
            remedy="interleaving is what the checker explores: use actions",
        )
    if form.generator:
        yields = [n for n in ast.walk(definition(plain)) if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await)]
        line = yields[0].lineno if yields else plain.__code__.co_firstlineno
        raise ModelError(
            f"{plain.__name__}() is a generator",
            loc=loc or Loc(plain.__code__.co_filename, line, plain.__name__),
            remedy="return a tuple or list instead; an action changes the state and returns nothing",
        )
    if isinstance(function, types.MethodType):
        args = [function.__self__, *args]
    given = _bound(ev, plain, form, args, kwargs, loc)
    owner = next(iter(given.values()), None)
    local = {name: _from_inside(owner, value) for name, value in given.items()}
    node = definition(plain)
    changes = outer_declaration(plain)
    if changes is not None:
        word = "global" if isinstance(changes, ast.Global) else "nonlocal"
        raise ModelError(
            f"{word!r} is not part of the language",
            loc=Loc(plain.__code__.co_filename, changes.lineno, plain.__name__),
            remedy="everything that changes belongs to the state" if word == "global" else "return the value instead",
        )
    return Frame(
        plain,
        plain.__code__.co_filename,
        local,
        plain.__globals__,
        local_names(node),
        depth=depth,
        given=tuple(local.values()),
    )


def _bound(
    ev: Evaluator, plain: types.FunctionType, form: _Form, args: list[Term], kwargs: dict[str, Term], loc: Loc | None
) -> dict[str, Term]:
    """The call's arguments by parameter name."""
    if not kwargs and form.positions is not None and len(args) == len(form.positions):
        return dict(zip(form.positions, args, strict=True))
    try:
        bound = signature(plain).bind(*args, **kwargs)
    except TypeError as error:
        raise ModelError(f"{plain.__name__}(): {error}", loc=loc, remedy="match its parameters") from None
    bound.apply_defaults()
    for name, parameter in signature(plain).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = ev.context.allocate(bound.arguments[name])
    return bound.arguments


def closure(ev: Evaluator, node: ast.Lambda | ast.FunctionDef, frame: Frame) -> Closure:
    """A function defined inside a rule; as in Python, its defaults are evaluated at the definition."""
    spec, loc = node.args, where(frame, node)
    if spec.vararg or spec.kwarg or spec.posonlyargs or getattr(node, "decorator_list", None):
        raise ModelError(
            "a function inside a rule has plain parameters and no decorators", loc=loc, remedy="define it outside"
        )
    named = [a.arg for a in spec.args]
    defaults = [*zip(named[len(named) - len(spec.defaults) :], spec.defaults, strict=True)]
    defaults += [(a.arg, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    values = tuple((n, ev.value(d, frame)) for n, d in defaults)
    for _, value in values:
        refuse_used_up(value, loc)
    return Closure(node, frame, values)


def call_closure(
    ev: Evaluator, closure: Closure, args: list[Term], kwargs: dict[str, Term], frame: Frame, loc: Loc
) -> Term:
    """The result of a function defined inside a rule."""
    spec, home = closure.node.args, closure.frame
    names, keyword = [a.arg for a in spec.args], [a.arg for a in spec.kwonlyargs]
    local = dict(zip(names, args, strict=False))
    for a in (*args, *kwargs.values()):
        refuse_used_up(a, loc)
    doubled = local.keys() & kwargs.keys()
    local = {**dict(closure.defaults), **local, **kwargs}
    if len(args) > len(names) or doubled or set(local) != {*names, *keyword}:
        raise ModelError(
            "the call does not match the function's parameters", loc=loc, remedy=f"it takes {text(spec) or 'none'}"
        )
    own = local_names(closure.node)
    inner = Frame(
        home.function,
        home.file,
        local,
        home.globals,
        own,
        parent=home,
        depth=frame.depth + 1,
        given=tuple(local.values()),
    )
    if isinstance(closure.node, ast.Lambda):
        return ev.value(closure.node.body, inner)
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(closure.node)):
        raise ModelError("a generator inside a rule", loc=loc, remedy="return a tuple or list instead")
    ev.block(closure.node.body, inner)
    return _result(inner, closure.node.body, loc)


def _from_inside(model: Any, value: Term) -> Term:
    """The state of a part, as passed to the part's own functions."""
    if isinstance(value, StateRef) and value.names is not None and value.names.inside and value.names.model is model:
        return StateRef(value.after, value.names.inside)
    return value


def returns_always(body: list[ast.stmt]) -> bool:
    """Whether, syntactically, no path reaches the end of `body`; the disjunction of several early returns need not
    simplify to true."""
    match body[-1]:
        case ast.Return():
            return True
        case ast.If(body=then, orelse=other):
            return bool(other) and returns_always(then) and returns_always(other)
        case ast.Match(cases=cases):
            last = cases[-1]
            return covers_all(last.pattern) and last.guard is None and all(returns_always(c.body) for c in cases)
        case _:
            return False


def covers_all(node: ast.pattern) -> bool:
    """Whether a pattern matches every value."""
    return isinstance(node, ast.MatchAs) and (node.pattern is None or covers_all(node.pattern))


def _result(frame: Frame, body: list[ast.stmt], loc: Loc) -> Term:
    """The value of a call; None if the function ends without ``return``."""
    if frame.returned is b.TRUE or (frame.returned is not b.FALSE and returns_always(body)):
        return simple(frame.result)
    if frame.returned is b.FALSE:
        return None
    return merge(frame.returned, frame.result, None, loc)


@dataclass(frozen=True, slots=True)
class _Form:
    """The signature data used at each call."""

    positions: tuple[str, ...] | None
    """The parameters, if each may be passed by position."""
    asynchronous: bool
    generator: bool


@lru_cache(maxsize=1024)
def _form(plain: types.FunctionType) -> _Form:
    """The signature data of a function, cached."""
    names = parameters(plain)
    return _Form(
        names if names == plain.__code__.co_varnames[: plain.__code__.co_argcount] else None,
        inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain),
        inspect.isgeneratorfunction(plain),
    )
