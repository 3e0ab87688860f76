"""Instantiation of a composition: the name of each machine, its declarations, and the names visible to it.

A composite is instantiated before any rule is read, so that the rules of its parts are read with the variables of the
whole. Steps are the task of `composite`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.language.composition import Each, Part, Parts, Shared
from streamproof.language.declare import Decl
from streamproof.language.machines import Machine, Pattern, parsed, places_of
from streamproof.language.model import Model, class_place, marked, with_guards
from streamproof.language.primitives import ActionMark
from streamproof.language.reader import declared
from streamproof.language.sources import ordinary, place
from streamproof.language.symbolic_parameters import SymbolicInt
from streamproof.language.terms import Entry, PartFamily, ScopeNames, VariableName, Variables, describe
from streamproof.system.errors import Loc, ModelError, suggest

MOST_LEVELS = 12
"""Maximum nesting depth of parts."""
ATTRIBUTE = "_parts_read"
"""The attribute in which a model caches its parts; calling `parts()` again would create new ones."""


def is_composite(model: Model) -> bool:
    """Whether the model has parts."""
    return type(model).parts is not Model.parts


def parts_of(model: Model) -> Parts:
    """The parts of a composite, created once; each is also an attribute of the model. Raises `ModelError`."""
    if ATTRIBUTE in model.__dict__:
        known: Parts = model.__dict__[ATTRIBUTE]
        return known
    home = place(type(model).parts)
    free = any(type(v) is SymbolicInt for v in model.settings().values())
    parts = ordinary(with_guards(model.parts, free), "parts()", home)
    if not isinstance(parts, Parts):
        raise ModelError(
            f"parts() of {type(model).__name__} returned {describe(parts)}",
            loc=home,
            remedy="end it with: return Parts(name=machine, ...)",
        )
    for name, given in parts.machines.items():
        found = _models(given)
        if getattr(model, name, found) not in (found, getattr(given, "model", None)):
            raise ModelError(
                f"{name!r} is the name of a part and of something else in {type(model).__name__}",
                loc=parts.loc,
                remedy="rename one of them",
            )
        setattr(model, name, found)
    setattr(model, ATTRIBUTE, parts)
    return parts


def _models(given: Part | Each) -> Any:
    if isinstance(given, Part):
        return given.model
    keys = [key for key, _ in given.parts]
    models = tuple(p.model for _, p in given.parts)
    return models if keys == list(range(len(keys))) else dict(zip(keys, models, strict=True))


def declarations(model: Model, *, free: bool) -> tuple[dict[str, Decl], Loc | None]:
    """A machine's own declarations and their position; none for a composite without ``state()``."""
    if type(model).state is Model.state and is_composite(model):
        return {}, class_place(type(model))
    return declared(model, free=free)


def instantiate(model: Model, *, free: bool = False) -> Machine:
    """The machine tree of `model`. Raises `ModelError` for an invalid composition."""
    return _machine(model, "", Variables(), None, free)


def _machine(model: Model, path: str, variables: Variables, given: Part | None, free: bool) -> Machine:
    if path.count(".") >= MOST_LEVELS:
        raise ModelError(
            f"{type(model).__name__} has parts that have parts, more than {MOST_LEVELS} levels deep",
            loc=given.loc if given else None,
            remedy="no machine may be a part of itself",
        )
    own, loc = declarations(model, free=free)
    machine = Machine(model, path, own, loc)
    machine.renamed = _renaming(machine, given)
    entries: dict[str, Entry] = {}
    for name, decl in own.items():
        raw = machine.prefix + machine.renamed.get(name, name)
        entries[name] = VariableName(variables, raw)
        machine.declared[raw] = decl
    if is_composite(model):
        machine.parts = parts_of(model)
        for name, one in machine.parts.machines.items():
            entries[name] = _below(machine, name, one, variables, free)
    machine.inside = ScopeNames(path, entries, {}, model)
    named = [n for n, (mark, _) in marked(type(model)).items() if isinstance(mark, ActionMark)]
    named += [j.name for j in machine.parts.joint] if machine.parts else []
    machine.actions = tuple(named)
    for child in machine.children():
        machine.internal.update(child.internal)
    for shared in machine.parts.shared if machine.parts else ():
        _share(machine, shared, entries, variables)
    for child in machine.children():
        machine.declared.update(child.declared)
    machine.declared = {n: d for n, d in machine.declared.items() if variables.name(n) == n}
    _hide(machine, given)
    return machine


def _below(machine: Machine, name: str, one: Part | Each, variables: Variables, free: bool) -> Entry:
    path = machine.prefix + name
    if isinstance(one, Part):
        made = _machine(one.model, path, variables, one, free)
        machine.below[name] = {None: made}
        return made.outside
    members = {key: _machine(p.model, f"{path}[{key}]", variables, p, free) for key, p in one.parts}
    machine.below[name] = members
    return PartFamily(tuple(members), tuple(m.outside for m in members.values()))


def _renaming(machine: Machine, given: Part | None) -> dict[str, str]:
    renamed = dict(given.renamed) if given else {}
    if not renamed:
        return {}
    assert given is not None
    model = machine.model
    actions = [n for n, (mark, _) in marked(type(model)).items() if isinstance(mark, ActionMark)]
    actions += [j.name for j in parts_of(model).joint] if is_composite(model) else []
    shared = [s.name for s in parts_of(model).shared] if is_composite(model) else []
    known = [*machine.own, *(n for n in shared if n not in machine.own), *actions]
    for old, new in renamed.items():
        if old not in known:
            raise ModelError(
                f"{machine.path} has no variable or action {old!r} to rename",
                loc=given.loc,
                remedy=suggest(old, known, f"it has {', '.join(known)}"),
            )
        if not new.isidentifier() or new in known:
            raise ModelError(
                f"{old!r} of {machine.path} cannot be called {new!r}",
                loc=given.loc,
                remedy="choose a name that nothing else in it has",
            )
    if len(set(renamed.values())) < len(renamed):
        raise ModelError(f"two things in {machine.path} get the same name", loc=given.loc, remedy="give each its own")
    return renamed


def _share(machine: Machine, shared: Shared, entries: dict[str, Entry], variables: Variables) -> None:
    target = machine.prefix + machine.renamed.get(shared.name, shared.name)
    own = shared.name in machine.own
    if shared.name in entries and not own:
        raise ModelError(f"{shared.name!r} names two things", loc=shared.loc, remedy="choose another name")
    first: Decl | None = machine.own.get(shared.name)
    at = target
    for text in shared.places:
        for leaf in _leaves(machine, parsed(text, shared.loc), shared.loc):
            if leaf.name == target:
                raise ModelError(f"{text} is {shared.name} already", loc=shared.loc, remedy="name it once")
            decl = _declaration(machine, leaf.name)
            if first is None:
                first, at = decl, leaf.name
            for what, mine, theirs in (("sorts", first.sort, decl.sort), ("first values", first.first, decl.first)):
                if mine != theirs:
                    raise ModelError(
                        f"{at} and {leaf.name} have different {what}, {_shown(mine)} and {_shown(theirs)}: "
                        "they cannot be one variable",
                        loc=shared.loc,
                        remedy=f"declare them alike: {' and '.join(dict.fromkeys(map(str, (first.loc, decl.loc))))}",
                    )
            variables.share(leaf.name, target)
    assert first is not None
    entries[shared.name] = VariableName(variables, target)
    machine.declared[target] = first


def _shown(what: Any) -> str:
    return ", ".join(map(str, what)) if isinstance(what, tuple) else str(what)


def _declaration(machine: Machine, variable: str) -> Decl:
    found = machine.declared.get(variable)
    return found or next(c.declared[variable] for c in machine.children() if variable in c.declared)


def _hide(machine: Machine, given: Part | None) -> None:
    """The names visible from outside the machine, after renaming and hiding."""
    hidden: dict[tuple[str, str], str] = {}
    hiding = [*(machine.parts.hidden if machine.parts else ())]
    for texts, loc, by in (
        *((p.places, p.loc, machine.path) for p in hiding),
        *(((given.hidden, given.loc, machine.path),) if given else ()),
    ):
        at = f"{loc.short}" if loc else "the composition"
        for text in texts:
            for owner, name in places_of(machine, parsed(text, loc), loc):
                if name in owner.inside.entries:
                    hidden[owner.path, name] = at
                else:
                    machine.internal.setdefault(owner.called(name), (by, at))
    machine.outside = _masked(machine.inside, hidden)
    if machine.renamed:
        entries = {machine.renamed.get(n, n): e for n, e in machine.outside.entries.items()}
        covered = {machine.renamed.get(n, n): at for n, at in machine.outside.hidden.items()}
        machine.outside = ScopeNames(machine.path, entries, covered, machine.model, machine.inside)


def _masked(names: ScopeNames, hidden: Mapping[tuple[str, str], str]) -> ScopeNames:
    def seen(entry: Entry) -> Entry:
        match entry:
            case ScopeNames():
                return _masked(entry, hidden)
            case PartFamily(keys, members):
                return PartFamily(keys, tuple(_masked(m, hidden) for m in members))
        return entry

    covered = {name: at for (path, name), at in hidden.items() if path == names.path}
    return ScopeNames(
        names.path,
        {n: seen(e) for n, e in names.entries.items() if n not in covered},
        {**names.hidden, **covered},
        names.model,
        names.inside or names,
    )


def _leaves(machine: Machine, pattern: Pattern, loc: Loc | None) -> Iterator[VariableName]:
    for owner, name in places_of(machine, pattern, loc):
        entry = owner.inside.entries.get(name)
        if not isinstance(entry, VariableName):
            what = "a part" if entry is not None else "an action"
            raise ModelError(f"{pattern.text} is {what}", loc=loc, remedy="only variables are shared")
        yield entry
