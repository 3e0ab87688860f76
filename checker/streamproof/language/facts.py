"""Bounds on integers implied by guards and branch conditions; checks that they refute are dropped.

Most rules test a bound before a step (``require(s.credit > 0)``, then ``s.credit -= 1``). Dropping the check here saves
every engine the same test in every state.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Conjunct
from streamproof.system.sorts import RangeSort

Interval = tuple[int, int]


class GuardFacts:
    """Bounds and truth values implied by the learnt conditions."""

    def __init__(self) -> None:
        self._learnt: tuple[int, Expr | None] = (0, None)
        self._bounds: dict[Expr, Interval] = {}
        self._truths: dict[Expr, bool] = {}
        self._known: dict[Expr, Interval] = {}
        self._decided: dict[Expr, bool | None] = {}

    def learn(self, guards: Iterable[Conjunct], path: Expr) -> None:
        """Replaces the learnt conditions (cheap if they extend the previous ones)."""
        conditions = [g.expr for g in guards]
        if self._learnt == (len(conditions), path):
            return
        self._learnt = (len(conditions), path)
        self._bounds, self._truths = {}, {}
        self._forget()
        for condition in (*conditions, path):
            self._assume(condition, True)

    def _forget(self) -> None:
        """Clears derived facts after a new condition."""
        self._known, self._decided = {}, {}

    def refute(self, condition: Expr) -> bool:
        """Whether the facts imply that `condition` is false."""
        return self._decide(condition) is False

    def _assume(self, term: Expr, truth: bool) -> None:
        match term:
            case e.Not(arg=arg):
                self._assume(arg, not truth)
            case e.And(args=args) if truth:
                for arg in args:
                    self._assume(arg, True)
            case e.Or(args=args) if not truth:
                for arg in args:
                    self._assume(arg, False)
            case e.Less(left=a, right=c) if truth:
                self._below(a, c, 1)
            case e.Less(left=a, right=c):
                self._below(c, a, 0)
            case e.LessEq(left=a, right=c) if truth:
                self._below(a, c, 0)
            case e.LessEq(left=a, right=c):
                self._below(c, a, 1)
            case e.Eq(left=a, right=c) if truth and isinstance(a.sort, RangeSort):
                self._below(a, c, 0)
                self._below(c, a, 0)
        self._truths[term] = truth
        self._forget()

    def _below(self, low: Expr, high: Expr, gap: int) -> None:
        """Records ``low + gap <= high``."""
        (_, top), (bottom, _) = self.interval(high), self.interval(low)
        self._narrow(low, None, top - gap)
        self._narrow(high, bottom + gap, None)

    def _narrow(self, term: Expr, lo: int | None, hi: int | None) -> None:
        now = self.interval(term)
        self._bounds[term] = (now[0] if lo is None else max(lo, now[0]), now[1] if hi is None else min(hi, now[1]))
        self._forget()
        match term:
            case e.Add(left=inner, right=e.Const(value=c)) | e.Add(left=e.Const(value=c), right=inner):
                self._narrow(inner, None if lo is None else lo - c, None if hi is None else hi - c)
            case e.Sub(left=inner, right=e.Const(value=c)):
                self._narrow(inner, None if lo is None else lo + c, None if hi is None else hi + c)

    def interval(self, term: Expr) -> Interval:
        """Bounds of an integer term under the facts."""
        if term not in self._known:
            self._known[term] = self._interval(term)
        return self._known[term]

    def _interval(self, term: Expr) -> Interval:
        assert isinstance(term.sort, RangeSort)
        lo, hi = self._bounds.get(term, (term.sort.lo, term.sort.hi))
        match term:
            case e.Add(left=a, right=c):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                lo, hi = max(lo, al + cl), min(hi, ah + ch)
            case e.Sub(left=a, right=c):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                lo, hi = max(lo, al - ch), min(hi, ah - cl)
            case e.Ite(cond=cond, then=a, other=c):
                truth = self._decide(cond)
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                if truth is None:
                    lo, hi = max(lo, min(al, cl)), min(hi, max(ah, ch))
                else:
                    lo, hi = (max(lo, al), min(hi, ah)) if truth else (max(lo, cl), min(hi, ch))
        return lo, hi

    def _decide(self, term: Expr) -> bool | None:
        """True or False if the facts imply it, else None."""
        if term not in self._decided:
            self._decided[term] = self._truths[term] if term in self._truths else self._judge(term)
        return self._decided[term]

    def _judge(self, term: Expr) -> bool | None:
        match term:
            case e.Const(value=bool() as value):
                return value
            case e.Not(arg=arg):
                inner = self._decide(arg)
                return None if inner is None else not inner
            case e.And(args=args):
                return self._connect(args, False)
            case e.Or(args=args):
                return self._connect(args, True)
            case e.Less(left=a, right=c):
                return self._compare(a, c, 1)
            case e.LessEq(left=a, right=c):
                return self._compare(a, c, 0)
            case e.Eq(left=a, right=c) if isinstance(a.sort, RangeSort) and isinstance(c.sort, RangeSort):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                if ah < cl or ch < al:
                    return False
                return True if al == ah == cl == ch else None
        return None

    def _connect(self, args: tuple[Expr, ...], zero: bool) -> bool | None:
        parts = [self._decide(a) for a in args]
        return zero if zero in parts else None if None in parts else not zero

    def _compare(self, low: Expr, high: Expr, gap: int) -> bool | None:
        """Whether the facts imply ``low + gap <= high``."""
        (al, ah), (cl, ch) = self.interval(low), self.interval(high)
        return True if ah + gap <= cl else False if al + gap > ch else None
