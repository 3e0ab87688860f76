"""What lowering keeps while it walks an action: the state so far, local containers, guards, checks, the path taken."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamproof.language.terms import Cell, StateRef, Term, Undefined, as_constant, merge, symbolic
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct
from streamproof.system.sorts import BOOL, Sort

CALL_DEPTH = 60
UNROLL_LIMIT = 200_000


@dataclass(slots=True)
class Frame:
    """One function being lowered: its locals and how far it has returned or left a loop (conditions)."""

    function: Any
    file: str
    locals: dict[str, Term]
    globals: dict[str, Any]
    parent: Frame | None = None
    returned: Expr = b.FALSE
    result: Term = None
    broke: Expr = b.FALSE
    continued: Expr = b.FALSE
    depth: int = 0


@dataclass(slots=True)
class _Snapshot:
    state: dict[str, Expr]
    heap: dict[int, Any]
    locals: dict[str, Term]
    flags: tuple[Expr, Term, Expr, Expr]


@dataclass(slots=True)
class PendingCheck:
    """A check and how many guard conjuncts had been written when it was met."""

    check: Check
    after_guards: int


@dataclass(slots=True)
class World:
    """The mutable side of one lowering run."""

    sorts: dict[str, Sort]
    state: dict[str, Expr]
    script: tuple[int, ...] = ()
    heap: dict[int, Any] = field(default_factory=dict)
    path: Expr = b.TRUE
    guards: list[Conjunct] = field(default_factory=list)
    checks: list[PendingCheck] = field(default_factory=list)
    picks: list[tuple[str, Any]] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    written: dict[str, Loc] = field(default_factory=dict)
    unrolled: int = 0
    in_action: bool = True

    def allocate(self, content: Any) -> Cell:
        """A new local list or dict."""
        number = len(self.heap)
        self.heap[number] = content
        return Cell(number)

    def enabled_so_far(self) -> Expr:
        """Guards written so far and the conditions of the branches entered."""
        return b.and_([*(g.expr for g in self.guards), self.path])

    def check(self, condition: Expr, message: str, loc: Loc, *operands: tuple[str, Expr]) -> None:
        """Notes that `condition` here is a mistake; refused at once when it is certain and unconditional."""
        if condition is b.FALSE:
            return
        if condition is b.TRUE and self.path is b.TRUE and not self.guards:
            shown = "; ".join(f"{t} = {x.sort}" if not _is_const(x) else f"{t} = {_const(x)}" for t, x in operands)
            raise ModelError(message + (f" ({shown})" if shown else ""), loc=loc, remedy="this happens in every state")
        whole = b.and_([*(g.expr for g in self.guards), self.path, condition])
        if whole is not b.FALSE:
            self.checks.append(PendingCheck(Check(whole, message, loc, operands), len(self.guards)))

    def snapshot(self, frame: Frame) -> _Snapshot:
        """What a branch may change."""
        heap = {n: (list(c) if isinstance(c, list) else dict(c)) for n, c in self.heap.items()}
        flags = (frame.returned, frame.result, frame.broke, frame.continued)
        return _Snapshot(dict(self.state), heap, dict(frame.locals), flags)

    def restore(self, frame: Frame, snap: _Snapshot) -> None:
        """Puts a snapshot back."""
        self.state, self.heap, frame.locals = snap.state, snap.heap, snap.locals
        frame.returned, frame.result, frame.broke, frame.continued = snap.flags

    def branch(self, frame: Frame, cond: Expr, then: Callable[[], None], other: Callable[[], None], loc: Loc) -> None:
        """Runs both branches of a condition on copies and merges what they did."""
        outer = self.path
        yes, no = b.and_((outer, cond)), b.and_((outer, b.not_(cond)))
        if yes is b.FALSE:
            return other()
        if no is b.FALSE:
            return then()
        before = self.snapshot(frame)
        again = self.snapshot(frame)
        self.restore(frame, before)
        self.path = yes
        then()
        taken = self.snapshot(frame)
        self.restore(frame, again)
        self.path = no
        other()
        skipped = self.snapshot(frame)
        self.path = outer
        self.restore(frame, self._merged(cond, taken, skipped, loc))
        return None

    def _merged(self, cond: Expr, a: _Snapshot, c: _Snapshot, loc: Loc) -> _Snapshot:
        state = {
            n: (a.state[n] if a.state[n] is c.state[n] else b.ite(cond, a.state[n], c.state[n], loc)) for n in a.state
        }
        names = dict.fromkeys([*a.locals, *c.locals])
        merged = {n: merge(cond, a.locals.get(n, Undefined(n)), c.locals.get(n, Undefined(n)), loc) for n in names}
        heap = {n: self._merge_cell(cond, a.heap.get(n), c.heap.get(n), loc) for n in dict.fromkeys([*a.heap, *c.heap])}
        (ra, va, ba, ca), (rb, vb, bb, cb) = a.flags, c.flags
        if ra is b.FALSE:
            result = vb
        elif rb is b.FALSE:
            result = va
        else:
            result = merge(cond, va, vb, loc)
        flags = (b.ite(cond, ra, rb), result, b.ite(cond, ba, bb), b.ite(cond, ca, cb))
        return _Snapshot(state, heap, merged, flags)

    @staticmethod
    def _merge_cell(cond: Expr, a: Any, c: Any, loc: Loc) -> Any:
        if a is None or c is None:
            return c if a is None else a
        if isinstance(a, list) and isinstance(c, list):
            if len(a) != len(c):
                raise ModelError(
                    "the length of a local list depends on the state",
                    loc=loc,
                    remedy="keep it the same on both branches: a fixed list of truth values, or a Queue or Set of the state",
                )
            return [merge(cond, x, y, loc) for x, y in zip(a, c, strict=True)]
        if a.keys() != c.keys():
            raise ModelError(
                "the keys of a local dict depend on the state",
                loc=loc,
                remedy="create every key first, then change its value under the condition",
            )
        return {k: merge(cond, a[k], c[k], loc) for k in a}


def _is_const(term: Expr) -> bool:
    return as_constant(term)[0]


def _const(term: Expr) -> Any:
    return as_constant(term)[1]


def where(frame: Frame, node: ast.AST) -> Loc:
    """The place of `node` in the user's file."""
    name = getattr(frame.function, "__name__", "")
    return Loc(frame.file, getattr(node, "lineno", 0), name)


def boolean(value: Term, frame: Frame, node: ast.AST) -> Expr:
    """A condition; Python's truthiness of numbers and containers is refused, so that no test is silently constant."""
    known, host = as_constant(value)
    if known:
        return b.truth(bool(host))
    sort = getattr(value, "sort", None)
    if sort == BOOL and not isinstance(value, StateRef) and symbolic(value):
        return value  # type: ignore[no-any-return]
    raise ModelError(
        f"a condition must be a Bool, got {sort or 'no truth value'}",
        loc=where(frame, node),
        remedy="compare explicitly: x != 0, len(q) > 0, o is not None",
    )
