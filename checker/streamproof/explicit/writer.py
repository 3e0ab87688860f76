"""Scalar terms as Python source, and the functions generated from them, which evaluate conditions in every state of a list.

The source is in `linecache` for tracebacks and debuggers.

Shared subterms and deeply nested subterms become local variables. Terms of any depth stay within the parser's nesting limit
and the recursion limit: they are visited from their leaves up, and a text that nests too deeply is assigned to a local
variable first.
"""

from __future__ import annotations

import builtins
import linecache
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from keyword import iskeyword
from typing import Any, TypeAlias, cast

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.sorts import RangeSort

_serial = count(1)


def load(name: str, subject: str, source: str, **given: Any) -> Callable[..., Any]:
    """The function `name` defined by `source`; tracebacks show `subject`, the name of the system.

    `given` has the values of the free names of the source.
    """
    filename = f"<{name} of {subject}, generated {next(_serial)}>"
    namespace: dict[str, Any] = dict(given)
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


DEEPEST = 24
"""Largest nesting of one Python expression; deeper terms use local variables."""


def local_names(system: System) -> dict[str, str]:
    """A distinct Python identifier for each variable of a scalar system, as close to its name as can be."""
    return dict(_identifiers(tuple(variable.name for variable in system.variables)))


@lru_cache(maxsize=8)
def _identifiers(variables: tuple[str, ...]) -> dict[str, str]:
    """The identifiers by the variables' names; cached, as each system is written several times."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for at, variable in enumerate(variables):
        name = re.sub(r"\W+", "_", variable).strip("_") or "v"
        if iskeyword(name) or hasattr(builtins, name) or name in taken or not name[0].isalpha() or not name.isascii():
            name = f"v{at}_{name if name.isascii() else ''}"
        taken.add(name)
        names[variable] = name
    return names


def shared(roots: Iterable[Expr]) -> set[Expr]:
    """The composite terms that occur more than once below (or among) `roots`."""
    met: set[Expr] = set()
    again: set[Expr] = set()
    stack: list[Expr] = [root for root in roots if not isinstance(root, e.Const | e.Var)]
    while stack:
        term = stack.pop()
        if term in met:
            again.add(term)
        else:
            met.add(term)
            stack += e.children(term)
    return {term for term in again if not _plain(term)}


def _plain(term: Expr) -> bool:
    """Whether the term is as cheap as a local variable."""
    return isinstance(term, e.Const | e.Var) or (isinstance(term, e.Not) and isinstance(term.arg, e.Var))


class Writer:
    """Collects the lines of one function body, and the local variables of terms in the open blocks."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._names = names
        self._indent = 0
        self._temporaries = 0
        self._held: dict[Expr, str] = {}
        """The local variables by their terms."""
        self._order: list[Expr] = []
        """The terms with local variables, those of inner blocks last."""

    @property
    def source(self) -> str:
        """Everything written so far."""
        return "\n".join(self.lines) + "\n"

    @property
    def nesting(self) -> int:
        """Number of open blocks."""
        return self._indent

    def line(self, text: str) -> None:
        """One line in the innermost open block."""
        self.lines.append(" " * self._indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block under `header`; its local variables are not used after it."""
        self.line(header)
        self._indent += 1
        known = len(self._order)
        yield
        for term in self._order[known:]:
            del self._held[term]
        del self._order[known:]
        self._indent -= 1

    def needs_lines(self, term: Expr, common: Collection[Expr]) -> bool:
        """Whether writing `term` here would add lines, so that it cannot be part of a condition."""
        height: dict[Expr, int] = {}
        for part in self._unknown(term):
            if part in self._held or isinstance(part, e.Const | e.Var):
                height[part] = 0
                continue
            height[part] = 1 + max(height[c] for c in e.children(part))
            divisor = _divisor(part)
            if part in common or height[part] > DEEPEST or (divisor is not None and height[divisor] > 0):
                return True
        return False

    def term(self, term: Expr, common: Collection[Expr]) -> str:
        """The text of `term`; terms in `common` and parts that nest too deeply are assigned to local variables first."""
        texts: dict[Expr, tuple[str, int]] = {}
        if isinstance(term, e.Const | e.Var):  # as most unchanged variables
            return self._format(term, texts)[0]
        for part in self._unknown(term):
            divisor = _divisor(part)
            if divisor is not None and part not in self._held and texts[divisor][1] > 0:
                texts[divisor] = (self._keep(divisor, texts[divisor][0]), 0)
            text, height = self._format(part, texts)
            if height > 0 and (part in common or height > DEEPEST):
                text, height = self._keep(part, text), 0
            texts[part] = (text, height)
        return texts[term][0]

    def _unknown(self, term: Expr) -> Iterator[Expr]:
        """The parts of `term` without a local variable, from the leaves up."""
        seen: set[Expr] = set()
        stack = [(term, False)]
        while stack:
            part, ready = stack.pop()
            if ready:
                yield part
            elif part not in seen:
                seen.add(part)
                stack.append((part, True))
                if part not in self._held:
                    stack.extend((c, False) for c in reversed(e.children(part)))

    def _keep(self, term: Expr, text: str) -> str:
        name = f"_{self._temporaries}"
        self._temporaries += 1
        self.line(f"{name} = {text}")
        self._held[term] = name
        self._order.append(term)
        return name

    def _format(self, term: Expr, texts: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
        local = self._held.get(term)
        if local is not None:
            return local, 0
        match term:
            case e.Const(value=value):
                return (f"({value!r})" if isinstance(value, int) and value < 0 else repr(value)), 0
            case e.Var(name=name):
                return self._names[name], 0
            case e.Not(arg=(e.Eq() | e.Less() | e.LessEq()) as inner) if texts[inner][1] > 0:
                return f"({texts[inner.left][0]} {_DENIED[type(inner)]} {texts[inner.right][0]})", texts[inner][1]
            case e.And(args=args):
                text = " and ".join(texts[a][0] for a in args)
            case e.Or(args=args):
                text = " or ".join(texts[a][0] for a in args)
            case e.Ite(cond=c, then=x, other=y):
                text = f"{texts[x][0]} if {texts[c][0]} else {texts[y][0]}"
            case e.Not(arg=x):
                text = f"not {texts[x][0]}"
            case e.FloorDiv(left=x, right=y) | e.Mod(left=x, right=y):
                text = f"{texts[x][0]} {_SIGN[type(term)]} {texts[y][0]}"
                if _divisor(term) is not None:
                    text += f" if {texts[y][0]} else 0"
            case e.Eq() | e.Less() | e.LessEq() | e.Add() | e.Sub() | e.Mul():
                text = f"{texts[term.left][0]} {_SIGN[type(term)]} {texts[term.right][0]}"
            case _:
                raise AssertionError(f"{type(term).__name__} is not a scalar term of one state")
        return f"({text})", 1 + max((texts[c][1] for c in e.children(term)), default=0)


_SIGN = {e.Eq: "==", e.Less: "<", e.LessEq: "<=", e.Add: "+", e.Sub: "-", e.Mul: "*", e.FloorDiv: "//", e.Mod: "%"}
_DENIED = {e.Eq: "!=", e.Less: ">=", e.LessEq: ">"}
"""The signs of negated comparisons."""


def _divisor(term: Expr) -> Expr | None:
    """The divisor of a division that is tested for zero, and so written twice; else None."""
    if isinstance(term, e.FloorDiv | e.Mod):
        sort = term.right.sort
        if isinstance(sort, RangeSort) and sort.lo <= 0 <= sort.hi:
            return term.right
    return None


FEW = 3
"""Variables are read one by one, not by unpacking the state, if at most one variable in `FEW` is read."""
LARGEST_BATCH = 4096
"""Largest number of states per call of generated code."""

Hit: TypeAlias = tuple[int, int, bool]
"""Number of a watch, number of the state, and whether the evaluation error was found rather than the condition."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A search for a state where `condition` is true; where `mistake` is true, `condition` has no value."""

    number: int
    condition: Expr
    mistake: Expr


Inspect: TypeAlias = Callable[[Sequence[State], int, list[Hit]], None]
"""Called with states, the number of the first of them, and the list that receives the hits in order."""

Keep: TypeAlias = Callable[[Sequence[State]], list[State]]
"""Called with states; returns those that satisfy a condition, in order."""

Count: TypeAlias = Callable[[Sequence[State]], tuple[int, ...]]
"""Called with states; returns for each condition the number of states that satisfy it."""


def batches(states: Iterable[State]) -> Iterator[list[State]]:
    """The states in lists of `LARGEST_BATCH`."""
    remaining = iter(states)
    while batch := list(islice(remaining, LARGEST_BATCH)):
        yield batch


def unpacking(system: System) -> str:
    """The target that unpacks a state of a scalar system into local variables."""
    names = local_names(system).values()
    return f"({', '.join(names)},)" if names else "()"


def reading(system: System, terms: Iterable[Expr]) -> str:
    """A line that loads the variables that `terms` read from `_state`; all variables if many are read."""
    names = local_names(system)
    read = {term.name for term in e.subterms(*terms) if isinstance(term, e.Var)}
    if not read:
        return "pass"
    if FEW * len(read) > len(names):
        return f"{unpacking(system)} = _state"
    return "; ".join(f"{name} = _state[{at}]" for at, (of, name) in enumerate(names.items()) if of in read)


def inspector(system: System, watches: Sequence[Watch]) -> Inspect:
    """A function that reports every state in which the condition or the mistake of one of `watches` is true."""
    writer = Writer(local_names(system))
    terms = [term for w in watches for term in (w.mistake, w.condition)]
    common = shared(terms)
    with (
        writer.block("def inspect(_states, _number, _hits):"),
        writer.block("for _number, _state in enumerate(_states, _number):"),
    ):
        writer.line(reading(system, terms))
        for watch in watches:
            mistake = writer.term(watch.mistake, common)
            condition = writer.term(watch.condition, common)
            if mistake == "False":
                with writer.block(f"if {condition}:"):
                    writer.line(f"_hits.append(({watch.number}, _number, False))")
            else:
                with writer.block(f"if {mistake} or {condition}:"):
                    writer.line(f"_hits.append(({watch.number}, _number, {mistake}))")
    return cast(Inspect, load("inspect", system.name, writer.source))


def keeper(system: System, condition: Expr) -> Keep:
    """A function that keeps the states in which `condition` is true."""
    writer = Writer(local_names(system))
    with writer.block("def keep(_states):"):
        writer.line("_kept = []")
        with writer.block("for _state in _states:"):
            writer.line(reading(system, [condition]))
            with writer.block(f"if {writer.term(condition, shared([condition]))}:"):
                writer.line("_kept.append(_state)")
        writer.line("return _kept")
    return cast(Keep, load("keep", system.name, writer.source))


def counter(system: System, conditions: Sequence[Expr]) -> Count:
    """A function that counts for each condition the states in which it is true."""
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def count(_states):"):
        for number in range(len(conditions)):
            writer.line(f"_n{number} = 0")
        with writer.block("for _state in _states:"):
            writer.line(reading(system, conditions))
            for number, condition in enumerate(conditions):
                with writer.block(f"if {writer.term(condition, common)}:"):
                    writer.line(f"_n{number} += 1")
        writer.line(f"return ({''.join(f'_n{number}, ' for number in range(len(conditions)))})")
    return cast(Count, load("count", system.name, writer.source))


def evaluator(system: System, conditions: Sequence[Expr]) -> Callable[[Sequence[State]], bytearray]:
    """A function that returns one byte (0 or 1) per state and condition, state by state."""
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def judge(_states):"):
        writer.line("_found = bytearray(); _add = _found.append")
        with writer.block("for _state in _states:"):
            writer.line(reading(system, conditions))
            for condition in conditions:
                writer.line(f"_add(1 if {writer.term(condition, common)} else 0)")
        writer.line("return _found")
    return cast(Callable[[Sequence[State]], bytearray], load("judge", system.name, writer.source))


def largest(system: System, term: Expr, states: Iterable[State]) -> int:
    """The largest value of an integer term in the states; requires at least one state."""
    writer = Writer(local_names(system))
    with writer.block("def values(_states):"), writer.block("for _state in _states:"):
        writer.line(reading(system, [term]))
        writer.line(f"yield {writer.term(term, shared([term]))}")
    values = cast(Callable[[Iterable[State]], Iterator[int]], load("values", system.name, writer.source))
    return max(values(states))


def ever_true(system: System, conditions: Sequence[Expr], states: Iterable[State]) -> list[bool]:
    """For each condition, whether it is true in at least one of the states. Stops when all have been true."""
    found = [condition is b.TRUE for condition in conditions]
    remaining, size = iter(states), 64
    while True:
        watches = [
            Watch(k, condition, b.FALSE)
            for k, condition in enumerate(conditions)
            if not found[k] and condition is not b.FALSE
        ]
        if not watches:
            return found
        inspect = inspector(system, watches)
        hits: list[Hit] = []
        while not hits:
            batch = list(islice(remaining, size))
            if not batch:
                return found
            inspect(batch, 0, hits)
            size = min(2 * size, LARGEST_BATCH)
        for number, _, _ in hits:
            found[number] = True
