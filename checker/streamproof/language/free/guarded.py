"""Guarded execution of the user's ordinary Python with free parameters.

A `SymbolicInt` rejects every operation that it does not support. It cannot intercept identity (``is``, ``id``), ``type``,
C code that requires an integer, or ``range``. The user's functions are therefore rewritten (`rewritten`): every call,
attribute access, ``is``, and exception that leaves a function, a ``try`` or a ``with`` goes through this module. A function
that could reach a free parameter must be on the list of `sound` functions. The user's code must not swallow an exception
that none of its ``raise`` statements raised: for a concrete number, another exception or none could occur. Code that runs
without guards must not reach a free parameter.
"""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from streamproof.base.errors import Loc
from streamproof.language.free.rewritten import (
    CALL,
    DECORATED,
    FAILURE,
    MATCHED,
    PASSED,
    READ,
    SAME,
    files_of,
    functions_of,
    is_guarded,
    is_installed,
    is_users,
    put_guards,
)
from streamproof.language.free.sound import calls, is_free, is_sound, is_sound_code, looks, public_code, reached
from streamproof.language.free.symbolic_parameters import (
    SymbolicInt,
    is_condition,
    note,
    refuse,
    shown,
    symbolic_range,
    watch,
)
from streamproof.language.lower.sources import PACKAGE, caller, innermost, is_standard, line_of
from streamproof.system import build as b
from streamproof.transform.unbounded import Undecided

_APART = frozenset({type(None), bool, str})
"""Types whose values never wrap a number."""
_ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)
"""Exceptions by which Python signals exhaustion."""
_OF_THE_CLASS = frozenset({"__new__", "__class_getitem__", "__init_subclass__"})
"""Special methods that are not looked up on instances."""
_OWN = __file__
_ANY = SymbolicInt(b.TRUE)


def called(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, guarded. Raises `Undecided` if it inspects a free parameter."""
    if watch() is None:
        return function(*args, **kwargs)
    if isinstance(function, types.FunctionType) and function is not called:
        return _run(function, args, kwargs)
    if isinstance(function, types.MethodType):
        return called(function.__func__, function.__self__, *args, **kwargs)
    if isinstance(function, partial):
        return called(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    if function is called:
        return called(*args, **kwargs)
    if function is range:
        return symbolic_range(*args, **kwargs)
    given = (*args, *kwargs.values())
    free = next((a for a in given if is_free(a)), None)
    if free is not None and (looks(function) or (function is isinstance and args[1] is not object)):
        refuse(f"{shown(free)} is any number here: {_name(function)}() of it means nothing")
    if not is_sound(function, args):
        _expect_no_reach(function, given)
    if calls(function):
        args = tuple(map(_passed_on, args))
        kwargs = {name: _passed_on(value) for name, value in kwargs.items()}
    elif "key" in kwargs:
        kwargs = {**kwargs, "key": _passed_on(kwargs["key"])}
    try:
        result = function(*args, **kwargs)
    except Undecided:
        raise
    except TypeError as error:
        if free is not None:  # it may have accepted a number, so its rejection of this type is inconclusive
            refuse(f"{shown(free)} is any number here, which {_name(function)}() does not take ({error})")
        _left(error)
        raise
    except BaseException as error:
        _left(error)
        raise
    if result is NotImplemented and free is not None:
        refuse(f"{shown(free)} is any number here, which {_name(function)}() does not take")
    return result


def _expect_no_reach(function: Any, given: Iterable[Any]) -> None:
    """Rejects a call with a free parameter if the function is not known to be sound."""
    free = reached([function, *given])
    if free is not None:
        refuse(f"{_shown(free)} is any number here, which {_name(function)}() would look at")


def _passed_on(value: Any) -> Any:
    """A callback, guarded unless it is the user's own function."""
    if not callable(value) or is_free(value) or isinstance(value, types.FunctionType | types.MethodType):
        return value
    return value if is_sound(value, (_ANY,)) else partial(called, value)


def _shown(value: Any) -> str:
    return value if type(value) is str else shown(value)


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _run(function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a function written in Python."""
    code = function.__code__
    if is_users(code.co_filename) and not is_guarded(code):
        _exchange([function])
    elif not is_guarded(code) and not is_sound(function, args):
        _expect_no_reach(function, (*args, *kwargs.values()))
    return function(*args, **kwargs)


def read(owner: Any, name: str) -> Any:
    """``owner.name``, guarded: the getter of a property runs as in `called`."""
    if is_free(owner) or watch() is None:
        return getattr(owner, name)
    for base in type(owner).__mro__:
        found = vars(base).get(name)
        if isinstance(found, property) and found.fget is not None:
            return called(found.fget, owner)
        if isinstance(found, cached_property) and name not in owner.__dict__:
            owner.__dict__[name] = called(found.func, owner)
            return owner.__dict__[name]
        if found is not None:
            break
    return getattr(owner, name)


def _same(left: Any, right: Any) -> bool:
    """``left is right``, guarded."""
    for one, other in ((left, right), (right, left)):
        if not is_free(one):
            continue
        if type(other) not in _APART or (is_condition(one) and type(other) is bool):
            refuse(f"{shown(one)} is any number here: 'is' means nothing for it", "use == for values")
    return left is right


def _matched(subject: Any) -> Any:
    """The subject of a ``match``, guarded: patterns compare truth values by identity."""
    found = reached([subject]) if watch() is not None else None
    if found is not None and (type(found) is str or _has_condition(subject)):
        refuse(f"{_shown(found)} depends on any number here: match means nothing for it", "use if")
    return subject


def _has_condition(value: Any, depth: int = 4) -> bool:
    if is_free(value) or not depth:
        return is_condition(value)
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    inside = vars(value).values() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    return any(_has_condition(part, depth - 1) for part in (*inner, *inside))


def _decorated(decorator: Any) -> Callable[[Any], Any]:
    return lambda function: called(decorator, function)


def _passed() -> None:
    error = sys.exc_info()[1]
    if error is not None:
        _left(error)


def _left(error: BaseException) -> None:
    """Records an exception that the user's code did not raise; swallowing it would make the result depend on the number."""
    own = watch()
    if own is None or isinstance(error, (Undecided, *_ENDS)) or own.is_doubted(error) or _is_raised(error):
        return
    own.doubt(
        error,
        Undecided(
            f"{type(error).__name__} ({error}) is caught, which no 'raise' of the model raised: numbers may not have it",
            loc=_raised_at(error) or own.place() or caller(),
            remedy="test before the operation instead of catching Python's exception",
        ),
    )


def _raised_at(error: BaseException) -> Loc | None:
    """The user's innermost line in the traceback."""
    trace = innermost(error, is_users)
    return None if trace is None else line_of(trace)


def _is_raised(error: BaseException) -> bool:
    """Whether a ``raise`` of the user, or a look-up independent of the type of any number, raised an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    if is_users(code.co_filename) and code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]:
        return True
    if type(error) is AttributeError and code is read.__code__:
        return True
    ours = code.co_filename == _OWN or is_users(code.co_filename)
    return ours and type(error) in (KeyError, IndexError, ZeroDivisionError)


_EXCHANGED: list[tuple[types.FunctionType, types.CodeType]] = []
"""Functions that run with guards, and their own code."""


def _exchange(functions: Iterable[types.FunctionType]) -> None:
    for function in functions:
        before = function.__code__
        if not is_guarded(before) and put_guards(function):
            _EXCHANGED.append((function, before))


@contextmanager
def unguarded(roots: Iterable[Any]) -> Iterator[None]:
    """Runs the functions in the files of `roots` with guards; records unguarded code that reaches free parameters."""
    before = sys.getprofile()
    public_code()
    files = files_of(roots)
    vars(builtins).update({CALL: called, READ: read, SAME: _same, MATCHED: _matched})
    vars(builtins).update({DECORATED: _decorated, PASSED: _passed, FAILURE: Exception})
    functions = functions_of(files)
    classes = [(kind, name, value) for kind in _classes(functions) for name, value in _methods_in_c(kind)]

    def look(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and not is_guarded(frame.f_code):
            _entered(frame)

    start = len(_EXCHANGED)
    try:
        _exchange(functions)
        for kind, name, value in classes:
            setattr(kind, name, partial(called, value.__func__ if isinstance(value, staticmethod) else value))
        sys.setprofile(look)
        yield
        if sys.getprofile() is not look:
            note("the model sets a profiler, by which free parameters are guarded", None, "leave it out")
    finally:
        sys.setprofile(before if callable(before) else None)
        for function, code in _EXCHANGED[start:]:
            function.__code__ = code
        del _EXCHANGED[start:]
        for kind, name, value in classes:
            setattr(kind, name, value)


def _classes(functions: Iterable[types.FunctionType]) -> list[type]:
    """The classes defined in the modules of some functions."""
    homes = {f.__globals__.get("__name__") for f in functions}  # possibly of a module that is not in sys.modules
    found: list[type] = []
    todo: list[type] = list(object.__subclasses__())
    seen: set[int] = set()
    while todo:
        kind = todo.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            todo += type.__subclasses__(kind)
            if kind.__module__ in homes:
                found.append(kind)
    return found


def _methods_in_c(kind: type) -> Iterator[tuple[str, Any]]:
    """Special methods of a class that are not the user's functions and not bound to its instances."""
    for name, value in list(vars(kind).items()):
        inner = value.__func__ if isinstance(value, staticmethod) else value
        special = name.startswith("__") and name.endswith("__") and name not in _OF_THE_CLASS
        if special and isinstance(inner, types.BuiltinFunctionType | partial):
            yield name, value


def _entered(frame: types.FrameType) -> None:
    """Records that user code entered unguarded code that can reach a free parameter."""
    code, by = frame.f_code, frame.f_back
    file = code.co_filename
    if file.startswith((PACKAGE, "<frozen")) or by is None:
        return
    if is_standard(file):
        if not is_users(by.f_code.co_filename) or is_sound_code(code):
            return
    elif _is_generated(frame) or ((is_installed(file) or not is_users(file)) and not _is_users_call(by)):
        return
    names = [frame.f_globals[n] for n in code.co_names if n in frame.f_globals]
    free = reached([*frame.f_locals.values(), *([] if is_standard(file) else names)])
    if free is not None:
        note(
            f"{_shown(free)} is any number here, and {code.co_name}() cannot be checked for operations on it",
            _line(frame) if not is_standard(file) else _line(by),
            "write it as a function in the model's file",
        )


def _is_users_call(frame: types.FrameType) -> bool:
    """Whether a frame is the user's, or a call on the user's behalf, including generated code and the standard library."""
    file = frame.f_code.co_filename
    return not file.startswith(PACKAGE) or file == _OWN


def _line(frame: types.FrameType) -> Any:
    """The first line of a function; for generated code, the line that runs it."""
    code = frame.f_code
    if is_users(code.co_filename):
        return Loc(code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name)
    by: types.FrameType | None = frame
    while by is not None and not is_users(by.f_code.co_filename):
        by = by.f_back
    return Loc(code.co_filename, 1, code.co_name) if by is None else Loc(by.f_code.co_filename, by.f_lineno)


def _is_generated(frame: types.FrameType) -> bool:
    """Whether a method is generated code of a data class or a named tuple."""
    code = frame.f_code
    if not code.co_filename.startswith("<"):
        return False
    if code.co_names == ("_tuple_new",):
        return bool(frame.f_globals.get("_tuple_new") == tuple.__new__)
    return code.co_qualname.startswith("__create_fn__.<locals>.__")
