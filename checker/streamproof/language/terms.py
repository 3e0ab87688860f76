"""Values met while lowering: host objects, expressions, places in the state, and local containers.

A *host* value is any ordinary Python object known while lowering (a number, a name, a graph). Everything that depends on
the state is an `Expr`, a `Ref` (a place in the state, read when needed), a `Cases` (a choice between host values that have
no sort yet), a `HeapCell` (a local list or dict), a `Several` (elements that are there under conditions), or a tuple of
these.
"""

from __future__ import annotations

import ast
import types
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard

from streamproof.language.scopes import ScopeNames
from streamproof.language.symbolic_parameters import SymbolicInt, SymbolicRange, shown
from streamproof.system import expr as e
from streamproof.system.expr import Expr, Node
from streamproof.system.formula import FORMULAS
from streamproof.system.records import dataclass
from streamproof.system.sorts import SCALARS, BoolSort, RangeSort, Sort


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to what lies at a place of the state: a variable and the way into it.

    Steps of the path are ("index", Expr) or ("field", name). `since`: the generation of the state (`World.generation`)
    in which it was evaluated; an assignment that replaces a container outdates the references to what lay there.
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
    """The state object `s` of an action or property; `after` is the state following a step.

    `names`: what it has behind the dot, in a composition; None: the variables by their own names."""

    after: bool = False
    names: ScopeNames | None = None


@dataclass(frozen=True, slots=True)
class Cases:
    """One of two values, by a condition; gets a sort when it meets one."""

    cond: Expr
    then: Any
    other: Any


@dataclass(frozen=True, slots=True)
class HeapCell:
    """A local list or dict, by its number in the heap, so that aliases see each other's changes as in Python."""

    number: int


@dataclass(frozen=True, slots=True)
class Backward:
    """A place in the state that is read from its end on."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Several:
    """Elements that are there under conditions: a local set, or what its first use uses up (`once`).

    A generator expression is `lazy`: Python evaluates it while it is consumed. `sources` are the containers, local ones
    and those of the state, that Python would still look at then; `seen` is what variables and local containers held when the
    elements were evaluated here, of all that may be looked at; `acts`: evaluating them changed something.
    """

    items: tuple[tuple[Expr, Any], ...]
    once: bool
    lazy: bool = False
    sources: tuple[HeapCell | Ref | Backward, ...] = ()
    seen: tuple[tuple[str | int, Any], ...] = ()
    acts: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A lambda or nested function with the frame it was made in and the values of its defaults."""

    node: ast.Lambda | ast.FunctionDef
    frame: Any
    defaults: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a place in the state or of a local container, before it is called."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True)
class Undefined:
    """A local name that cannot be used here, and why."""

    why: str
    remedy: str


Term: TypeAlias = Any


def is_expr(value: Term) -> TypeGuard[Expr]:
    """Whether `value` is an expression."""
    return isinstance(value, Node)


_SYMBOLIC = (Node, Ref, StateRef, Cases, HeapCell, Closure, Method, Several, Undefined, *FORMULAS)
"""What `symbolic` is about, as a tuple: that is asked very often."""
_NUMBERS = (BoolSort, RangeSort)
ORDINARY = frozenset({bool, int, str, types.NoneType, types.FunctionType})
"""What most values are that it is not about."""


def symbolic(value: Term) -> bool:
    """Whether `value` depends on the state or lives only while lowering (looked for inside tuples too)."""
    kind: Any = type(value)
    if kind in ORDINARY:
        return False
    if kind is tuple:
        return any(map(symbolic, value))
    return _of_lowering(kind) or (isinstance(value, tuple) and any(map(symbolic, value)))


@lru_cache(maxsize=1024)
def _of_lowering(kind: type) -> bool:
    """Whether values of a type are symbolic; remembered, because there are many types to compare with."""
    return issubclass(kind, _SYMBOLIC)


def simple(value: Term) -> Term:
    """A constant Bool or integer expression as the Python value it is; anything else unchanged."""
    if type(value) is e.Const and isinstance(value.sort, _NUMBERS):
        return value.value
    return value


def known(value: Term) -> tuple[bool, Any]:
    """(True, host value) when `value` is known while lowering, else (False, None)."""
    if type(value) is e.Const and (value.value is None or isinstance(value.sort, SCALARS)):
        return True, value.value
    if symbolic(value):
        return False, None
    return True, value


def describe(value: Term) -> str:
    """What to call `value` in a message."""
    match value:
        case Ref(sort=sort) | Node(sort=sort):
            return f"{article(sort)} {sort}"
        case HeapCell():
            return "a local list or dict"
        case Several(once=True):
            return "a generator"
        case Several():
            return "a local set"
        case Cases(then=then, other=other):
            return f"{describe(then)} or {describe(other)}, depending on the state"
        case StateRef(names=ScopeNames(path=path)) if path:
            return f"the part {path}"
        case StateRef():
            return "the state"
        case Closure():
            return "a function"
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


def _shown(value: object) -> str:
    """A host value with its type; objects that show as an address by their type alone."""
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
