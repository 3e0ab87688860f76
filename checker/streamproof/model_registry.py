"""Lookup of models: by a registered name, by a Python file, or by ``package.module:Name``.

Bundled models are registered in the entry-point group ``streamproof.models``, each as a `Spec` or a `Model` class; packages
of users register theirs in the same way.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from streamproof import entries, interrupts
from streamproof.entries import Entry, admit, working_folder
from streamproof.interrupts import TimeUp
from streamproof.language.declarations import check_constructor, check_model
from streamproof.language.model import Model, marked
from streamproof.language.model_reader import DEADLOCK, TERMINATION
from streamproof.language.primitives import MARK, PropertyMark, RefinementMark
from streamproof.language.spec import Spec, check_expected
from streamproof.system.errors import (
    InputError,
    Loc,
    ModelError,
    StreamproofError,
    SystemFailure,
    UsageError,
    did_you_mean,
    text_of,
)
from streamproof.system.model import Kind, System
from streamproof.system.options import timely
from streamproof.system.records import dataclass
from streamproof.system.text import code_of_others
from streamproof.system.unbounded import Parametric
from streamproof.system.verdict import Measure

T = TypeVar("T")

BINDING = "BINDING"
"""The name of the binding in a file of the user."""
GROUP = "streamproof.models"
"""The entry-point group in which packages register their models."""
READING = "reading the model"


MOST_NAMES = 16
"""Largest number of names in a message."""
LONGEST_LINE = 120
"""Largest number of characters of a source line in a message."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A property as declared, without compiling the model."""

    name: str
    kind: Kind
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The model of a lookup.

    `text` is the argument of the lookup. `specified`: the model has a `Spec` or is bundled, so it has expected verdicts; a
    bare class has none.
    """

    text: str
    spec: Spec
    specified: bool

    @property
    def name(self) -> str:
        """The model's own name."""
        return self.spec.model.title()

    def variant(self, name: str | None) -> type[Model]:
        """The class of a variant; None: of the model itself. Raises `UsageError` for an unknown variant."""
        if name is not None and name not in self.spec.model.variants:
            raise unknown(f"{self.name} has no variant", name, self.spec.model.variants, "its variants")
        found = self.spec.model if name is None else self.spec.model.variants[name]
        check_model(found)
        check_constructor(found)
        return found

    def defaults(self, variant: str | None) -> dict[str, Any]:
        """The default parameters of a variant."""
        return {**self.variant(variant).parameters(), **self.spec.variant_parameters.get(variant or "", {})}

    def properties(
        self, variant: str | None = None, parameters: Mapping[str, Any] = types.MappingProxyType({})
    ) -> tuple[Listed, ...]:
        """The properties, in the order of the compiled system; the parts of a composite may depend on `parameters`."""
        cls = self.variant(variant)
        found: list[Listed] = []
        if cls.parts is not Model.parts:
            given = {**self.spec.variant_parameters.get(variant or "", {}), **parameters}
            model = self._made(variant, parameters, lambda: cls(**given))
            found += _of_parts(model, self.spec.carries)
        found += _own(cls, self.spec.properties)
        if cls.check_deadlock:
            found.append(Listed(DEADLOCK, Kind.DEADLOCK, "Every reachable state has a successor or is terminal."))
        if self.spec.termination:
            found.append(Listed(TERMINATION, Kind.TERMINATION, "Every behaviour is finite."))
        if cls.parts is Model.parts:  # the properties of parts may depend on the parameters
            check_expected(self.spec, variant, [one.name for one in found])
        return tuple(found)

    def warnings(self, variant: str | None, system: System | None) -> list[str]:
        """Probable mistakes in the model or a variant, one line each: functions without decorator that are never called, and
        variables of `system` (if it could be compiled) that no rule and no property reads or writes. A variant may leave out
        rules of its model."""
        from streamproof.language.spec import unmarked, unused

        found = unmarked(self.spec, self.variant(variant))
        return [
            *(f"{loc}: {why}" for loc, why in found),
            *(unused(system) if system is not None and variant is None else ()),
        ]

    def system(self, variant: str | None, parameters: Mapping[str, Any]) -> System:
        """The transition system of a variant at the given parameters, defaults for the others.

        Raises `UsageError` if the model rejects the parameters (a `ValueError` in its ``setup``), and `ModelError`, with the
        line of the user's file, for every other exception of the model's code.
        """
        return self._made(variant, parameters, lambda: self.spec.system(variant, **parameters))

    def parametric(self, variant: str | None, parameters: Mapping[str, Any], free: Sequence[str]) -> Parametric:
        """The transition system of a variant with the parameters `free` symbolic; raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.parametric(free, variant, **parameters))

    def endless(self, variant: str | None, parameters: Mapping[str, Any], free: Sequence[str]) -> Parametric:
        """The same with its temporal properties, for proofs by ranking functions."""
        return self._made(variant, parameters, lambda: self.spec.endless(free, variant, **parameters))

    def measures(self, variant: str | None, parameters: Mapping[str, Any]) -> tuple[Measure, ...]:
        """The quantities of a variant at the given parameters, defaults for the others; raises as `system`."""
        return self._made(variant, parameters, lambda: self.spec.measured(variant, **parameters))

    def facts(
        self, variant: str | None, parameters: Mapping[str, Any], questions: Sequence[tuple[str, str]]
    ) -> list[str]:
        """What the specification says of an instance, and its answers to the questions, each with the name of its option;
        raises as `system`."""

        def said() -> list[str]:
            if self.spec.facts is None and not questions:
                return []
            model = self.spec.model.build(variant, **parameters)
            answers = [line for name, text in questions for line in self.spec.questions[name](model, text)]
            return [*(self.spec.facts(model) if self.spec.facts is not None else ()), *answers]

        return self._made(variant, parameters, said)

    def _made(self, variant: str | None, parameters: Mapping[str, Any], make: Callable[[], T]) -> T:
        self.variant(variant)
        given = {**self.spec.variant_parameters.get(variant or "", {}), **parameters}
        try:
            with timely(READING), working_folder(self.text):
                return make()
        except ModelError as error:
            if parameters and isinstance(error.__cause__, ValueError):
                shown = ", ".join(f"{name}={value}" for name, value in given.items())
                message = str(error.__cause__)
                hints = (*_meant(message, given.values()), f"the model rejects its parameters: {shown}")
                raise UsageError(message, loc=error.loc, remedy="\n  ".join(hints)) from error
            raise
        except (StreamproofError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise _of_user(error) from error


def _meant(message: str, given: Iterable[Any]) -> Iterator[str]:
    """Suggestions for a text that a model rejects with a message that lists the allowed values."""
    for value in given:
        before, _, allowed = message.partition(repr(value))
        if isinstance(value, str) and before != message:
            yield from filter(None, [did_you_mean(value, re.findall(r"[\w.-]*\w", allowed))])


def _own(cls: type[Model], outside: Sequence[Callable[..., Any]]) -> Iterator[Listed]:
    """The properties of a machine without its parts, those stated outside of the model included."""
    own = [(name, mark, f) for name, (mark, f) in marked(cls).items()]
    own += [(f.__name__, getattr(f, MARK, None), f) for f in outside]
    for name, mark, function in own:
        if isinstance(mark, PropertyMark) and not mark.lemma:
            yield Listed(name, mark.kind, first_line(function.__doc__))
        elif isinstance(mark, RefinementMark):
            from streamproof.language.refinement import promised

            for p in promised(name, mark, first_line(function.__doc__)):
                yield Listed(p.name, p.kind, p.doc)


def stated_by(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the properties of a function outside of a model: its own, or those of a refinement."""
    return frozenset(one.name for one in _own(Model, (function,)))


def _of_parts(model: Model, carries: Mapping[str, Any]) -> list[Listed]:
    """The properties that a composite inherits from its parts; an array of parts has each property once."""
    from streamproof.language.composite import inherited

    found: dict[str, Listed] = {}
    for name, part, functions, deeper in inherited(model, carries):
        for one in (*_of_parts(part, deeper), *_own(type(part), functions)):
            found.setdefault(f"{name}.{one.name}", Listed(f"{name}.{one.name}", one.kind, one.doc))
    return list(found.values())


def bundled() -> Mapping[str, Entry]:
    """The registered models by name, in alphabetical order; imports none of them."""
    return entries.every(GROUP)


def is_registered(name: str) -> bool:
    """Whether an installed package registers a model of this name."""
    return entries.quick(GROUP, name) is not None or name in bundled()


def find(text: str) -> Target:
    """The model named by `text`: a registered name, ``path/to/file.py``, ``file.py:Name`` or ``package.module:Name``.

    Raises `UsageError` (with the nearest names) or `InputError` for an unknown model, `ModelError` with file and line if the
    user's file cannot be imported, and `OutOfTime`.
    """
    with timely(READING), working_folder(text, again=False):
        return _find(text)


def _find(text: str) -> Target:
    entry = entries.quick(GROUP, text)
    if entry is not None:
        return _registered(text, entry)
    if (named := _named_module(text)) is not None:
        return _pick(text, *named)
    registered = bundled()
    if text in registered:
        return _registered(text, registered[text])
    if os.sep in text or Path(text).is_file():
        from streamproof.system.reading import expect_file

        expect_file(text, "name a file that ends in .py")
        raise InputError(f"{text} is not a Python file", remedy="name a file that ends in .py")
    raise unknown(
        "unknown model",
        text,
        registered,
        "",
        "streamproof models lists the bundled ones; or give a file.py, or package.module:Name",
    )


def _named_module(text: str) -> tuple[str, types.ModuleType, str] | None:
    """The place and the module in ``path/to/file.py``, ``file.py:Name`` or ``package.module:Name``, and the name, if any.

    None for a text of another form.
    """
    place, _, name = (text, "", "") if text.endswith(".py") and Path(text).is_file() else text.partition(":")
    if place.endswith(".py"):
        return place, _import_file(Path(place)), name
    if name and all(part.isidentifier() for part in place.split(".")):
        return place, _import_module(place), name
    return None


def find_binding(text: str) -> object:
    """The object called BINDING, or as stated, in ``path/to/file.py``, ``file.py:NAME`` or ``package.module:NAME``; where
    there is none of that name, the `Spec` of the model that `text` names.

    Raises as `find`.
    """
    with timely(READING), working_folder(text, again=False):
        named = _named_module(text)
        if named is None:
            return _find(text).spec
        place, module, name = named
        found = getattr(module, name or BINDING, None)
        return _pick(text, place, module, name).spec if found is None or isinstance(found, type | Spec) else found


def titled(name: str) -> Target | None:
    """The bundled model with the title `name`, which may differ from its registered name."""
    registered = bundled()
    if name in registered:
        return _registered(name, registered[name])
    for key, entry in registered.items():
        with suppress(StreamproofError):  # skip packages that cannot be loaded
            target = _registered(key, entry)
            if target.name == name:
                return target
    return None


def unknown(message: str, name: str, known: Collection[str], kind: str, more: str = "") -> UsageError:
    """The error for an unknown name: the nearest names, then the list of known names of this `kind`, then `more`."""
    names = list(known)
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    hints = (did_you_mean(name, names), f"{kind}: {shown or 'none'}" if kind else "", more)
    return UsageError(f"{message} {name!r}", remedy="\n  ".join(filter(None, hints)))


def first_line(doc: str | None) -> str:
    """The first line of a docstring; empty without docstring."""
    return inspect.cleandoc(doc).partition("\n")[0] if doc else ""


@cache
def _registered(name: str, entry: Entry) -> Target:
    try:
        value = entry.load()
    except StreamproofError:
        raise
    except Exception as error:
        raise SystemFailure(
            f"the registered model {name} cannot be loaded from {entry.value}: {type(error).__name__}: {error}",
            remedy="install its package again, or remove it",
        ) from error
    target = _target(name, value, specified=True)
    if target is None:
        raise SystemFailure(f"{entry.value}, registered as {name}, is neither a Spec nor a Model class")
    return target


def _target(text: str, value: object, *, specified: bool = False) -> Target | None:
    if isinstance(value, Spec):
        return Target(text, value, True)
    if isinstance(value, type) and issubclass(value, Model) and value is not Model:
        if value.variant is not None:
            raise UsageError(
                f"{value.__name__} is the variant {value.variant!r} of {value.title()}",
                remedy=f"check the model with --variant {value.variant}",
            )
        return Target(text, Spec(model=value), specified)
    return None


def _pick(text: str, place: str, module: types.ModuleType, name: str) -> Target:
    """The object called `name`, or the only model of the module."""
    if name:
        if not hasattr(module, name):
            raise unknown(f"{place} has no", name, _candidates(module), "its models")
        target = _target(text, getattr(module, name))
        if target is None:
            kind = type(getattr(module, name)).__name__
            raise UsageError(f"{name} in {place} is a {kind}, neither a Spec nor a Model class")
        return target
    found = _candidates(module) or _stateless(module)
    if not found:
        raise InputError(f"{place} defines no model", remedy="define one: class MyModel(streamproof.Model)")
    if len(found) > 1:
        raise UsageError(
            f"{place} defines {len(found)} models",
            remedy=f"name one of them: {', '.join(f'{place}:{n}' for n in found)}",
        )
    target = _target(text, next(iter(found.values())))
    assert target is not None, "candidates are models"
    return target


def _candidates(module: types.ModuleType) -> dict[str, Spec | type[Model]]:
    """The models of a module: its specifications, and its model classes without a specification."""
    every = {id(v): (n, v) for n, v in vars(module).items() if isinstance(v, Spec)}.values()
    own = [(n, v) for n, v in every if v.model.__module__ == module.__name__]
    specs: dict[str, Spec | type[Model]] = dict(own or every)
    covered = tuple(c for v in specs.values() if isinstance(v, Spec) for c in (v.model, *_refined(v)))
    models = {
        n: v
        for n, v in vars(module).items()
        if isinstance(v, type) and issubclass(v, Model) and v.__module__ == module.__name__
        if v.variant is None and v.state is not Model.state and not any(issubclass(c, v) for c in covered)
    }
    return {**specs, **models}


def _refined(spec: Spec) -> Iterator[type[Model]]:
    """The abstract models of the refinement properties of a specification."""
    for function in (*spec.properties, *(f for c in spec.model.__mro__ for f in vars(c).values())):
        mark = getattr(function, MARK, None)
        if isinstance(mark, RefinementMark):
            yield mark.model


def _stateless(module: types.ModuleType) -> dict[str, Spec | type[Model]]:
    """The model classes of a module without state."""
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Model)]
    return {v.__name__: v for v in own if v.__module__ == module.__name__ and v.variant is None}


def _import_file(path: Path) -> types.ModuleType:
    """Run a user's file as a module with a unique name; it can import modules of its folder (`entries.admit`).

    Compiled here, not by the import system, whose cache misses edits within the same second.
    """
    import hashlib

    from streamproof.system.reading import expect_file

    expect_file(path)

    full = os.path.abspath(path)
    name = f"streamproof_file_{path.stem}_{hashlib.sha256(full.encode()).hexdigest()[:12]}"
    module = types.ModuleType(name)
    module.__file__ = full
    sys.modules[name] = module
    admit(name, os.path.dirname(full))
    process = os.getpid()
    code_of_others.append(full)
    try:
        exec(_compiled(path, full), vars(module))
        if os.getpid() != process:  # a fork of this process by the user's file: only the original continues
            os._exit(0)
    except StreamproofError:
        raise
    except OSError as error:
        if error.filename != full:
            raise _of_user(error) from error
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyboardInterrupt, TimeUp):
        raise
    except BaseException as error:
        raise _of_user(error, full) from error
    finally:
        interrupts.handle()
    return module


def _compiled(path: Path, full: str) -> types.CodeType:
    """The code of a Python file with the full name `full`. Raises `InputError` or `ModelError`."""
    source = Path(full).read_bytes()
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        try:
            importlib.util.decode_source(source)
        except (SyntaxError, UnicodeDecodeError):
            raise InputError(
                f"{path} is not UTF-8 text: byte {error.start} is {source[error.start]:#x}",
                remedy="store it as UTF-8, or name its encoding in the first line",
            ) from None
    try:
        return compile(source, full, "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        raise ModelError(
            "an expression is nested too deeply for Python",
            loc=Loc(full, _longest(source)),
            remedy="give its parts names, or write a sum, a conjunction or a lookup over a list",
        ) from None


def _longest(source: bytes) -> int:
    """The first line of the statement with the most tokens: the one nested too deeply."""
    import io
    import tokenize

    counts: dict[int, int] = {}
    first = 0
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            first = first or token.start[0]
            counts[first] = counts.get(first, 0) + 1
            if token.type == tokenize.NEWLINE:
                first = 0
    return max(counts, key=lambda line: counts[line], default=1)


def _import_module(name: str) -> types.ModuleType:
    admit(name, os.getcwd())
    code_of_others.append(name)
    try:
        return importlib.import_module(name)
    except StreamproofError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module named {error.name}",
                remedy=f"searched the working folder {os.getcwd()} and the installed packages",
            ) from None
        raise _of_user(error) from error
    except (KeyboardInterrupt, TimeUp):
        raise
    except BaseException as error:
        raise _of_user(error) from error


def _of_user(error: BaseException, file: str | None = None) -> ModelError:
    """The model error for an exception of the user's code, at the user's line."""
    from streamproof.system.reading import TOO_LONG

    if isinstance(error, SyntaxError):
        place = Loc(error.filename or file or "?", error.lineno or 1)
        if _is_too_long(error):
            return ModelError(TOO_LONG, loc=place, remedy="write a smaller one")
        shown = (error.text or "").strip()
        shown = shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]} ..."
        text = f"\n    {shown}" if shown else ""
        return ModelError(f"{type(error).__name__}: {error.msg}{text}", loc=place, remedy="correct the file")
    loc = _users_line(error) or (Loc(file, 1) if file else None)
    if _is_too_long(error):
        return ModelError(TOO_LONG, loc=loc, remedy="compute with smaller ones")
    if isinstance(error, SystemExit):
        return ModelError("the file ends the program while it is imported", loc=loc, remedy="guard its script part")
    remedy = "correct the model"
    if isinstance(error, NameError) and error.name in sys.modules["streamproof"].__all__:
        remedy = f"add it to the names imported from streamproof: from streamproof import {error.name}"
    return ModelError(f"{type(error).__name__}: {text_of(error)}", loc=loc, remedy=remedy)


def _is_too_long(error: BaseException) -> bool:
    """Whether Python rejects the conversion of an integer because of its length."""
    return isinstance(error, ValueError | SyntaxError) and "for integer string conversion" in text_of(error)


def _users_line(error: BaseException) -> Loc | None:
    """The innermost line of the traceback outside of streamproof and the standard library."""
    import sysconfig

    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    library = sysconfig.get_path("stdlib") + os.sep
    found = None
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        standard = file.startswith("<") or (file.startswith(library) and "site-packages" not in file)
        if not file.startswith(own) and not standard:
            found = Loc(file, at.tb_lineno, at.tb_frame.f_code.co_name)
        at = at.tb_next
    return found
