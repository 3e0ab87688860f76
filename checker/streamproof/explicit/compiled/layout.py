"""The packed state vector: scalar variables as bit fields in 64-bit words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import cast

from streamproof.explicit.writer import load
from streamproof.system.model import State, System
from streamproof.system.records import dataclass
from streamproof.system.sorts import BoolSort, EnumSort, RangeSort, Scalar, Value, cardinality

WORD = 64
MARK = 1 << (WORD - 1)
"""Bit set in the first word of every state: a zero word marks an empty slot of the hash table."""


@dataclass(frozen=True, slots=True)
class BitField:
    """The bit field of a variable. It holds the difference to `low`: the least integer of a range, 0 for other sorts."""

    sort: Scalar
    word: int
    shift: int
    bits: int
    low: int

    @property
    def mask(self) -> int:
        """The mask of the field within its word."""
        return ((1 << self.bits) - 1) << self.shift

    def code(self, value: Value) -> int:
        """The code of `value`, not shifted."""
        match self.sort:
            case BoolSort():
                return int(value)
            case RangeSort(lo, _):
                return int(value) - lo
            case EnumSort(members):
                return members.index(value)

    def value(self, code: int) -> Value:
        """The value of a code."""
        match self.sort:
            case BoolSort():
                return bool(code)
            case RangeSort(lo, _):
                return code + lo
            case EnumSort(members):
                return members[code]


@dataclass(frozen=True)
class Layout:
    """The packed form of a scalar system's states."""

    fields: Mapping[str, BitField]
    """By variable, in the order of the state."""
    words: int
    """Number of words per state, at least 1."""
    bits: int
    """Number of bits used by fields."""

    def pack(self, state: State) -> tuple[int, ...]:
        """The words of a state."""
        words = [MARK, *[0] * (self.words - 1)]
        for field, value in zip(self.fields.values(), state, strict=True):
            words[field.word] |= field.code(value) << field.shift
        return tuple(words)

    @cached_property
    def packer(self) -> Callable[[Iterable[State]], list[int]]:
        """A generated function that packs states into one list of words."""
        names = [f"v{at}" for at in range(len(self.fields))]
        terms = [[str(0 if at else MARK)] for at in range(self.words)]
        codes: list[str] = []
        for name, field in zip(names, self.fields.values(), strict=True):
            match field.sort:
                case EnumSort(members):
                    codes.append(f" {name}_of = { ({m: k for k, m in enumerate(members)})!r}")
                    code = f"{name}_of[{name}]"
                case RangeSort(lo, _):
                    code = f"({name} - {lo})"
                case BoolSort():
                    code = name
            terms[field.word].append(f"({code} << {field.shift})")
        lines = [
            "def pack(states):",
            *codes,
            " words = []",
            " add = words.append",
            f" for {', '.join(names)}{',' if names else '()'} in states:",
            *(f"  add({' | '.join(parts)})" for parts in terms),
            " return words",
        ]
        return cast(Callable[[Iterable[State]], list[int]], load("pack", "states", "\n".join(lines) + "\n"))

    def unpack(self, words: Sequence[int]) -> State:
        """The state packed in these words."""
        return tuple(f.value((words[f.word] & f.mask) >> f.shift) for f in self.fields.values())


def layout(system: System) -> Layout:
    """The packed layout of a scalar system: one bit field of minimal size per variable.

    Variables keep their order; each is placed in the first word with room for it, so that variables that change together are
    adjacent. A state of at most 63 bits takes one word.
    """
    sizes = {v.name: max(cardinality(v.sort) - 1, 0).bit_length() for v in system.variables}
    total = sum(sizes.values())
    free = [WORD - 1]
    fields: dict[str, BitField] = {}
    for v in system.variables:
        bits = sizes[v.name]
        word = next((at for at, room in enumerate(free) if room >= bits), len(free))
        if word == len(free):
            free.append(WORD)
        start = (WORD if word else WORD - 1) - free[word]
        free[word] -= bits
        low = v.sort.lo if isinstance(v.sort, RangeSort) else 0
        fields[v.name] = BitField(v.sort, word, start, bits, low)  # type: ignore[arg-type]
    return Layout(fields, len(free), total)


def packed(layout: Layout, states: Iterable[State]) -> list[int]:
    """The words of all states, concatenated."""
    return layout.packer(states)
