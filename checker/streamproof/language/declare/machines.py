"""The machines of a composition in their places: the name of each, its declarations, the names visible to it, and patterns.

A composite is instantiated before any rule is read, so that the rules of its parts are read with the variables of the
whole. Steps are the task of `composite`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from streamproof.base.errors import Loc, ModelError, suggest
from streamproof.base.records import dataclass
from streamproof.language.declare.composition import (
    All,
    Each,
    Given,
    Index,
    Named,
    Part,
    Parts,
    Pattern,
    Segment,
    Shared,
    parsed,
)
from streamproof.language.declare.model import Model, class_place, marked
from streamproof.language.declare.primitives import ActionMark
from streamproof.language.declare.variables import Decl
from streamproof.language.free.symbolic_parameters import call_user
from streamproof.language.lower.model_reader import declared
from streamproof.language.lower.sources import place
from streamproof.language.lower.terms import Entry, PartFamily, ScopeNames, VariableName, Variables, by_key, describe

MOST_LEVELS = 12
"""Maximum nesting depth of parts."""
ATTRIBUTE = "_parts_read"
"""The attribute in which a model caches its parts; calling `parts()` again would create new ones."""


@dataclass(eq=False, slots=True)
class Machine:
    """One model in its place in a composition."""

    model: Model
    path: str
    own: Mapping[str, Decl]
    """The machine's own declarations, by the names in its rules."""
    loc: Loc | None
    parts: Parts | None = None
    below: dict[str, dict[Any, Machine]] = field(default_factory=dict)
    """Its parts by name and key; the key of a single part is None."""
    inside: ScopeNames = field(default_factory=lambda: ScopeNames("", {}, {}))
    outside: ScopeNames = field(default_factory=lambda: ScopeNames("", {}, {}))
    declared: dict[str, Decl] = field(default_factory=dict)
    """Every variable in the machine, by its name in the system, in order."""
    actions: tuple[str, ...] = ()
    """The machine's own actions, including joint ones, by their own names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    internal: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Hidden actions: by their name in the system, the path of the machine that hides them, and the place."""

    @property
    def prefix(self) -> str:
        """The prefix of names inside the machine."""
        return f"{self.path}." if self.path else ""

    def called(self, action: str) -> str:
        """The name in the system of an action of the machine."""
        return self.prefix + self.renamed.get(action, action)

    def own_name(self, name: str, at: Machine) -> str:
        """The machine's own name for `name`, which a composition `at` above it (or the machine itself) uses."""
        return name if at is self else next((old for old, new in self.renamed.items() if new == name), name)

    def actions_at(self, at: Machine) -> tuple[str, ...]:
        """The machine's actions, under the names that a composition `at` above it (or the machine itself) uses."""
        return tuple(n if at is self else self.renamed.get(n, n) for n in self.actions)

    def children(self) -> Iterator[Machine]:
        """Its parts, in order."""
        for members in self.below.values():
            yield from members.values()


def below(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The parts of a composite, grouped by name."""
    for name, members in machine.below.items():
        for member in members.values():
            yield name, member


def is_composite(model: Model) -> bool:
    """Whether the model has parts."""
    return type(model).parts is not Model.parts


def parts_of(model: Model) -> Parts:
    """The parts of a composite, created once; each is also an attribute of the model. Raises `ModelError`."""
    space = object.__getattribute__(model, "__dict__")
    if ATTRIBUTE in space:
        known: Parts = space[ATTRIBUTE]
        return known
    home = place(type(model).parts)
    parts = call_user(model.parts, (), "parts()", home)
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
    return by_key(tuple(key for key, _ in given.parts), tuple(p.model for _, p in given.parts))


def declarations(model: Model) -> tuple[dict[str, Decl], Loc | None]:
    """A machine's own declarations and their position; none for a composite without ``state()``."""
    if type(model).state is Model.state and is_composite(model):
        return {}, class_place(type(model))
    return declared(model)


def instantiate(model: Model) -> Machine:
    """The machine tree of `model`. Raises `ModelError` for an invalid composition."""
    return _machine(model, "", Variables(), None)


def _machine(model: Model, path: str, variables: Variables, given: Part | None) -> Machine:
    if path.count(".") >= MOST_LEVELS:
        raise ModelError(
            f"{type(model).__name__} has parts that have parts, more than {MOST_LEVELS} levels deep",
            loc=given.loc if given else None,
            remedy="no machine may be a part of itself",
        )
    own, loc = declarations(model)
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
            entries[name] = _below(machine, name, one, variables)
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


def _below(machine: Machine, name: str, one: Part | Each, variables: Variables) -> Entry:
    path = machine.prefix + name
    if isinstance(one, Part):
        made = _machine(one.model, path, variables, one)
        machine.below[name] = {None: made}
        return made.outside
    members = {key: _machine(p.model, f"{path}[{key}]", variables, p) for key, p in one.parts}
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
    hiding = [(p.places, p.loc) for p in (machine.parts.hidden if machine.parts else ())]
    for texts, loc in (*hiding, *([(given.hidden, given.loc)] if given else [])):
        at = f"{loc.short}" if loc else "the composition"
        for text in texts:
            for owner, name in places_of(machine, parsed(text, loc), loc):
                if name in owner.inside.entries:
                    hidden[owner.path, name] = at
                else:
                    machine.internal.setdefault(owner.called(name), (machine.path, at))
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


@dataclass(frozen=True, eq=False, slots=True)
class SeenMachine:
    """A machine that a pattern matches: its visible names, and the parameters bound on the path to it."""

    machine: Machine
    names: ScopeNames
    binding: Mapping[str, Any]


def resolve_pattern(machine: Machine, pattern: Pattern, loc: Loc | None) -> list[list[SeenMachine]]:
    """The machines that a step pattern matches: for each participant, the list of alternatives.

    Raises `ModelError` for missing, ambiguous or hidden parts.
    """
    found = [[SeenMachine(machine, machine.inside, {})]]
    for segment in pattern.way:
        going: list[list[SeenMachine]] = []
        for choices in found:
            every = [(seen, key, m, n) for seen in choices for key, m, n in _members(seen, segment.name, loc)]
            wanted = _refused(segment, [key for _, key, _, _ in every], pattern, loc)
            match wanted:
                case Named(name):
                    free = [row for row in every if row[0].binding.get(name, row[1]) == row[1]]
                    going.append([SeenMachine(m, n, {**seen.binding, name: key}) for seen, key, m, n in free])
                case All():
                    for key in dict.fromkeys(key for _, key, _, _ in every):
                        going.append([SeenMachine(m, n, seen.binding) for seen, k, m, n in every if k == key])
                case Given(value):
                    chosen = [row for row in every if _same(row[1], value)]
                    going.append([SeenMachine(m, n, seen.binding) for seen, _, m, n in chosen])
                case None:
                    going.append([SeenMachine(m, n, seen.binding) for seen, _, m, n in every])
        found = going
    return found


def places_of(machine: Machine, pattern: Pattern, loc: Loc | None) -> Iterator[tuple[Machine, str]]:
    """The machines that contain a name, with its own name there; several parts without brackets mean all.

    Raises `ModelError` for a missing or hidden name.
    """
    if pattern.args is not None:
        raise ModelError(f"{pattern.text!r} is a step, not a name", loc=loc, remedy="leave out the parentheses")
    if pattern.parameters:
        raise ModelError(
            f"{pattern.text!r} has a parameter", loc=loc, remedy="leave out the brackets to mean all of them"
        )
    found = [SeenMachine(machine, machine.inside, {})]
    for segment in pattern.way:
        every = [row for seen in found for row in _members(seen, segment.name, loc)]
        index = _refused(segment, [key for key, _, _ in every], pattern, loc) if segment.index is not None else None
        found = [
            SeenMachine(m, n, {}) for key, m, n in every if not isinstance(index, Given) or _same(key, index.value)
        ]
    for seen in found:
        owner, known, actions = seen.machine, seen.names.entries, seen.machine.actions_at(machine)
        if pattern.name in seen.names.hidden:
            seen.names.find(pattern.name, loc)
        if pattern.name not in known and pattern.name not in actions:
            where, both = owner.path or type(machine.model).__name__, [*known, *actions]
            raise ModelError(
                f"{where} has no variable or action {pattern.name!r}",
                loc=loc,
                remedy=suggest(pattern.name, both, f"it has {', '.join(both)}"),
            )
        yield owner, owner.own_name(pattern.name, machine)


def _members(at: SeenMachine, name: str, loc: Loc | None) -> list[tuple[Any, Machine, ScopeNames]]:
    """The parts of one name, with their keys and visible names."""
    machine = at.machine
    if name not in machine.below:
        owner, known = machine.path or type(machine.model).__name__, list(machine.below)
        raise ModelError(
            f"{owner} has no part {name!r}",
            loc=loc,
            remedy=suggest(name, known, f"its parts: {', '.join(known)}" if known else "it is one machine"),
        )
    match at.names.find(name, loc):
        case ScopeNames() as names:
            return [(None, machine.below[name][None], names)]
        case PartFamily(keys, members):
            return [(key, machine.below[name][key], names) for key, names in zip(keys, members, strict=True)]
        case VariableName():
            raise ModelError(f"{name} is a variable", loc=loc, remedy="name a part")


def _refused(segment: Segment, keys: list[Any], pattern: Pattern, loc: Loc | None) -> Index:
    """The index of a part in a pattern. Raises `ModelError` if it does not match the part."""
    name, index = segment.name, segment.index
    if None in keys:
        if index is not None:
            raise ModelError(f"{name} in {pattern.text!r} is one part", loc=loc, remedy="leave out the brackets")
    elif index is None:
        raise ModelError(
            f"{name} in {pattern.text!r} is several parts",
            loc=loc,
            remedy=f"write {name}[{keys[0]!r}], {name}[i] or {name}[:]",
        )
    elif isinstance(index, Given) and not any(_same(key, index.value) for key in keys):
        shown = ", ".join(repr(k) for k in dict.fromkeys(keys))
        raise ModelError(f"{name} has no part {index.value!r}", loc=loc, remedy=f"its keys are {shown}")
    return index


def _same(key: Any, value: Any) -> bool:
    return type(key) is type(value) and bool(key == value)
