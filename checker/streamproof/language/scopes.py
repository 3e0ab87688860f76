"""Names after ``s.`` in a composite: variables, and parts with names of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from streamproof.system.errors import Loc, ModelError, nearest
from streamproof.system.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class VariableName:
    """A variable, by its name in the system; resolved after shared variables have been identified."""

    variables: Variables
    first: str

    @property
    def name(self) -> str:
        """The variable that the name resolves to."""
        return self.variables.name(self.first)


class Variables:
    """A union-find structure of shared variables of all parts."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}

    def share(self, variable: str, into: str) -> None:
        """Identifies `variable` with `into`."""
        self._same[self.name(variable)] = into

    def name(self, variable: str) -> str:
        """The representative name of a variable in the system."""
        while variable in self._same:
            variable = self._same[variable]
        return variable


@dataclass(frozen=True, eq=False, slots=True)
class ScopeNames:
    """The names of one machine of a composition, as visible from outside or inside."""

    path: str
    entries: Mapping[str, Entry]
    hidden: Mapping[str, str]
    """Hidden names, with the place that hides them."""
    model: Any = None
    """The machine that owns the names."""
    inside: ScopeNames | None = None
    """The inside view of the same machine; None if this is it."""

    def find(self, name: str, loc: Loc | None) -> Entry:
        """The meaning of `name`. Raises `ModelError` if it is unknown or hidden."""
        if name in self.entries:
            return self.entries[name]
        shown = f"{self.path}.{name}" if self.path else name
        if name in self.hidden:
            raise ModelError(f"{shown} is hidden", loc=loc, remedy=f"{self.hidden[name]} hides it")
        near = nearest(name, self.entries)
        owner = self.path or "the state"
        known = ", ".join(self.entries) or "nothing that is not hidden"
        remedy = f"did you mean {near[0]!r}?" if near else f"{owner} has {known}"
        raise ModelError(f"no state variable {shown!r}", loc=loc, remedy=remedy)

    def parts(self) -> Iterator[ScopeNames]:
        """Its parts, in order."""
        for entry in self.entries.values():
            match entry:
                case ScopeNames():
                    yield entry
                case PartFamily(members=members):
                    yield from members

    def leaves(self) -> Iterator[VariableName]:
        """Every variable of the machine and its parts, including hidden ones, which the parts' own helpers read."""
        inside = self.inside or self
        for entry in inside.entries.values():
            if isinstance(entry, VariableName):
                yield entry
        for part in inside.parts():
            yield from part.leaves()


@dataclass(frozen=True, eq=False, slots=True)
class PartFamily:
    """Parts distinguished by a key."""

    keys: tuple[Any, ...]
    members: tuple[ScopeNames, ...]

    def seen(self, look: Callable[[ScopeNames], T]) -> tuple[T, ...] | dict[Any, T]:
        """The members as passed to a rule: a tuple if the keys are 0, 1, 2..., else a dict by key."""
        found = tuple(map(look, self.members))
        if self.keys == tuple(range(len(self.keys))):
            return found
        return dict(zip(self.keys, found, strict=True))


Entry: TypeAlias = VariableName | ScopeNames | PartFamily
