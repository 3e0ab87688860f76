"""The machines of a composition in their places, and the patterns that name them.

A pattern is a place in a composition: ``flow.pool``, ``lane[0].room``, ``lane[c].push(kind='A')``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from streamproof.language.composition import Parts
from streamproof.language.declare import Decl
from streamproof.language.model import Model
from streamproof.language.terms import PartFamily, ScopeNames, VariableName
from streamproof.system.errors import Loc, ModelError, suggest
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """A constant index: ``lane[0]``."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter of the joint action: ``lane[c]``."""

    name: str


@dataclass(frozen=True, slots=True)
class All:
    """All indices at once: ``lane[:]``."""


Index: TypeAlias = Given | Named | All | None


@dataclass(frozen=True, slots=True)
class Segment:
    """One name of a dotted path, with its index."""

    name: str
    index: Index


@dataclass(frozen=True, slots=True)
class Pattern:
    """A place: its path, and for actions the arguments in parentheses (None: no parentheses)."""

    text: str
    way: tuple[Segment, ...]
    name: str
    args: tuple[tuple[str | None, Given | Named], ...] | None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters in the pattern."""
        found = [s.index.name for s in self.way if isinstance(s.index, Named)]
        return (*found, *(value.name for _, value in self.args or () if isinstance(value, Named)))


def parsed(text: str, loc: Loc | None) -> Pattern:
    """Parses a place. Raises `ModelError` for invalid text."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unreadable(text, loc) from None
    args: tuple[tuple[str | None, Given | Named], ...] | None = None
    if isinstance(node, ast.Call):
        by_position = tuple((None, _value(a, text, loc)) for a in node.args)
        args = (*by_position, *((k.arg, _value(k.value, text, loc)) for k in node.keywords))
        node = node.func
    if isinstance(node, ast.Name):
        return Pattern(text, (), node.id, args)
    if not isinstance(node, ast.Attribute):
        raise _unreadable(text, loc)
    return Pattern(text, _way(node.value, text, loc), node.attr, args)


def _way(node: ast.expr, text: str, loc: Loc | None) -> tuple[Segment, ...]:
    index: Index = None
    if isinstance(node, ast.Subscript):
        whole = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is node.slice.step is None
        index = All() if whole else _value(node.slice, text, loc)
        node = node.value
    match node:
        case ast.Name(id=name):
            return (Segment(name, index),)
        case ast.Attribute(value=inner, attr=name):
            return (*_way(inner, text, loc), Segment(name, index))
    raise _unreadable(text, loc)


def _value(node: ast.expr, text: str, loc: Loc | None) -> Given | Named:
    if isinstance(node, ast.Name):
        return Named(node.id)
    try:
        return Given(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        raise _unreadable(text, loc) from None


def _unreadable(text: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{text!r} names nothing in a composition",
        loc=loc,
        remedy="write 'part.name', 'part[0].name', 'part[i].action(c, kind=2)' or 'part[:].action()'",
    )


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
