"""What stands behind ``s.`` in a composite: variables, and parts with names of their own behind another dot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from streamproof.system.errors import Loc, ModelError, nearest
from streamproof.system.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class VariableName:
    """A variable, by its name in the system; which one it is, is settled when variables have been shared."""

    variables: Variables
    first: str

    @property
    def name(self) -> str:
        """The variable that it is."""
        return self.variables.name(self.first)


class Variables:
    """Which of the variables of all parts are one and the same."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}

    def share(self, variable: str, into: str) -> None:
        """From now on `variable` is another name of `into`."""
        self._same[self.name(variable)] = into

    def name(self, variable: str) -> str:
        """The name that a variable has in the system."""
        while variable in self._same:
            variable = self._same[variable]
        return variable


@dataclass(frozen=True, eq=False, slots=True)
class ScopeNames:
    """The names that one machine of a composition has, as they are seen from outside of it, or from the inside."""

    path: str
    entries: Mapping[str, Entry]
    hidden: Mapping[str, str]
    """Names that cannot be used here, with the place that hides them."""
    model: Any = None
    """The machine whose names these are."""
    inside: ScopeNames | None = None
    """The same as the machine's own rules see them; None: these are they."""

    def find(self, name: str, loc: Loc | None) -> Entry:
        """What `name` stands for. Raises `ModelError` where it is nothing, or hidden."""
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
        """Its parts, one after the other."""
        for entry in self.entries.values():
            match entry:
                case ScopeNames():
                    yield entry
                case PartFamily(members=members):
                    yield from members

    def leaves(self) -> Iterator[VariableName]:
        """Every variable in it, those of parts included, and those that are hidden: its parts' own helpers read them."""
        inside = self.inside or self
        for entry in inside.entries.values():
            if isinstance(entry, VariableName):
                yield entry
        for part in inside.parts():
            yield from part.leaves()


@dataclass(frozen=True, eq=False, slots=True)
class PartFamily:
    """Parts that are told apart by a key."""

    keys: tuple[Any, ...]
    members: tuple[ScopeNames, ...]

    def seen(self, look: Callable[[ScopeNames], T]) -> tuple[T, ...] | dict[Any, T]:
        """The members as a rule gets them: a tuple where the keys are 0, 1, 2..., else a dict by key."""
        found = tuple(map(look, self.members))
        if self.keys == tuple(range(len(self.keys))):
            return found
        return dict(zip(self.keys, found, strict=True))


Entry: TypeAlias = VariableName | ScopeNames | PartFamily
