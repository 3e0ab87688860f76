"""Substitution of terms for terms, rebuilt through `build` so that new constants fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import ArraySort, RecordSort, UnionSort


class Substitution:
    """Simultaneously replaces every occurrence of the keys by their values; shared terms are rebuilt once."""

    def __init__(self, mapping: Mapping[Expr, Expr]) -> None:
        self._done: dict[Expr, Expr] = dict(mapping)

    def __call__(self, term: Expr) -> Expr:
        """`term` after the replacement; replacements are not substituted again."""
        done = self._done
        if term not in done:
            for part in e.unfinished(term, done):
                done[part] = self.rebuild(part)
        return done[term]

    def _all(self, terms: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(self._done[t] for t in terms)

    def rebuild(self, term: Expr) -> Expr:
        """`term` from its substituted operands."""
        done = self._done
        for part in e.children(term):
            if done[part] is not part:
                break
        else:
            return term
        of, loc = done.__getitem__, term.loc
        match term:
            case e.Const() | e.Var() | e.Next():
                return term
            case e.Not(arg=x):
                return b.not_(of(x), loc)
            case e.And(args=args):
                return b.and_(self._all(args), loc)
            case e.Or(args=args):
                return b.or_(self._all(args), loc)
            case e.Ite(cond=c, then=x, other=y):
                return b.ite(of(c), of(x), of(y), loc)
            case e.Eq(left=x, right=y):
                return b.eq(of(x), of(y), loc)
            case e.Less(left=x, right=y):
                return b.less(of(x), of(y), loc)
            case e.LessEq(left=x, right=y):
                return b.less_eq(of(x), of(y), loc)
            case e.Add(left=x, right=y):
                return b.add(of(x), of(y), loc)
            case e.Sub(left=x, right=y):
                return b.sub(of(x), of(y), loc)
            case e.Mul(left=x, right=y):
                return b.mul(of(x), of(y), loc)
            case e.FloorDiv(left=x, right=y):
                return b.floor_div(of(x), of(y), loc)
            case e.Mod(left=x, right=y):
                return b.mod(of(x), of(y), loc)
            case e.MakeArray(sort=sort, elements=parts):
                assert isinstance(sort, ArraySort)
                return b.make_array(sort, self._all(parts), loc)
            case e.MakeRecord(sort=sort, values=parts):
                assert isinstance(sort, RecordSort)
                return b.make_record(sort, self._all(parts), loc)
            case e.Select(array=x, index=y):
                return b.select(of(x), of(y), loc)
            case e.Store(array=x, index=y, value=z):
                return b.store(of(x), of(y), of(z), loc)
            case e.Field(record=x, name=name):
                return b.field(of(x), name, loc)
            case e.WithField(record=x, name=name, value=y):
                return b.with_field(of(x), name, of(y), loc)
            case e.MakeCase(sort=sort, case=case, payload=x):
                assert isinstance(sort, UnionSort)
                return b.make_case(sort, case, of(x), loc)
            case e.IsCase(arg=x, case=case):
                return b.is_case(of(x), case, loc)
            case e.Payload(arg=x, case=case):
                return b.payload(of(x), case, loc)
            case e.Some(arg=x):
                return b.some(of(x), loc)
            case e.IsNone(arg=x):
                return b.is_none(of(x), loc)
            case e.Unwrap(arg=x):
                return b.unwrap(of(x), loc)
            case e.Length(queue=x):
                return b.length(of(x), loc)
            case e.Peek(queue=x, index=y):
                return b.peek(of(x), of(y), loc)
            case e.Push(queue=x, value=y):
                return b.push(of(x), of(y), loc)
            case e.Pop(queue=x):
                return b.pop(of(x), loc)
            case e.Member(set_=x, value=y):
                return b.member(of(x), of(y), loc)
            case e.Insert(set_=x, value=y):
                return b.insert(of(x), of(y), loc)
            case e.Remove(set_=x, value=y):
                return b.remove(of(x), of(y), loc)
            case e.Union(left=x, right=y):
                return b.union(of(x), of(y), loc)
            case e.Intersection(left=x, right=y):
                return b.intersection(of(x), of(y), loc)
            case e.Difference(left=x, right=y):
                return b.difference(of(x), of(y), loc)
            case e.Subset(left=x, right=y):
                return b.subset(of(x), of(y), loc)
            case e.Size(set_=x):
                return b.size(of(x), loc)
            case _:
                assert_never(term)
