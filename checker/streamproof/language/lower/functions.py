"""Lowering of calls: constant calls run as ordinary Python, state-dependent functions are inlined, `choose` branches."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError, StreamproofError
from streamproof.base.records import dataclass
from streamproof.language.declare.model import with_guards
from streamproof.language.declare.primitives import (
    NOTHING,
    Disabled,
    NoPick,
    choose,
    enabled,
    first,
    is_operator,
    require,
)
from streamproof.language.free.symbolic_parameters import as_term, watch
from streamproof.language.lower import access, calls, lvalues, operators, sequences
from streamproof.language.lower.access import is_pure_call
from streamproof.language.lower.cases import Case, arguments, is_case_class, shown_sort
from streamproof.language.lower.comprehensions import each_round, indices, quantified, summed
from streamproof.language.lower.conversion import in_order
from streamproof.language.lower.elements import elements, in_sequence, refuse_early, refuse_iterator, refuse_used_up
from streamproof.language.lower.expressions import closed_over, outside, spread, temporal_operator
from streamproof.language.lower.lift import condition_of, merge
from streamproof.language.lower.lowering_context import Context, Evaluator, Frame, Halt, Pick, where
from streamproof.language.lower.sources import (
    PACKAGE,
    definition,
    is_standard,
    local_names,
    outer_declaration,
    parameters,
    place,
    signature,
    text,
    underlying,
)
from streamproof.language.lower.terms import (
    Cases,
    Closure,
    HeapCell,
    Method,
    NewCase,
    Several,
    StateRef,
    Term,
    describe,
    is_expr,
    known,
    simple,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import BagSort, SetSort, Sort
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import Undecided

CALL_DEPTH = 60
_Option: TypeAlias = tuple[Expr, Term, Any, Sort | None]
"""An option of a choice: the condition under which it is present, its value, its displayed value and the sort of that."""


def _from_inside(model: Any, value: Term) -> Term:
    """The state of a part, as passed to the part's own functions."""
    if isinstance(value, StateRef) and value.names is not None and value.names.inside and value.names.model is model:
        return StateRef(value.after, value.names.inside)
    return value


def means(node: ast.expr, target: Any, frame: Frame) -> bool:
    """Whether a name, plain or qualified by modules, refers to `target`."""
    return _named(node, frame) is target


def _named(node: ast.expr, frame: Frame) -> Any:
    """The value of a name, or of an attribute of a module; None for other expressions."""
    if isinstance(node, ast.Name):
        for scope in frame.scopes():
            if node.id in scope.locals or node.id in scope.own:
                return scope.locals.get(node.id)
        return outside(frame, node.id)
    if isinstance(node, ast.Attribute):
        module = _named(node.value, frame)
        return getattr(module, node.attr, None) if isinstance(module, types.ModuleType) else None
    return None


def call(ev: Evaluator, node: ast.Call, frame: Frame, target: ast.Name | None = None) -> Term:
    """A call; `target` is the variable that receives its value, if any."""
    loc = where(frame, node)
    function = ev.value(node.func, frame)
    if function is builtins.super and not node.args:
        return _super(ev, node, frame)
    if is_operator(function):
        return temporal_operator(ev, function, node, frame)
    if function is choose:
        return _choice(ev, node, frame, target)
    if function is builtins.next:
        raise ModelError(
            "there is no next(...): formulas do not depend on repetitions of a state",
            loc=loc,
            remedy="write a @step property (self, s, t), where t is the state after s; or first(... for ...)",
        )
    if function is enabled:
        return _enabled(ev, node, frame)
    if function is first:
        return _first(ev, node, frame)
    if function is require:
        raise ModelError("require(...) is a statement of its own", loc=loc, remedy="write it on a line by itself")
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.GeneratorExp):
        if function in (builtins.all, builtins.any):
            return quantified(ev, only, frame, function.__name__)
        if function is builtins.sum and (over := indices(ev, only, frame)) is not None:
            return summed(ev, only, over, frame)
    args = list(spread(ev, node.args, frame))
    kwargs: dict[str, Term] = {}
    for k in node.keywords:
        if k.arg is None:
            raise ModelError("'**' in a call is not part of the language", loc=loc, remedy="name the arguments")
        kwargs[k.arg] = ev.value(k.value, frame)
    refuse_early([*args, *kwargs.values()], loc)
    if is_case_class(function):
        return _made_case(function, args, kwargs, loc)
    if function is builtins.isinstance and len(args) == 2 and not kwargs and _tests_case(args):
        from streamproof.language.lower.matching import isinstance_

        return simple(isinstance_(ev, args, loc))
    if _is_method(function):
        from streamproof.language.lower.methods import method

        label = text(node.func.value) if isinstance(node.func, ast.Attribute) else "it"
        return method(ev.context, function, args, kwargs, loc, label)
    return _applied(ev, function, args, kwargs, frame, node)


def _made_case(kind: type[Case], args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """``Vote(voter=r)``: a value of a case, constant or not."""
    try:
        values = arguments(kind, args, kwargs)
    except TypeError as error:
        remedy = f"write {kind.__name__}({', '.join(f'{n}=...' for n in kind.__match_args__)})"
        raise ModelError(str(error), loc=loc, remedy=remedy) from None
    for value in values:
        refuse_used_up(value, loc)
    return NewCase(kind, values) if any(map(symbolic, values)) else kind(*values)


def _tests_case(args: list[Term]) -> bool:
    kinds = args[1] if isinstance(args[1], tuple) else getattr(args[1], "__args__", (args[1],))
    return symbolic(args[0]) or any(map(is_case_class, kinds))


def _enabled(ev: Evaluator, node: ast.Call, frame: Frame) -> Term:
    """``enabled(self.send, s, c)``: the disjunction of the guards of the rule's instances with these arguments."""
    loc = where(frame, node)
    args = [] if node.keywords else list(spread(ev, node.args, frame))
    rule, state = (*args[:2], None, None)[:2]
    if not isinstance(rule, types.MethodType) or not isinstance(state, StateRef):
        raise ModelError(
            "enabled(...) takes a rule of the model, the state and the rule's arguments",
            loc=loc,
            remedy="write enabled(self.send, s, c)",
        )
    if ev.context.rules is None:
        raise ModelError("enabled(...) in an action", loc=loc, remedy="use it in a property, or repeat the condition")
    found = []
    for instance in ev.context.rules(rule, state, loc):
        if len(instance.args) != len(args) - 2:
            raise ModelError(
                f"{rule.__name__} takes {len(instance.args)} arguments behind the state, got {len(args) - 2}",
                loc=loc,
                remedy="give each of them, in order",
            )
        put: dict[Expr, Expr] = {}
        parts: list[Expr] = []
        for (name, own), given in zip(instance.args, args[2:], strict=True):
            if is_expr(own):
                put[own] = operators.integer(ev.context, given, loc, name)
                parts.append(b.in_domain(put[own], own.sort))
            else:
                parts.append(condition_of(operators.equal(ev.context, given, own, loc)))
        if state.after:
            put |= {b.var(n, s): b.next_(n, s) for n, s in ev.context.sorts.items()}
        change = Substitution(put)
        parts += [change(conjunct.expr) for conjunct in instance.guard]
        found.append(b.and_(parts))
    return simple(b.or_(found, loc))


def _first(ev: Evaluator, node: ast.Call, frame: Frame) -> Term:
    """``first(... for ...)``; like Python, it stops at the first element."""
    made: list[tuple[Expr, Term]] = []
    loc, options = where(frame, node), node.args[0] if node.args else None
    if options is None or len(node.args) > 2 or any(k.arg != "default" for k in node.keywords):
        raise ModelError(
            "first() takes the options, and default=", loc=loc, remedy="write first(x for x in ... if ...)"
        )

    def keep(there: Expr, inner: Frame) -> Expr:
        assert isinstance(options, ast.GeneratorExp)
        made.append((there, ev.value(options.elt, inner)))
        return b.FALSE

    if isinstance(options, ast.GeneratorExp):
        each_round(ev, options.generators, frame, keep, in_turn=True)
    else:
        made = in_sequence(ev.context, ev.value(options, frame), loc)
    defaults = [*node.args[1:], *(k.value for k in node.keywords)]
    fallback = ev.value(defaults[0], frame) if defaults else NOTHING
    if fallback is NOTHING:
        ev.context.check(b.not_(b.or_(there for there, _ in made)), "first() of an empty collection", loc)
        fallback = made[-1][1]
    for there, value in reversed(made):
        fallback = merge(there, value, fallback, loc)
    return fallback


def _is_method(function: Term) -> bool:
    """Whether a function is a method of a container, or of one of several local lists, depending on the state."""
    if isinstance(function, Cases):
        sides = function.then, function.other
        return all(_is_method(m) and (isinstance(m, Cases) or isinstance(m.owner, HeapCell)) for m in sides)
    return isinstance(function, Method)


def _applied(
    ev: Evaluator, function: Term, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.Call
) -> Term:
    """Calls a function: natively if everything is constant, else as a built-in or inlined."""
    loc = where(frame, node)
    if frame.depth >= CALL_DEPTH:
        raise ModelError(
            f"calls nest deeper than {CALL_DEPTH}",
            loc=loc,
            remedy="recursion must end on values known while lowering; bound it by an argument",
        )
    if isinstance(function, Closure):
        return _call_closure(ev, function, args, kwargs, frame, node)
    if symbolic(function):
        wanted = "call a function or method"
        if isinstance(node.func, ast.Attribute) and not node.args:
            wanted = f"write {ast.unparse(node.func)} without parentheses"
        raise ModelError(f"{describe(function)} is not a function", loc=loc, remedy=wanted)
    access.refuse(function, node, loc)
    python = isinstance(function, types.FunctionType | types.MethodType)
    owner = getattr(function, "__self__", None)
    undecided: Undecided | None = None
    for a in (*args, *kwargs.values(), owner):
        refuse_iterator(a, loc)
    if not any(map(symbolic, (*args, *kwargs.values()))) and not symbolic(owner):
        own = watch()
        mark = 0 if own is None else len(own.refused)
        try:
            result = _native(ev, function, args, kwargs, loc)
        except (Disabled, NoPick):  # it requires or chooses, which only lowering can do
            pass
        except Undecided as error:  # and a test of a free parameter's value
            undecided = error
        else:
            undecided = None if own is None else own.since(mark)
            if undecided is None:
                return result
        if own is not None:
            own.forget(mark)
    if symbolic(owner):
        raise ModelError(f"{text(node.func)!r} cannot be called here", loc=loc, remedy="write the loop out")
    result = calls.builtin(ev.context, function, args, kwargs, loc)
    if result is not calls.UNKNOWN:
        return result
    if python:
        for a in (*args, *kwargs.values()):
            refuse_used_up(a, loc)
        return _inline(ev, function, args, kwargs, frame.depth + 1, loc)
    if undecided is not None:
        raise undecided if undecided.loc else Undecided(undecided.message, loc=loc, remedy=undecided.remedy)
    name = getattr(function, "__name__", function)
    if all(not symbolic(a) or _is_constant_list(ev.context, a) for a in (*args, *kwargs.values())):
        raise ModelError(
            f"{name}() cannot be called with a list or dictionary made in the rule, which it could change",
            loc=loc,
            remedy="it is not written in Python: give a tuple, (a, b), or compute the value in setup()",
        )
    raise ModelError(
        f"{name}() cannot be called with values of the state",
        loc=loc,
        remedy="it is not written in Python, or it makes an object: compute with the state in plain Python instead",
    )


def _is_constant_list(context: Context, value: Term) -> bool:
    """Whether a value is a list or a dictionary of a rule, of nothing but constants."""
    content = context.content(value) if isinstance(value, HeapCell) else None
    parts = content.values() if isinstance(content, dict) else content
    return isinstance(parts, Iterable) and not any(map(symbolic, parts))


def _native(ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """An ordinary Python call; lists and dicts that it creates become local containers."""
    if not is_pure_call(function, (*args, *kwargs.values())):
        ev.context.outside.impure = True
    try:
        result = with_guards(function, ev.context.free)(*args, **kwargs)
    except (Disabled, NoPick, Undecided):
        raise
    except StreamproofError as error:
        raise ModelError(error.message, loc=error.loc or loc, remedy=error.remedy) from None
    except operators.CERTAIN as error:
        own = watch()
        if own is not None:
            own.trust(error)
        ev.context.check(b.TRUE, f"{type(error).__name__} in {access.called(function)}(): {error}", loc)
        raise Halt from None
    except Exception as error:
        raise ModelError(
            f"{type(error).__name__} in {access.called(function)}(): {error}",
            loc=loc,
            remedy="this call has no values of the state, so it is ordinary Python, run while the model is read",
        ) from error
    result = as_term(result)
    if isinstance(result, Iterator):
        return Several(tuple((b.TRUE, v) for v in result), once=True)
    if function in (list, sorted) or (function is dict and result is not None):
        return ev.context.allocate(tuple(result) if isinstance(result, list) else dict(result))
    return frozenset(result) if function is set else result


def _inline(ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], depth: int, loc: Loc) -> Term:
    """The result of a function body on symbolic arguments."""
    frame = enter(ev, function, args, kwargs, depth, loc)
    body = definition(underlying(function)).body
    try:
        ev.block(body, frame)
    except ModelError as error:
        if error.loc is None or not (is_standard(error.loc.file) or error.loc.file.startswith(PACKAGE)):
            raise
        raise type(error)(error.message, loc=loc, remedy=error.remedy) from error
    return _result(frame, body, loc)


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


def _call_closure(
    ev: Evaluator, closure: Closure, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.Call
) -> Term:
    spec, home, loc = closure.node.args, closure.frame, where(frame, node)
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


def _super(ev: Evaluator, node: ast.Call, frame: Frame) -> Term:
    cls = closed_over(frame).get("__class__")
    first = next(iter(inspect.signature(frame.function).parameters), None)
    scope = next((scope for scope in frame.scopes() if first in scope.locals), None)
    if cls is None or first is None or scope is None:
        raise ModelError("super() outside a method", loc=where(frame, node), remedy="call the function by its name")
    if scope is not frame:  # Python finds no instance there, or only since 3.12
        raise ModelError(
            "super() in a comprehension or an inner function",
            loc=where(frame, node),
            remedy="keep it first, base = super(), and call base.name(...)",
        )
    return super(cls, scope.locals[first])


def _choice(ev: Evaluator, node: ast.Call, frame: Frame, target: ast.Name | None) -> Term:
    """One branch of a `choose`, selected by the script; the caller enumerates all branches."""
    context, loc = ev.context, where(frame, node)
    if not context.in_action:
        raise ModelError(
            "choose(...) outside an action", loc=loc, remedy="properties look at states, they do not choose"
        )
    labelled = bool(node.keywords) and not node.args
    if labelled:
        options: list[_Option] = [(b.TRUE, value, label, None) for label, value in _labelled(ev, node, frame)]
    elif len(node.args) == 1 and not node.keywords:
        options = _options(ev, ev.value(node.args[0], frame), loc)
    else:
        raise ModelError(
            "choose takes one argument, or labelled values",
            loc=loc,
            remedy="write choose(range(3)), or choose(delivered=True, lost=False)",
        )
    if not options:
        context.guard(b.not_(context.path), text(node), loc)
        raise Halt
    at = context.script[len(context.widths)] if len(context.widths) < len(context.script) else 0
    context.widths.append(len(options))
    there, value, shown, sort = options[at]
    name = target.id if target is not None else "branch" if labelled else "choice"
    pick = _unused(name, [p.name for p in context.picks])
    context.picks.append(Pick(pick, shown, context.path, at == 0, labelled, sort, value, target, frame, loc))
    # Where the choice is not reached, only the first option is kept, so that no step is counted twice.
    context.guard(b.and_((context.path, there)) if at else b.implies(context.path, there), text(node), loc)
    return value


def _labelled(ev: Evaluator, node: ast.Call, frame: Frame) -> Iterator[tuple[str, Term]]:
    """The labels of a choice with their values, all of which Python evaluates."""
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ModelError(
                "the branches of choose(**...) have no names in the source",
                loc=where(frame, node),
                remedy="write each one: choose(delivered=True, lost=False)",
            )
        yield keyword.arg, ev.value(keyword.value, frame)


def _options(ev: Evaluator, domain: Term, loc: Loc) -> list[_Option]:
    """The options of a choice: the condition under which each is present, its value, and how traces show it."""
    ready = lvalues.dereference(ev.context, domain)
    if not symbolic(ready) and isinstance(ready, int):
        raise ModelError(f"{ready} has no elements to choose from", loc=loc, remedy=f"write choose(range({ready}))")
    pairs = [(b.TRUE, v) for v in in_order(ready)] if isinstance(ready, set | frozenset) else None
    if is_expr(ready) and isinstance(ready.sort, BagSort):
        pairs = [(there, simple(v)) for there, v in sequences.present(ready, loc)]
    options = []
    for there, v in elements(ev.context, domain, loc) if pairs is None else pairs:
        is_known, host = known(v)
        if is_expr(v) and not is_known and is_expr(ready) and isinstance(ready.sort, SetSort | BagSort):
            is_known, host = True, getattr(v, "value", None)
        if not is_known:
            raise ModelError(
                "the values to choose from depend on the state",
                loc=loc,
                remedy="choose an index or a value from a fixed domain, then require(...) what it must satisfy",
            )
        try:
            hash(host)
        except TypeError:
            raise ModelError(
                f"{describe(host)} cannot be chosen: it is not hashable",
                loc=loc,
                remedy="choose from tuples, names or numbers",
            ) from None
        options.append((there, v, host, shown_sort(v if is_expr(v) else host)))
    return options


def _unused(name: str, taken: list[str]) -> str:
    """`name`, with a number from the second use on."""
    at, candidate = 1, name
    while candidate in taken:
        at += 1
        candidate = f"{name}_{at}"
    return candidate


def returns_always(body: list[ast.stmt]) -> bool:
    """Whether, syntactically, no path reaches the end of `body`; the disjunction of several early returns need not
    simplify to true."""
    match body[-1]:
        case ast.Return():
            return True
        case ast.If(body=then, orelse=other):
            return bool(other) and returns_always(then) and returns_always(other)
        case ast.Match(cases=cases):
            from streamproof.language.lower.matching import covers_all

            last = cases[-1]
            return covers_all(last.pattern) and last.guard is None and all(returns_always(c.body) for c in cases)
        case _:
            return False


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
