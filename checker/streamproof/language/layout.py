"""The machines of a composition in their places: what each is called, what it declares, what it sees of the others.

A composite is laid out before any of its rules is read, so that the rules of its parts are read with the variables
that they have in the whole. Nothing here knows steps; `composite` puts them together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import field
from typing import Any

from streamproof.language.amounts import Amount, ranging
from streamproof.language.compile import declared
from streamproof.language.composition import Each, Part, Parts, Shared
from streamproof.language.declare import Decl
from streamproof.language.frames import ordinary
from streamproof.language.model import Model, class_place, marked
from streamproof.language.patterns import All, Given, Index, Named, Pattern, Segment, parsed
from streamproof.language.primitives import ActionMark
from streamproof.language.scopes import Entry, Family, Leaf, Names, Variables
from streamproof.language.sources import place
from streamproof.language.terms import describe
from streamproof.system.errors import Loc, ModelError
from streamproof.system.records import dataclass

MOST_LEVELS = 12
"""The most levels of parts within parts."""
ATTRIBUTE = "_parts_read"
"""Where a model keeps its parts once they have been asked for: asking again would make other ones."""


@dataclass(eq=False, slots=True)
class Machine:
    """One model in its place."""

    model: Model
    path: str
    own: Mapping[str, Decl]
    """What it declares itself, by the name that its own rules use."""
    loc: Loc | None
    parts: Parts | None = None
    below: dict[str, dict[Any, Machine]] = field(default_factory=dict)
    """Its parts by name and key; the key of a single one is None."""
    inside: Names = field(default_factory=lambda: Names("", {}, {}))
    outside: Names = field(default_factory=lambda: Names("", {}, {}))
    declared: dict[str, Decl] = field(default_factory=dict)
    """Every variable in it, by its name in the system, in order."""
    actions: tuple[str, ...] = ()
    """The actions that it has itself, joint ones included, by its own names for them."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    internal: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Actions in it that cannot be named: by their name in the system, the path of what hides them, and where."""

    @property
    def prefix(self) -> str:
        """What stands before the names of what is in it."""
        return f"{self.path}." if self.path else ""

    def called(self, action: str) -> str:
        """What an action of the machine itself is called in the system."""
        return self.prefix + self.renamed.get(action, action)

    def own_name(self, name: str, at: Machine) -> str:
        """What the machine itself calls what is `name` for a composition `at` above it, or for itself."""
        return name if at is self else next((old for old, new in self.renamed.items() if new == name), name)

    def actions_at(self, at: Machine) -> tuple[str, ...]:
        """Its own actions as a composition `at` above it calls them, or as itself does."""
        return tuple(n if at is self else self.renamed.get(n, n) for n in self.actions)

    def children(self) -> Iterator[Machine]:
        """Its parts, in order."""
        for members in self.below.values():
            yield from members.values()


def is_composite(model: Model) -> bool:
    """Whether the model has parts."""
    return type(model).parts is not Model.parts


def parts_of(model: Model) -> Parts:
    """The parts of a composite, asked for once; each is also an attribute of the model. Raises `ModelError`."""
    if ATTRIBUTE in model.__dict__:
        known: Parts = model.__dict__[ATTRIBUTE]
        return known
    home = place(type(model).parts)
    with ranging(type(model)) if any(isinstance(v, Amount) for v in model.settings().values()) else nullcontext():
        parts = ordinary(model.parts, "parts()", home)
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
    """What a machine declares itself, and where; nothing for a composite that has no ``state()`` of its own."""
    if type(model).state is Model.state and is_composite(model):
        return {}, class_place(type(model))
    return declared(model, free=free)


def laid_out(model: Model, *, free: bool = False) -> Machine:
    """The composition that `model` is, down to its last parts. Raises `ModelError` at a mistake."""
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
        entries[name] = Leaf(variables, raw)
        machine.declared[raw] = decl
    if is_composite(model):
        machine.parts = parts_of(model)
        for name, one in machine.parts.machines.items():
            entries[name] = _below(machine, name, one, variables, free)
    machine.inside = Names(path, entries, {}, model)
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
    return Family(tuple(members), tuple(m.outside for m in members.values()))


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
                remedy=near(old, known, f"it has {', '.join(known)}"),
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
    entries[shared.name] = Leaf(variables, target)
    machine.declared[target] = first


def _shown(what: Any) -> str:
    return ", ".join(map(str, what)) if isinstance(what, tuple) else str(what)


def _declaration(machine: Machine, variable: str) -> Decl:
    found = machine.declared.get(variable)
    return found or next(c.declared[variable] for c in machine.children() if variable in c.declared)


def _hide(machine: Machine, given: Part | None) -> None:
    """What is seen of the machine from outside: under its new names, without what is hidden."""
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
        machine.outside = Names(machine.path, entries, covered, machine.model, machine.inside)


def _masked(names: Names, hidden: Mapping[tuple[str, str], str]) -> Names:
    def seen(entry: Entry) -> Entry:
        match entry:
            case Names():
                return _masked(entry, hidden)
            case Family(keys, members):
                return Family(keys, tuple(_masked(m, hidden) for m in members))
        return entry

    covered = {name: at for (path, name), at in hidden.items() if path == names.path}
    return Names(
        names.path,
        {n: seen(e) for n, e in names.entries.items() if n not in covered},
        {**names.hidden, **covered},
        names.model,
        names.inside or names,
    )


# --- places


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """A machine that a pattern leads to: what is seen of it there, and the parameters that the way to it fixes."""

    machine: Machine
    names: Names
    binding: Mapping[str, Any]


def way(machine: Machine, pattern: Pattern, loc: Loc | None) -> list[list[Seen]]:
    """The machines that a pattern of a step leads to: one list for each that takes part, of its choices.

    Raises `ModelError` for parts that are not there, not told apart, or hidden.
    """
    found = [[Seen(machine, machine.inside, {})]]
    for segment in pattern.way:
        going: list[list[Seen]] = []
        for choices in found:
            every = [(seen, key, m, n) for seen in choices for key, m, n in _members(seen, segment.name, loc)]
            wanted = _refused(segment, [key for _, key, _, _ in every], pattern, loc)
            match wanted:
                case Named(name):
                    free = [row for row in every if row[0].binding.get(name, row[1]) == row[1]]
                    going.append([Seen(m, n, {**seen.binding, name: key}) for seen, key, m, n in free])
                case All():
                    for key in dict.fromkeys(key for _, key, _, _ in every):
                        going.append([Seen(m, n, seen.binding) for seen, k, m, n in every if k == key])
                case Given(value):
                    chosen = [row for row in every if _same(row[1], value)]
                    going.append([Seen(m, n, seen.binding) for seen, _, m, n in chosen])
                case None:
                    going.append([Seen(m, n, seen.binding) for seen, _, m, n in every])
        found = going
    return found


def places_of(machine: Machine, pattern: Pattern, loc: Loc | None) -> Iterator[tuple[Machine, str]]:
    """The machines in which a name is, with the name that it has there itself; several parts without brackets mean all.

    Raises `ModelError` for what is not there, or hidden.
    """
    if pattern.args is not None:
        raise ModelError(f"{pattern.text!r} is a step, not a name", loc=loc, remedy="leave out the parentheses")
    if pattern.parameters:
        raise ModelError(
            f"{pattern.text!r} has a parameter", loc=loc, remedy="leave out the brackets to mean all of them"
        )
    found = [Seen(machine, machine.inside, {})]
    for segment in pattern.way:
        every = [row for seen in found for row in _members(seen, segment.name, loc)]
        index = _refused(segment, [key for key, _, _ in every], pattern, loc) if segment.index is not None else None
        found = [Seen(m, n, {}) for key, m, n in every if not isinstance(index, Given) or _same(key, index.value)]
    for seen in found:
        owner, known, actions = seen.machine, seen.names.entries, seen.machine.actions_at(machine)
        if pattern.name in seen.names.hidden:
            seen.names.find(pattern.name, loc)
        if pattern.name not in known and pattern.name not in actions:
            where, both = owner.path or type(machine.model).__name__, [*known, *actions]
            raise ModelError(
                f"{where} has no variable or action {pattern.name!r}",
                loc=loc,
                remedy=near(pattern.name, both, f"it has {', '.join(both)}"),
            )
        yield owner, owner.own_name(pattern.name, machine)


def _members(at: Seen, name: str, loc: Loc | None) -> list[tuple[Any, Machine, Names]]:
    """The parts of one name, with their keys and what is seen of them."""
    machine = at.machine
    if name not in machine.below:
        owner, known = machine.path or type(machine.model).__name__, list(machine.below)
        raise ModelError(
            f"{owner} has no part {name!r}",
            loc=loc,
            remedy=near(name, known, f"its parts: {', '.join(known)}" if known else "it is one machine"),
        )
    match at.names.find(name, loc):
        case Names() as names:
            return [(None, machine.below[name][None], names)]
        case Family(keys, members):
            return [(key, machine.below[name][key], names) for key, names in zip(keys, members, strict=True)]
        case Leaf():
            raise ModelError(f"{name} is a variable", loc=loc, remedy="name a part")


def _refused(segment: Segment, keys: list[Any], pattern: Pattern, loc: Loc | None) -> Index:
    """What stands in the brackets behind a part. Raises `ModelError` where it does not fit the part."""
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


def _leaves(machine: Machine, pattern: Pattern, loc: Loc | None) -> Iterator[Leaf]:
    for owner, name in places_of(machine, pattern, loc):
        entry = owner.inside.entries.get(name)
        if not isinstance(entry, Leaf):
            what = "a part" if entry is not None else "an action"
            raise ModelError(f"{pattern.text} is {what}", loc=loc, remedy="only variables are shared")
        yield entry


def near(name: str, known: list[str], otherwise: str) -> str:
    """The name that probably was meant, as a remedy."""
    found = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {found[0]!r}?" if found else otherwise
