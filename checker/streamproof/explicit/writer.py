"""Scalar terms as Python source, and generated functions with their source in `linecache` for tracebacks and debuggers.

Shared subterms and deeply nested subterms become local variables. Terms of any depth stay within the parser's nesting limit
and the recursion limit: they are visited from their leaves up, and a text that nests too deeply is assigned to a local
variable first.
"""

from __future__ import annotations

import builtins
import linecache
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from keyword import iskeyword
from typing import Any

from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import System
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
            case e.Not(arg=e.Eq(left=x, right=y) as inner) if texts[inner][1] > 0:
                return f"({texts[x][0]} != {texts[y][0]})", texts[inner][1]
            case e.Not(arg=e.Less(left=x, right=y) as inner) if texts[inner][1] > 0:
                return f"({texts[x][0]} >= {texts[y][0]})", texts[inner][1]
            case e.Not(arg=e.LessEq(left=x, right=y) as inner) if texts[inner][1] > 0:
                return f"({texts[x][0]} > {texts[y][0]})", texts[inner][1]
            case e.And(args=args):
                text = " and ".join(texts[a][0] for a in args)
            case e.Or(args=args):
                text = " or ".join(texts[a][0] for a in args)
            case e.Ite(cond=c, then=x, other=y):
                text = f"{texts[x][0]} if {texts[c][0]} else {texts[y][0]}"
            case e.Not(arg=x):
                text = f"not {texts[x][0]}"
            case e.FloorDiv(left=x, right=y) | e.Mod(left=x, right=y):
                sign = "//" if isinstance(term, e.FloorDiv) else "%"
                text = f"{texts[x][0]} {sign} {texts[y][0]}"
                if _divisor(term) is not None:
                    text += f" if {texts[y][0]} else 0"
            case e.Eq(left=x, right=y) | e.Less(left=x, right=y) | e.LessEq(left=x, right=y):
                text = f"{texts[x][0]} {_SIGN[type(term)]} {texts[y][0]}"
            case e.Add(left=x, right=y) | e.Sub(left=x, right=y) | e.Mul(left=x, right=y):
                text = f"{texts[x][0]} {_SIGN[type(term)]} {texts[y][0]}"
            case _:
                raise AssertionError(f"{type(term).__name__} is not a scalar term of one state")
        return f"({text})", 1 + max((texts[c][1] for c in e.children(term)), default=0)


_SIGN = {e.Eq: "==", e.Less: "<", e.LessEq: "<=", e.Add: "+", e.Sub: "-", e.Mul: "*"}


def _divisor(term: Expr) -> Expr | None:
    """The divisor of a division that is tested for zero, and so written twice; else None."""
    if isinstance(term, e.FloorDiv | e.Mod):
        sort = term.right.sort
        if isinstance(sort, RangeSort) and sort.lo <= 0 <= sort.hi:
            return term.right
    return None
