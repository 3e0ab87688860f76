"""Probable mistakes in a model: unused functions of the state without a decorator, and unused variables."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from streamproof.language.declarations import tree_of
from streamproof.language.model import RESERVED, Model, marked
from streamproof.language.primitives import MARK
from streamproof.language.sources import code_of, codes, parameters, place
from streamproof.language.spec import Spec
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Var, variables
from streamproof.system.formula import atoms
from streamproof.system.model import System
from streamproof.system.sorts import Sort, cardinality_up_to


def unmarked(spec: Spec, cls: type[Model]) -> list[tuple[Loc, str]]:
    """The unused functions of `cls` (the model or a variant), with their positions and the reason."""
    found = [*_methods(cls), *_properties(spec, cls)]
    homes = {c.__module__: None for c in cls.__mro__ if issubclass(c, Model) and c is not Model}
    homes |= {f.__module__: None for f in (*spec.properties, *spec.measures)}
    called = _called(homes) if found else set()
    found = [one for one in found if one[0] not in called]
    for file in _files(homes) if found else ():
        used = _used(file)
        if used is None:
            return []
        found = [one for one in found if one[0] not in used]
        if not found:
            break
    return [(loc, why) for _, loc, why in found]


def unused(system: System) -> list[str]:
    """The variables that no rule or property reads or writes, one line each; those with one value have no use."""
    updates = [(name, term) for i in system.instances for name, term in i.updates]
    written = {name for name, term in updates if not (isinstance(term, Var) and term.name == name)}
    terms = [term for name, term in updates if name in written]
    for i in system.instances:
        terms += [c.expr for c in i.guard] + [c.condition for c in (*i.guard_checks, *i.effect_checks)]
    for p in (*system.properties, *system.lemmas):
        terms += [p.expr, *(view for _, view in p.views), *(a.expr for a in (atoms(p.formula) if p.formula else ()))]
    terms += [system.initially, *([] if system.terminal is None else [system.terminal])]
    used = written | variables(*terms)
    idle = [v for v in system.variables if v.name not in used]
    why = "no rule and no property uses the variable {} at these parameters"
    return [why.format(v.name) for v in idle if not _has_one_value(v.sort)]


def _has_one_value(sort: Sort) -> bool:
    try:
        return cardinality_up_to(sort, 1) <= 1
    except ModelError:  # the ends of a range are free parameters, or infinite
        return False


def _methods(cls: type[Model]) -> Iterator[tuple[str, Loc, str]]:
    """Undecorated methods that take the state like decorated ones, and override nothing."""
    rules = marked(cls)
    states = {names[1] for _, f in rules.values() if callable(f) and len(names := parameters(f)) > 1}
    for c in cls.__mro__:
        for name, member in vars(c).items() if issubclass(c, Model) and c is not Model else ():
            if not isinstance(member, types.FunctionType) or name in rules or name in RESERVED or name.startswith("_"):
                continue
            loc, taken = place(member), parameters(member)
            inherited = sum(name in vars(other) for other in cls.__mro__) > 1
            if loc is not None and not inherited and len(taken) > 1 and taken[1] in states and member.__name__ == name:
                yield (
                    name,
                    loc,
                    f"{name}({', '.join(taken)}) has no mark, and nothing calls it; is a decorator missing?",
                )


def _properties(spec: Spec, cls: type[Model]) -> Iterator[tuple[str, Loc, str]]:
    """Decorated functions in the module of the model, or of its `Spec`'s properties, that are not listed there."""
    listed = (*spec.properties, *spec.measures)
    for module in {cls.__module__, *(f.__module__ for f in listed)}:
        for name, member in vars(sys.modules.get(module, types.ModuleType(""))).items():
            ours = isinstance(member, types.FunctionType) and member.__module__ == module and MARK in vars(member)
            loc = place(member) if ours and member not in listed else None
            if loc is not None:
                yield name, loc, f"{name} is marked, and no Spec has it among its properties"


def _called(homes: Iterable[str]) -> set[str]:
    """The names read by functions and methods of modules: nearly all used names, found without parsing a file."""
    found = set[str]()
    for home in homes:
        for member in list(vars(sys.modules.get(home, types.ModuleType(""))).values()):
            inner = vars(member).values() if isinstance(member, type) and member.__module__ in homes else (member,)
            for function in inner:
                if isinstance(function, types.FunctionType):
                    found.update(name for code in codes(code_of(function)) for name in code.co_names)
    return found


def _files(homes: Iterable[str]) -> Iterator[str]:
    """The files that may use functions of a model: those of these modules, then all loaded from their folders."""
    own = dict.fromkeys(filter(None, (_file(sys.modules.get(name)) for name in homes)))
    yield from own
    folders = {Path(file).parent for file in own}
    for file in filter(None, map(_file, list(sys.modules.values()))):
        if file not in own and Path(file).parent in folders:
            yield file


def _file(module: Any) -> str | None:
    found = getattr(module, "__file__", None)
    return found if isinstance(found, str) and found.endswith(".py") else None


def _used(file: str) -> set[str] | None:
    """Every name in a file, as code or text; None if it uses computed attribute names."""
    found = set[str]()
    for node in ast.walk(tree_of(file) or ast.Module([], [])):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.Constant(value=str(text)):
                found.add(text)
        if _is_lookup(node):
            return None
    return found


def _is_lookup(node: Any) -> bool:
    """Whether a call reads an attribute by a computed name."""
    by_name = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "vars", "dir")
    return by_name and not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant))
