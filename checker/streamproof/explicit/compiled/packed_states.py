"""Packed states: scalar variables as bit fields in 64-bit words, and scalar terms over them as LLVM instructions.

The instructions are in SSA form; common subterms are computed once per branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import cast

from streamproof.base.errors import TooLarge
from streamproof.base.options import given_of
from streamproof.base.records import dataclass
from streamproof.explicit.writer import load
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
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
        return self.sort.members.index(value) if isinstance(self.sort, EnumSort) else int(value) - self.low

    def value(self, code: int) -> Value:
        """The value of a code."""
        if isinstance(self.sort, EnumSort):
            return self.sort.members[code]
        return bool(code) if isinstance(self.sort, BoolSort) else code + self.low


@dataclass(frozen=True)
class Layout:
    """The packed form of a scalar system's states."""

    fields: Mapping[str, BitField]
    """By variable, in the order of the state."""
    words: int
    """Number of words per state, at least 1."""
    bits: int
    """Number of bits used by fields."""

    @cached_property
    def packer(self) -> Callable[[Iterable[State]], list[int]]:
        """A generated function that packs states into one list of words."""
        names = [f"v{at}" for at in range(len(self.fields))]
        terms = [[str(0 if at else MARK)] for at in range(self.words)]
        codes: list[str] = []
        for name, field in zip(names, self.fields.values(), strict=True):
            code = f"({name} - {field.low})"
            if isinstance(field.sort, EnumSort):
                codes.append(f" {name}_of = { ({m: k for k, m in enumerate(field.sort.members)})!r}")
                code = f"{name}_of[{name}]"
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


def layout(system: System, word_bits: int = WORD) -> Layout:
    """The packed layout of a scalar system: one bit field of minimal size per variable.

    Variables keep their order; each is placed in the first word with room for it, so that variables that change together are
    adjacent. A state of at most 63 bits takes one word.
    """
    sizes = {v.name: max(cardinality(v.sort) - 1, 0).bit_length() for v in system.variables}
    total = sum(sizes.values())
    free = [word_bits - 1]
    fields: dict[str, BitField] = {}
    for v in system.variables:
        bits = sizes[v.name]
        word = next((at for at, room in enumerate(free) if room >= bits), len(free))
        if word == len(free):
            free.append(word_bits)
        start = (word_bits if word else word_bits - 1) - free[word]
        free[word] -= bits
        low = v.sort.lo if isinstance(v.sort, RangeSort) else 0
        fields[v.name] = BitField(v.sort, word, start, bits, low)  # type: ignore[arg-type]
    return Layout(fields, len(free), total)


LARGEST = 1 << 62
"""Bound on the integers of terms: no operation overflows a machine word."""


class Emitter:
    """Collects the instructions of one function. Terms read the variables of one state; `words` sets the words of the
    state."""

    def __init__(self, layout: Layout) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self._layout = layout
        self.current: Sequence[str] = ()
        """Names of the words of the state."""
        self._count = 0
        self._scopes: list[dict[Expr, str]] = [{}]

    def line(self, text: str) -> None:
        """One instruction."""
        self.lines.append(f" {text}")

    def new(self, operation: str) -> str:
        """Emit an instruction with a result; returns the name of the result."""
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f" {name} = {operation}")
        return name

    def label(self, what: str) -> str:
        """A fresh label."""
        self._count += 1
        return f"{what}{self._count}"

    def begin(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def words(self, names: Sequence[str]) -> None:
        """Read variables from these words from here on; computed terms are not reused."""
        self.current = names
        self._scopes = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Inside, a branch: its computed terms are not reused after it, as the branch may not be taken."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def cost(self, *terms: Expr) -> int:
        """Number of terms that would have to be computed here."""
        seen: set[Expr] = set()
        stack = list(terms)
        while stack:
            term = stack.pop()
            if term in seen or isinstance(term, e.Const) or self._known(term) is not None:
                continue
            seen.add(term)
            stack.extend(e.children(term))
        return len(seen)

    def term(self, term: Expr) -> str:
        """The value of `term`: an ``i1`` for truth values, else an ``i64``; enumerations by position."""
        stack: list[tuple[Expr, bool]] = [(term, False)]
        while stack:
            part, ready = stack.pop()
            if self._known(part) is not None:
                continue
            if ready or isinstance(part, e.Const | e.Var):
                self._scopes[-1][part] = self._emit(part)
            else:
                stack.append((part, True))
                stack.extend((c, False) for c in reversed(tuple(e.children(part))) if self._needed(part, c))
        known = self._known(term)
        assert known is not None
        return known

    def code(self, term: Expr, low: int) -> str:
        """The field code of `term`: its difference to `low`, as an ``i64``."""
        value = self.term(term)
        if isinstance(term.sort, BoolSort):
            return str(int(value == "true")) if value in ("true", "false") else self.new(f"zext i1 {value} to i64")
        if not low:
            return value
        return str(int(value) - low) if value.lstrip("-").isdigit() else self.new(f"sub i64 {value}, {low}")

    def _known(self, term: Expr) -> str | None:
        for scope in reversed(self._scopes):
            if term in scope:
                return scope[term]
        return None

    def _needed(self, term: Expr, child: Expr) -> bool:
        """Whether a child is computed first; comparisons of a variable with a constant use its raw bits instead."""
        return not (isinstance(child, e.Var) and self._raw(term))

    def _raw(self, term: Expr) -> bool:
        match term:
            case e.Eq(left=e.Var(), right=e.Const()) | e.LessEq(left=e.Var(), right=e.Const()):
                return True
            case _:
                return False

    def _field(self, name: str) -> str:
        """The bits of a variable's field."""
        field = self._layout.fields[name]
        if not field.bits:
            return "0"
        word = self.current[field.word]
        down = self.new(f"lshr i64 {word}, {field.shift}") if field.shift else word
        return self.new(f"and i64 {down}, {(1 << field.bits) - 1}")

    def _emit(self, term: Expr) -> str:
        self._expect_small(term)
        match term:
            case e.Const(value=value, sort=sort):
                match sort:
                    case BoolSort():
                        return "true" if value else "false"
                    case EnumSort(members):
                        return str(members.index(value))
                    case _:
                        return str(value)
            case e.Var(name=name, sort=sort):
                return self._variable(name)
            case e.Not(arg=x):
                return self.new(f"xor i1 {self._at(x)}, true")
            case e.And(args=args) | e.Or(args=args):
                sign = "and" if isinstance(term, e.And) else "or"
                result = self._at(args[0])
                for arg in args[1:]:
                    result = self.new(f"{sign} i1 {result}, {self._at(arg)}")
                return result
            case e.Ite(cond=c, then=x, other=y):
                kind = self._type(x)
                return self.new(f"select i1 {self._at(c)}, {kind} {self._at(x)}, {kind} {self._at(y)}")
            case (
                e.Eq(left=e.Var(name=name), right=e.Const(value=value))
                | e.LessEq(left=e.Var(name=name), right=e.Const(value=value))
            ):
                return self._against(name, value, "eq" if isinstance(term, e.Eq) else "ule")
            case e.Eq(left=x, right=y):
                return self.new(f"icmp eq {self._type(x)} {self._at(x)}, {self._at(y)}")
            case e.Less(left=x, right=y) | e.LessEq(left=x, right=y):
                sign = "slt" if isinstance(term, e.Less) else "sle"
                return self.new(f"icmp {sign} i64 {self._at(x)}, {self._at(y)}")
            case e.Add(left=x, right=y) | e.Sub(left=x, right=y) | e.Mul(left=x, right=y):
                sign = {e.Add: "add", e.Sub: "sub", e.Mul: "mul"}[type(term)]
                return self.new(f"{sign} nsw i64 {self._at(x)}, {self._at(y)}")
            case e.FloorDiv(left=x, right=y) | e.Mod(left=x, right=y):
                return self._divide(term, x, y)
            case _:
                raise AssertionError(f"{type(term).__name__} is not a scalar term of one state")

    def _variable(self, name: str) -> str:
        field = self._layout.fields[name]
        bits = self._field(name)
        if isinstance(field.sort, BoolSort):
            return "false" if bits == "0" else self.new(f"trunc i64 {bits} to i1")
        if not field.low:
            return bits
        return str(field.low) if bits == "0" else self.new(f"add nsw i64 {bits}, {field.low}")

    def _against(self, name: str, value: object, sign: str) -> str:
        """A variable's field compared with a constant."""
        field = self._layout.fields[name]
        if isinstance(field.sort, RangeSort):
            assert isinstance(value, int)
            if value < field.sort.lo:
                return "false"
            if value > field.sort.hi:
                return "false" if sign == "eq" else "true"
        if not field.bits:
            return "true"
        return self.new(f"icmp {sign} i64 {self._field(name)}, {field.code(value)}")

    def _divide(self, term: Expr, x: Expr, y: Expr) -> str:
        """Division that rounds down; division by 0 gives 0 (as `expr` defines)."""
        assert isinstance(x.sort, RangeSort)
        assert isinstance(y.sort, RangeSort)
        a, divisor = self._at(x), self._at(y)
        zero = None
        if y.sort.lo <= 0 <= y.sort.hi:
            zero = self.new(f"icmp eq i64 {divisor}, 0")
            divisor = self.new(f"select i1 {zero}, i64 1, i64 {divisor}")
        if x.sort.lo >= 0 and y.sort.lo >= 0:
            result = self.new(f"{'udiv' if isinstance(term, e.FloorDiv) else 'urem'} i64 {a}, {divisor}")
        else:
            rest = self.new(f"srem i64 {a}, {divisor}")
            inexact = self.new(f"icmp ne i64 {rest}, 0")
            signs = self.new(f"icmp slt i64 {self.new(f'xor i64 {rest}, {divisor}')}, 0")
            below = self.new(f"and i1 {inexact}, {signs}")
            if isinstance(term, e.FloorDiv):
                quotient = self.new(f"sdiv i64 {a}, {divisor}")
                result = self.new(f"sub i64 {quotient}, {self.new(f'zext i1 {below} to i64')}")
            else:
                result = self.new(f"add i64 {rest}, {self.new(f'select i1 {below}, i64 {divisor}, i64 0')}")
        return result if zero is None else self.new(f"select i1 {zero}, i64 0, i64 {result}")

    def _at(self, term: Expr) -> str:
        known = self._known(term)
        assert known is not None
        return known

    def _type(self, term: Expr) -> str:
        return "i1" if isinstance(term.sort, BoolSort) else "i64"

    def _expect_small(self, term: Expr) -> None:
        sort = term.sort
        if isinstance(sort, RangeSort) and not -LARGEST <= sort.lo <= sort.hi <= LARGEST:
            chosen = given_of("--tier", "--checkpoint", "--resume")
            raise TooLarge(
                f"a term reaches {max(-sort.lo, sort.hi)}, beyond the limit of 2^62 of machine words",
                loc=term.loc,
                remedy=f"leave out {chosen}: generated Python supports integers of any size",
            )
