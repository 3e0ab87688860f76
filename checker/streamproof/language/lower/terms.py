"""Values during lowering: host objects, expressions, places in the state, and local containers.

A *host* value is any ordinary Python object that is constant during lowering (a number, a name, a graph). Everything
state-dependent is an `Expr`, a `Ref` (a place in the state, read when needed), a `Cases` (a conditional between host
values without a sort yet), a `HeapCell` (a local list or dict), a `Several` (elements with presence conditions), or a
tuple of these. `ScopeNames` are the names after ``s.`` in a composite: variables, and parts with names of their own.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard, TypeVar

from streamproof.base.errors import Loc, ModelError, suggest
from streamproof.base.records import dataclass
from streamproof.language.free.symbolic_parameters import OpenDeclaration, SymbolicInt, SymbolicRange, shown
from streamproof.language.lower.cases import Case
from streamproof.system import expr as e
from streamproof.system.expr import Expr, Node
from streamproof.system.formula import FORMULAS
from streamproof.system.sorts import SCALARS, BoolSort, RangeSort, Sort

T = TypeVar("T")

QUEUE = "a Queue has push, pop, insert, remove, extend, clear, count, index, head, full, len, in, + and []"


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
        known = f"{self.path or 'the state'} has {', '.join(self.entries) or 'nothing that is not hidden'}"
        raise ModelError(f"no state variable {shown!r}", loc=loc, remedy=suggest(name, self.entries, known))

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
        """The members as passed to a rule."""
        return by_key(self.keys, tuple(map(look, self.members)))


def by_key(keys: tuple[Any, ...], members: tuple[T, ...]) -> tuple[T, ...] | dict[Any, T]:
    """The members of a family: a tuple if the keys are 0, 1, 2..., else a dict."""
    return members if keys == tuple(range(len(keys))) else dict(zip(keys, members, strict=True))


Entry: TypeAlias = VariableName | ScopeNames | PartFamily


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a place of the state: a variable and a path into it.

    Steps of the path are ("index", Expr) or ("field", name). `since`: the generation of the state
    (`Context.generation`) at its evaluation; an assignment that replaces a container outdates earlier references into
    it.
    """

    root: str
    path: tuple[tuple[str, Any], ...]
    sort: Sort
    since: int

    def __str__(self) -> str:
        steps = (f".{key}" if kind == "field" else f"[{known(key)[1]}]" for kind, key in self.path)
        return f"s.{self.root}" + "".join("[...]" if step == "[None]" else step for step in steps)


@dataclass(frozen=True, slots=True)
class StateRef:
    """The state object `s` of an action or property; `after` marks the state following a step.

    `names`: its attributes in a composition; None: the variables by their own names.
    """

    after: bool = False
    names: ScopeNames | None = None


@dataclass(frozen=True, slots=True)
class Cases:
    """A conditional value; it gets a sort when combined with a value that has one."""

    cond: Expr
    then: Any
    other: Any


@dataclass(frozen=True, slots=True)
class NewCase:
    """A value of a union made in a rule, with fields that depend on the state; it gets its sort where it is used."""

    kind: type[Case]
    values: tuple[Any, ...]

    def field(self, name: str) -> Any:
        """The value of a field, which exists."""
        return self.values[self.kind.__match_args__.index(name)]


@dataclass(frozen=True, slots=True)
class HeapCell:
    """A local list or dict, by its number in the heap, so that aliases share changes, as in Python."""

    number: int


@dataclass(frozen=True, slots=True)
class Backward:
    """A place in the state, iterated in reverse."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Several:
    """Elements with presence conditions: a local set, or an iterator (`once`).

    A generator expression is `lazy`: Python evaluates it on consumption. `sources` are the containers, local and of the
    state, that Python would read then; `seen` are the contents of variables and local containers at the evaluation
    here; `acts`: the evaluation had side effects.
    """

    items: tuple[tuple[Expr, Any], ...]
    once: bool
    lazy: bool = False
    sources: tuple[HeapCell | Ref | Backward, ...] = ()
    seen: tuple[tuple[str | int, Any], ...] = ()
    acts: bool = False


@dataclass(frozen=True, slots=True)
class PartialList:
    """The contents of a local list whose length depends on the state: its elements in order, each with the condition
    under which it is present."""

    items: tuple[tuple[Expr, Any], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A lambda or nested function with its defining frame and the values of its defaults."""

    node: ast.Lambda | ast.FunctionDef
    frame: Any
    defaults: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A bound method of a place in the state or a local container."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True)
class Undefined:
    """A local name without a usable value, and the reason."""

    why: str
    remedy: str


Term: TypeAlias = Any


def is_expr(value: Term) -> TypeGuard[Expr]:
    """Whether `value` is an expression."""
    return isinstance(value, Node)


_SYMBOLIC = (
    *(Node, Ref, StateRef, Cases, NewCase, HeapCell, Closure, Method, Several, Undefined, OpenDeclaration),
    *FORMULAS,
)
"""The symbolic types, as a tuple: a hot path."""
_NUMBERS = (BoolSort, RangeSort)
ORDINARY = frozenset({bool, int, str, types.NoneType, types.FunctionType})
"""The most frequent types that are not symbolic."""


def symbolic(value: Term) -> bool:
    """Whether `value` depends on the state or exists only during lowering (tuples are searched)."""
    kind: Any = type(value)
    if kind in ORDINARY:
        return False
    if kind is tuple:
        return any(map(symbolic, value))
    return _of_lowering(kind) or (isinstance(value, tuple) and any(map(symbolic, value)))


@lru_cache(maxsize=1024)
def _of_lowering(kind: type) -> bool:
    """Whether values of a type are symbolic; cached, because the comparison covers many types."""
    return issubclass(kind, _SYMBOLIC)


def simple(value: Term) -> Term:
    """A constant Boolean or integer expression as its Python value; anything else unchanged."""
    if type(value) is e.Const and isinstance(value.sort, _NUMBERS):
        return value.value
    return value


def known(value: Term) -> tuple[bool, Any]:
    """(True, host value) if `value` is constant during lowering, else (False, None)."""
    if type(value) is e.Const and (value.value is None or isinstance(value.sort, SCALARS)):
        return True, value.value
    if symbolic(value):
        return False, None
    return True, value


def describe(value: Term) -> str:
    """A description of `value` for messages."""
    match value:
        case Ref(sort=sort) | Node(sort=sort):
            return f"{article(sort)} {sort}"
        case HeapCell():
            return "a local list or dict"
        case NewCase(kind=kind):
            return f"a value of the case {kind.__name__}"
        case PartialList():
            return "a local list"
        case Several(once=True):
            return "a generator"
        case Several():
            return "a local set"
        case Cases():
            return f"{' or '.join(dict.fromkeys(map(describe, _sides(value))))}, depending on the state"
        case StateRef(names=ScopeNames(path=path)) if path:
            return f"the part {path}"
        case StateRef():
            return "the state"
        case Closure():
            return "a function"
        case OpenDeclaration():
            return "a sort that depends on a free parameter"
        case _ if isinstance(value, FORMULAS):
            return "a temporal formula"
        case Method(name=name):
            return f"the method {name}()"
        case tuple() if symbolic(value):
            return "a tuple"
        case None:
            return "None"
        case _:
            return _shown(value)


def _sides(value: Term) -> Iterator[Term]:
    """The values that a value may be."""
    if isinstance(value, Cases):
        yield from _sides(value.then)
        yield from _sides(value.other)
    else:
        yield value


def _shown(value: object) -> str:
    """A host value with its type; objects whose text is an address, by their type alone."""
    if type(value) is SymbolicInt or type(value) is SymbolicRange:
        return shown(value)
    if isinstance(value, frozenset):
        value = set(value)
    text, kind = repr(value), type(value).__name__
    if " at 0x" in text:
        return f"{'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({kind})"


def article(sort: Sort) -> str:
    """``a`` or ``an`` before the name of a sort."""
    return "an" if str(sort)[0] in "AEIO" else "a"


def is_formula(value: Term) -> bool:
    """Whether `value` is a temporal formula."""
    if isinstance(value, Cases):
        return is_formula(value.then) or is_formula(value.other)
    return isinstance(value, FORMULAS)


def arity(name: str, args: list[Term], least: int, most: int, loc: Loc, remedy: str) -> None:
    """Raises `ModelError` for a wrong number of arguments."""
    if not least <= len(args) <= most:
        wanted = "no argument" if most == 0 else f"{most} argument{'s' if most > 1 else ''}"
        raise ModelError(f"{name}() takes {wanted}, got {len(args)}", loc=loc, remedy=remedy)
