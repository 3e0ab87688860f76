"""Stream scopes: the chain of loops around a stream (FLIP-15, part I)."""

from __future__ import annotations

from dataclasses import dataclass

from streamproof_runtime.errors import JobError


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of the loops around a stream or an operator, outermost first; no name: outside every loop."""

    loops: tuple[str, ...] = ()

    def nest(self, loop: str) -> Scope:
        """The scope of a loop inside this one."""
        return Scope((*self.loops, loop))

    def unnest(self) -> Scope:
        """The scope around this one; raises `JobError` outside every loop."""
        if not self.loops:
            raise JobError("there is no scope around the outermost one")
        return Scope(self.loops[:-1])

    def outer(self, level: int) -> Scope:
        """The scope around this one that has a level; raises `JobError` if there is none."""
        if not 0 <= level <= self.level:
            raise JobError(f"scope {self} has no scope of level {level}; the levels are 0 to {self.level}")
        return Scope(self.loops[:level])

    @property
    def level(self) -> int:
        """The number of loops around it."""
        return len(self.loops)

    def contains(self, other: Scope) -> bool:
        """Whether `other` is this scope or inside it."""
        return other.loops[: self.level] == self.loops

    def is_inner_of(self, other: Scope) -> bool:
        """Whether it is properly inside `other`."""
        return self != other and other.contains(self)

    def is_outer_of(self, other: Scope) -> bool:
        """Whether `other` is properly inside it."""
        return other.is_inner_of(self)

    def __str__(self) -> str:
        return ".".join(self.loops) or "root"
