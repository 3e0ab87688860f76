"""Lowering of calls: constant calls run as ordinary Python, state-dependent functions are inlined, `choose` branches."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from streamproof.base.errors import Loc, ModelError, StreamproofError
from streamproof.language.declare.model import Model
from streamproof.language.declare.primitives import (
    NOTHING,
    Disabled,
    NoPick,
    choose,
    enabled,
    first,
    happened,
    is_operator,
    require,
)
from streamproof.language.free.symbolic_parameters import as_term, native, watch
from streamproof.language.lower import access, calls, inlining, lvalues, operators, sequences
from streamproof.language.lower.access import is_pure_call
from streamproof.language.lower.cases import Case, arguments, is_case_class, shown_sort
from streamproof.language.lower.comprehensions import each_round, indices, quantified, summed
from streamproof.language.lower.conversion import in_order
from streamproof.language.lower.elements import elements, in_sequence, refuse_early, refuse_iterator, refuse_used_up
from streamproof.language.lower.expressions import closed_over, outside, spread, temporal_operator
from streamproof.language.lower.lift import condition_of, merge
from streamproof.language.lower.lowering_context import Context, Evaluator, Frame, Halt, Pick, where
from streamproof.language.lower.sources import (
    lowered_at,
    text,
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
from streamproof.system.expr import Expr, variables
from streamproof.system.sorts import BagSort, SetSort, Sort
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import Undecided

CALL_DEPTH = 60
_Option: TypeAlias = tuple[Expr, Term, Any, Sort | None]
"""An option of a choice: the condition under which it is present, its value, its displayed value and the sort of that."""


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
    if function is happened:
        from streamproof.language.lower.step_conditions import happened as condition_on_step

        return condition_on_step(ev, node, frame)
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
        if k.arg is None and ev.context.free and _is_own(function):
            kwargs |= _spread_names(ev, k.value, frame)
            continue
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


def _spread_names(ev: Evaluator, node: ast.expr, frame: Frame) -> dict[str, Term]:
    """The arguments in ``State(**declared)``."""
    held = ev.value(node, frame)
    content = ev.context.content(held) if isinstance(held, HeapCell) else held
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise ModelError(
            f"'**' needs a dict of names, got {describe(held)}", loc=where(frame, node), remedy="name them"
        )
    return dict(content)


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
    for instance in ev.context.rules(rule, state, loc).instances:
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
        return inlining.call_closure(ev, function, args, kwargs, frame, loc)
    if symbolic(function):
        wanted = "call a function or method"
        if isinstance(node.func, ast.Attribute) and not node.args:
            wanted = f"write {ast.unparse(node.func)} without parentheses"
        raise ModelError(f"{describe(function)} is not a function", loc=loc, remedy=wanted)
    access.refuse(function, node, loc, draws=_is_compared(ev))
    python = isinstance(function, types.FunctionType | types.MethodType)
    owner = getattr(function, "__self__", None)
    undecided: StreamproofError | None = None
    everything = (*args, *kwargs.values(), owner)
    for a in everything:
        refuse_iterator(a, loc)
    if ev.context.free and _is_own(function):
        from streamproof.language.free.host_values import declaration

        return declaration(ev, function, args, kwargs, loc)
    if not any(map(symbolic, everything)) and not _has_changed(ev, everything):
        own = watch()
        mark = 0 if own is None else len(own.refused)
        try:
            return _native(ev, function, args, kwargs, loc)
        except (Disabled, NoPick):  # it requires or chooses, which only lowering can do
            pass
        except Undecided as error:  # it reads a free parameter
            undecided = error
        if own is not None:
            del own.refused[mark:]
    if symbolic(owner):
        raise ModelError(f"{text(node.func)!r} cannot be called here", loc=loc, remedy="write the loop out")
    result = calls.builtin(ev.context, function, args, kwargs, loc)
    if result is not calls.UNKNOWN:
        return result
    if python:
        for a in (*args, *kwargs.values()):
            refuse_used_up(a, loc)
        return _inlined(ev, function, args, kwargs, frame.depth + 1, loc)
    if undecided is not None:
        raise undecided if undecided.loc else Undecided(undecided.message, loc=loc, remedy=undecided.remedy)
    name = name_of(function)
    if _has_changed(ev, everything):
        raise ModelError(
            f"{name}() is passed the model in setup(), which computes with a free parameter",
            loc=loc,
            remedy="write it in the language of rules, or pass the values that it needs",
        )
    if all(not symbolic(a) or _is_constant_list(ev.context, a) for a in (*args, *kwargs.values())):
        raise ModelError(
            f"{name}() cannot be called with a list or dictionary made in the rule, which it could change",
            loc=loc,
            remedy="it is not written in Python: give a tuple, (a, b), or compute the value in setup()",
        )
    made = [a for a in (*args, *kwargs.values()) if symbolic(a)]
    of_state = bool(ev.context.sorts) and not all(_is_of_parameters(ev.context, a) for a in made)
    what = "a free parameter" if ev.context.free and not of_state else "values of the state"
    raise ModelError(
        f"{name}() cannot be called with {what}",
        loc=loc,
        remedy="it is not written in Python, or it makes an object: compute with the state in plain Python instead",
    )


def _inlined(ev: Evaluator, function: Any, args: list[Term], kwargs: dict[str, Term], depth: int, loc: Loc) -> Term:
    """The result of a function of the model, from the equal call in another rule if there is one."""
    context, calls = ev.context, ev.context.calls
    key = None if calls is None or context.assigning is not None else calls.key(function, args, kwargs)
    if calls is None or key is None:
        return inlining.inline(ev, function, args, kwargs, depth, loc)
    call = calls.lowered(key, context, lambda alone: inlining.inline(ev.within(alone), function, args, {}, depth, loc))
    return inlining.inline(ev, function, args, kwargs, depth, loc) if call is None else calls.taken(call, context)


def _is_of_parameters(context: Context, value: Term) -> bool:
    """Whether a value depends on free parameters and not on the state."""
    return is_expr(value) and variables(value) <= context.free


def name_of(function: Any) -> str:
    """The name of a function for messages."""
    return str(getattr(function, "__name__", function))


def _is_own(function: Any) -> bool:
    """Whether a function is one of streamproof's, such as `Range` and `Parts.share`, or the class of a model."""
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType | type):
        return False
    if isinstance(plain, type) and issubclass(plain, Model):
        return True
    home = vars(sys.modules[plain.__module__]) if plain.__module__ in sys.modules else {}
    found = home.get(plain.__name__) is plain if isinstance(plain, type) else home is plain.__globals__
    return found and str(home["__name__"]).startswith("streamproof.language.declare.")


def _is_compared(ev: Evaluator) -> bool:
    """Whether a ``setup()`` is being lowered whose results are compared."""
    own = watch()
    return own is not None and ev.context.attributes is not None and type(ev.context.attributes[0]) in own.compared


def _has_changed(ev: Evaluator, values: Iterable[Term]) -> bool:
    """Whether a call would pass on the model whose ``setup()`` is being lowered: it has not got its attributes yet."""
    if ev.context.attributes is None:
        return False
    model = ev.context.attributes[0]
    return any(
        value is model
        or (isinstance(value, types.MethodType) and value.__self__ is model)
        or (isinstance(value, tuple) and _has_changed(ev, value))
        for value in values
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
        if ev.context.attributes is not None and ev.context.path is not b.TRUE:
            raise ModelError(
                f"{access.called(function)}() is ordinary Python, called under a condition on a free parameter",
                loc=loc,
                remedy="call it before the condition",
            )
    try:
        with lowered_at(loc):
            result = native(function, *args, **kwargs)
    except (Disabled, NoPick, Undecided):
        raise
    except StreamproofError as error:
        raise ModelError(error.message, loc=error.loc or loc, remedy=error.remedy) from None
    except operators.CERTAIN as error:
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
    held = lvalues.contained_value(ev.context, ready, loc, "the option to choose from")
    if held is not ready:
        ready = domain = held
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
