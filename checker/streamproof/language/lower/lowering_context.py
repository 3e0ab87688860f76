"""The lowering context of an action: symbolic state, local containers, guards, checks and path condition.

State and heap are replaced, never mutated, so that a branch can restore the values before it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache, partial
from types import MethodType
from typing import Any, Protocol

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass, replace
from streamproof.language.lower.lift import merge, same
from streamproof.language.lower.terms import (
    Cases,
    HeapCell,
    PartialList,
    Ref,
    StateRef,
    Term,
    Undefined,
    describe,
    is_expr,
    known,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import FORMULAS
from streamproof.system.model import Check, Conjunct, Instance
from streamproof.system.sorts import BoolSort, RangeSort, Sort
from streamproof.transform.assume import GuardFacts
from streamproof.transform.unbounded import exists

UNROLL_LIMIT = 200_000

_NOWHERE = object()

Content = tuple[Term, ...] | PartialList | Mapping[Any, Term]
"""The contents of a local list (its elements) or dict."""


class Halt(Exception):
    """Ends the current path: the action is disabled on it, or it is a definite error (recorded as a check)."""


@dataclass(slots=True)
class Frame:
    """One function being lowered: its locals, and the conditions under which it has returned or left a loop."""

    function: Any
    file: str
    locals: dict[str, Term]
    globals: dict[str, Any]
    own: frozenset[str] = frozenset()
    """The local names of the function, whether assigned yet or not."""
    parent: Frame | None = None
    returned: Expr = b.FALSE
    result: Term = None
    broke: Expr = b.FALSE
    continued: Expr = b.FALSE
    depth: int = 0
    given: tuple[Term, ...] = ()
    """The arguments of the call, to which the caller has references."""
    lines: dict[int, Loc] = field(init=False)
    """Source positions in the function, by line."""

    def __post_init__(self) -> None:
        self.lines = lines_of(self.file, getattr(self.function, "__name__", ""))

    def scopes(self) -> Iterator[Frame]:
        """This frame and those around it."""
        scope: Frame | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(frozen=True, eq=False, slots=True)
class Replacement:
    """An assignment that replaced a container of the state."""

    place: Ref
    target: str
    """The source text of the place."""
    generation: int
    """The generation of the state after the assignment."""
    before: Expr
    """The value of the variable before the assignment."""
    path: Expr
    """The path condition of the assignment."""


_Stores = tuple[dict[str, Expr], dict[int, Content], tuple[Replacement, ...]]
"""The symbolic state, the local containers, and the replacements so far."""


@dataclass(slots=True)
class _Snapshot:
    stores: _Stores
    locals: dict[str, Term]
    flags: tuple[Expr, Term, Expr, Expr]


@dataclass(slots=True)
class PendingCheck:
    """A check, and the number of guard conjuncts that precede it."""

    check: Check
    after_guards: int


@dataclass(slots=True)
class Pick:
    """One choice: its name, the value chosen, the condition under which the action reaches it, and whether it is the
    first option."""

    name: str
    value: Any
    reached_when: Expr
    first: bool
    labelled: bool = False
    """Whether the value is the label of a branch."""
    sort: Sort | None = None
    """The sort of a value that is not a number, a truth value or a name."""
    received: Term = None
    """The value of the choice: for a label, the value behind it."""
    target: ast.Name | None = None
    """The variable that receives it, if it is assigned to one."""
    frame: Any = None
    """The `Frame` of the function that makes the choice."""
    loc: Loc | None = None

    @property
    def variable(self) -> str | None:
        """The name of the variable that receives the choice."""
        return None if self.target is None else self.target.id


@dataclass(frozen=True, slots=True)
class RuleInstances:
    """The instances of a rule, and all arguments in its domains: some have no instance, because no state enables it."""

    instances: Sequence[Instance]
    arguments: Sequence[tuple[Any, ...]]


@dataclass(slots=True)
class OutsideCalls:
    """Calls into ordinary Python during the lowering of a rule."""

    impure: bool = False
    """Whether a call may be nondeterministic (see `access.is_pure_call`)."""


@dataclass(slots=True)
class Context:
    """The mutable state of one lowering."""

    sorts: dict[str, Sort]
    state: dict[str, Expr]
    label: str
    """The rule or property being lowered, for messages: ``send(c=1)``."""
    script: tuple[int, ...] = ()
    heap: dict[int, Content] = field(default_factory=dict)
    path: Expr = b.TRUE
    guards: list[Conjunct] = field(default_factory=list)
    checks: list[PendingCheck] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    unrolled: int = 0
    in_action: bool = True
    temporal: bool = False
    """Whether a temporal property is being lowered."""
    free: frozenset[str] = frozenset()
    """The free parameters."""
    attributes: tuple[object, HeapCell] | None = None
    """While ``setup()`` is lowered: the model, and a local dict of the attributes that it has assigned."""
    outside: OutsideCalls = field(default_factory=OutsideCalls)
    replaced: tuple[Replacement, ...] = ()
    """The replaced containers of the state on all paths so far, in ascending order of generation."""
    stepwise: bool = False
    """Whether the formula that is read has conditions on steps."""
    rules: Callable[[MethodType, StateRef | None, Loc], RuleInstances] | None = None
    """The instances of a rule of the machine in its own state, for `enabled`; None: `enabled` is not allowed."""
    assigning: int | None = None
    """The generation before the assignment in progress, whose right-hand side refers to the containers of that generation."""
    calls: Any = None
    """The calls that the rules of the model have in common (`equal_calls.EqualCalls`); None: each is lowered."""
    _cells: int = 0
    _bound: int = 0
    indices: set[str] = field(default_factory=set)
    """Names of indices from ranges of free size, whose values are the same in every state."""
    _facts: GuardFacts = field(default_factory=GuardFacts)
    _checked: set[Expr] = field(default_factory=set)

    # --- containers of the state

    @property
    def generation(self) -> int:
        """A number that increases with each replacement of a container of the state."""
        return self.replaced[-1].generation if self.replaced else 0

    def replace(self, place: Ref, target: str, before: Expr) -> None:
        """Records that an assignment to `place`, written as `target`, replaced its container."""
        self.replaced = (*self.replaced, Replacement(place, target, self.generation + 1, before, self.path))

    @contextmanager
    def assignment(self) -> Iterator[None]:
        """The context of an assignment after evaluation of its right-hand side."""
        outer, self.assigning = self.assigning, self.generation
        try:
            yield
        finally:
            self.assigning = outer

    # --- local containers

    def allocate(self, content: Content) -> HeapCell:
        """A new local list or dict."""
        cell = HeapCell(self._cells)
        self._cells += 1
        self.put(cell, content)
        return cell

    def content(self, cell: HeapCell) -> Content:
        """The current contents of a local list or dict."""
        return self.heap[cell.number]

    def put(self, cell: HeapCell, content: Content) -> None:
        """Replaces the contents of a local list or dict."""
        self.heap = {**self.heap, cell.number: content}

    # --- unbounded indices

    def every(self, name: str, sort: RangeSort, run: Callable[[Expr], Expr]) -> tuple[Expr, Expr]:
        """A fresh variable over `sort` and the value of `run` for it; the checks in `run` are existentially quantified."""
        self._bound += 1
        bound = b.var(f"{name}'{self._bound}", sort)
        self.indices.add(f"{name}'{self._bound}")
        before, outside, heap = len(self.checks), (len(self.guards), len(self.picks), self.state), self.heap
        body = run(bound)
        kept = {number: self.heap[number] for number in heap}
        if (len(self.guards), len(self.picks), self.state) != outside or kept != heap:
            raise ModelError(
                "require, choose or assignment for each index of an unbounded range",
                remedy="state the condition with all(...) or any(...); an action changes arrays at its own parameters only",
            )
        for at in range(before, len(self.checks)):
            pending = self.checks[at]
            check = replace(pending.check, condition=exists(bound, pending.check.condition), operands=())
            self.checks[at] = PendingCheck(check, pending.after_guards)
        return bound, body

    # --- guards and checks

    def guard(self, condition: Expr, label: str, loc: Loc) -> None:
        """Adds a guard; `condition` already includes the path condition."""
        if condition is not b.TRUE:
            self.guards.append(Conjunct(condition, label, loc))

    def check(self, condition: Expr, message: str, loc: Loc, *operands: tuple[str, Expr]) -> None:
        """Records that `condition` is an error here. Raises `ModelError` if it holds in every state, `Halt` if on the
        whole path."""
        if condition is b.FALSE:
            return
        self._facts.learn(self.guards, self.path)
        if self._facts.refute(condition):
            return
        operands = tuple((text, term) for text, term in operands if text != describe_operand(term))
        certain = condition is b.TRUE
        if certain and self.path is b.TRUE and not self.guards:
            shown = "; ".join(f"{text} = {describe_operand(term)}" for text, term in operands)
            raise ModelError(
                f"{message} in every state of {self.label}" + (f" ({shown})" if shown else ""),
                loc=loc,
                remedy="guard it with require(...), or widen the sort if the value is meant to be possible",
            )
        whole = b.and_([*(g.expr for g in self.guards), self.path, condition])
        if whole is not b.FALSE and whole not in self._checked:
            self._checked.add(whole)
            self.checks.append(PendingCheck(Check(whole, message, loc, operands), len(self.guards)))
        if certain:
            raise Halt

    # --- branches

    def branch(self, frame: Frame, cond: Expr, then: Callable[[], None], other: Callable[[], None], loc: Loc) -> None:
        """Lowers both branches of a condition on copies and merges their effects; raises `Halt` if neither continues."""
        outer = self.path
        yes, no = b.and_((outer, cond)), b.and_((outer, b.not_(cond)))
        if yes is b.FALSE:
            other()
        elif no is b.FALSE:
            then()
        else:
            before = self._snapshot(frame)
            taken = self._arm(frame, yes, then)
            self.path = outer
            self._restore(frame, before)
            skipped = self._arm(frame, no, other)
            self.path = outer
            if taken is None and skipped is None:
                raise Halt
            if taken is None or skipped is None:
                self._restore(frame, taken or skipped or before)
            else:
                self._restore(frame, self._merged(cond, taken, skipped, loc))

    def _arm(self, frame: Frame, path: Expr, run: Callable[[], None]) -> _Snapshot | None:
        self.path = path
        try:
            run()
        except Halt:
            return None
        return self._snapshot(frame)

    @property
    def _stores(self) -> _Stores:
        return self.state, self.heap, self.replaced

    @_stores.setter
    def _stores(self, given: _Stores) -> None:
        self.state, self.heap, self.replaced = given

    def _snapshot(self, frame: Frame) -> _Snapshot:
        flags = (frame.returned, frame.result, frame.broke, frame.continued)
        return _Snapshot(self._stores, dict(frame.locals), flags)

    def _restore(self, frame: Frame, snap: _Snapshot) -> None:
        self._stores, frame.locals = snap.stores, dict(snap.locals)
        frame.returned, frame.result, frame.broke, frame.continued = snap.flags

    def _merged(self, cond: Expr, a: _Snapshot, c: _Snapshot, loc: Loc) -> _Snapshot:
        stores = self._merged_stores(cond, a.stores, c.stores, loc)
        unset = Undefined("is assigned on some paths only", "give it a value before the if or the loop")
        names = dict.fromkeys([*a.locals, *c.locals])
        merged = {n: merge(cond, a.locals.get(n, unset), c.locals.get(n, unset), loc) for n in names}
        (ra, va, ba, ca), (rb, vb, bb, cb) = a.flags, c.flags
        if ra is b.FALSE:
            result = vb
        elif rb is b.FALSE:
            result = va
        else:
            result = merge(cond, va, vb, loc)
        return _Snapshot(stores, merged, (b.ite(cond, ra, rb), result, b.ite(cond, ba, bb), b.ite(cond, ca, cb)))

    def _merged_stores(self, cond: Expr, a: _Stores, c: _Stores, loc: Loc) -> _Stores:
        state = a[0]
        if a[0] is not c[0]:
            state = {n: (t if t is c[0][n] else b.ite(cond, t, c[0][n], loc)) for n, t in a[0].items()}
        heap = a[1]
        if a[1] is not c[1]:
            heap = {**c[1], **a[1]}
            for number in a[1].keys() & c[1].keys():
                if a[1][number] is not c[1][number]:
                    heap[number] = _merge_contents(cond, a[1][number], c[1][number], loc)
        replaced = a[2]
        if a[2] is not c[2]:
            replaced = tuple(sorted(dict.fromkeys(a[2] + c[2]), key=lambda one: one.generation))
        return state, heap, replaced

    def guarded(self, cond: Expr, run: Callable[[], Term], loc: Loc) -> Term:
        """The value of an expression evaluated under the condition `cond`, which also guards its side effects.

        Raises `Halt` if the evaluation ends there or is unreachable.
        """
        outer, before = self.path, self._stores
        inner = outer if cond is b.TRUE else b.and_((outer, cond))
        if inner is b.FALSE:
            raise Halt
        if inner is outer:
            return run()
        self.path = inner
        try:
            value = run()
        except Halt:
            self._stores = before
            raise
        finally:
            self.path = outer
        if self.state is not before[0] or self.heap is not before[1]:
            self._stores = self._merged_stores(cond, self._stores, before, loc)
        return value

    def of_each(
        self, items: Iterable[tuple[Expr, Term]], run: Callable[[Term], Expr], loc: Loc
    ) -> Iterator[tuple[Expr, Expr]]:
        """The result of `run` for each element, guarded by the element's presence condition; elements that are errors
        are omitted."""
        for there, element in items:
            try:
                yield there, self.guarded(there, partial(run, element), loc)
            except Halt:
                if there is b.TRUE:
                    raise

    def conditional(self, cond: Expr, then: Callable[[], Term], other: Callable[[], Term], loc: Loc) -> Term:
        """The value of a conditional expression; raises `Halt` if neither side continues."""
        values: list[Term] = []
        for side, run in ((cond, then), (b.not_(cond), other)):
            try:
                values.append(self.guarded(side, run, loc))
            except Halt:
                values.append(_NOWHERE)
        if values[0] is _NOWHERE and values[1] is _NOWHERE:
            raise Halt
        if values[0] is _NOWHERE or values[1] is _NOWHERE:
            return values[1] if values[0] is _NOWHERE else values[0]
        return merge(cond, values[0], values[1], loc)

    def by_case(self, value: Cases, run: Callable[[Term], Term], loc: Loc) -> Term:
        """The result of `run` for either side of a conditional value."""
        return self.conditional(value.cond, partial(run, value.then), partial(run, value.other), loc)


def _merge_contents(cond: Expr, a: Content, c: Content, loc: Loc) -> Content:
    if isinstance(a, PartialList) or isinstance(c, PartialList) or (isinstance(a, tuple) and len(a) != len(c)):
        return _merge_lists(
            cond, *(x.items if isinstance(x, PartialList) else [(b.TRUE, v) for v in x] for x in (a, c))
        )
    if isinstance(a, tuple) and isinstance(c, tuple):
        return tuple(merge(cond, x, y, loc) for x, y in zip(a, c, strict=True))
    assert isinstance(a, Mapping)
    assert isinstance(c, Mapping)
    if list(a) != list(c):
        raise ModelError(
            "the keys of a local dict, or their order, depend on the state",
            loc=loc,
            remedy="create every key first, then change its value under the condition",
        )
    return {k: merge(cond, a[k], c[k], loc) for k in a}


def _merge_lists(cond: Expr, a: Sequence[tuple[Expr, Term]], c: Sequence[tuple[Expr, Term]]) -> PartialList:
    """The elements of `a` where `cond` holds and those of `c` elsewhere; the common ones at the beginning once."""
    start = next((at for at, (x, y) in enumerate(zip(a, c, strict=False)) if not _alike(x, y)), min(len(a), len(c)))
    rest = [(b.and_((cond, there)), v) for there, v in a[start:]]
    rest += [(b.and_((b.not_(cond), there)), v) for there, v in c[start:]]
    return PartialList((*a[:start], *((there, v) for there, v in rest if there is not b.FALSE)))


def _alike(x: tuple[Expr, Term], y: tuple[Expr, Term]) -> bool:
    return x[0] is y[0] and (x[1] is y[1] or same(x[1], y[1]))


def describe_operand(term: Expr) -> str:
    """An operand of a check for messages during lowering: its value if constant, else its sort."""
    is_known, host = known(term)
    return str(host) if is_known else str(term.sort)


def where(frame: Frame, node: ast.AST) -> Loc:
    """The source position of `node` in the user's file."""
    line = getattr(node, "lineno", 0)
    found = frame.lines.get(line)
    if found is None:
        found = frame.lines[line] = Loc(frame.file, line, getattr(frame.function, "__name__", ""))
    return found


@lru_cache(maxsize=4096)
def lines_of(file: str, function: str) -> dict[int, Loc]:
    """Source positions in a function by line, shared because there are many more terms than lines."""
    return {}


def boolean(value: Term, loc: Loc) -> Expr:
    """`value` as a condition; truthiness of numbers and containers is rejected, so that no test is silently constant."""
    if is_expr(value) and isinstance(value.sort, BoolSort):
        return value
    if isinstance(value, bool):
        return b.truth(value)
    if isinstance(value, FORMULAS):
        raise ModelError(
            "a temporal formula applies to a behaviour, not to a state",
            loc=loc,
            remedy="join formulas with 'and', 'or', 'not', all(...) and any(...)",
        )
    raise ModelError(
        f"a condition must be a Bool, got {describe(value)}",
        loc=loc,
        remedy="compare explicitly: x != 0, len(q) > 0, o is not None",
    )


class Evaluator(Protocol):
    """The `Evaluator` protocol: lowering of syntax nodes, as used by the functions for the individual node kinds; see
    `lowering`."""

    context: Context

    def within(self, context: Context) -> Evaluator:
        """The same in another context."""

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """Lowers a sequence of statements."""
