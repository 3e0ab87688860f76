"""Lowering of ``match``: over the cases of a union, and over plain values such as names.

A pattern is a condition and the names it binds. The cases are tried in order, each where the earlier ones did not
match. A ``match`` that names every case of a union needs no ``case _``.
"""

from __future__ import annotations

import ast

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.language.lower import operators
from streamproof.language.lower.cases import Case, fields_of, is_case_class, unknown_case
from streamproof.language.lower.inlining import covers_all
from streamproof.language.lower.lift import condition_of
from streamproof.language.lower.lowering_context import Evaluator, Frame, boolean, where
from streamproof.language.lower.lvalues import as_tuple, dereference
from streamproof.language.lower.sources import text
from streamproof.language.lower.terms import Cases, NewCase, Term, describe, is_expr, symbolic
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import BoolSort, OptionSort, UnionSort

Bound = tuple[tuple[str, Term], ...]
"""The names that a pattern binds, each with its value."""
REMEDY = "a case is Vote(value=v), (a, b), a name, a value, _, or several of these joined with |"


def isinstance_(ev: Evaluator, args: list[Term], loc: Loc) -> Term:
    """``isinstance(m, Vote)``, also with a tuple or ``|`` of cases."""
    subject, kinds = dereference(ev.context, args[0]), args[1]
    listed = kinds if isinstance(kinds, tuple) else getattr(kinds, "__args__", (kinds,))
    if isinstance(subject, Cases):
        return ev.context.by_case(subject, lambda one: isinstance_(ev, [one, kinds], loc), loc)
    return b.or_([_of_case(subject, kind, loc)[0] for kind in listed], loc)


def _of_case(subject: Term, kind: object, loc: Loc) -> tuple[Expr, tuple[Term, ...]]:
    """The condition that a value is of a case, and its fields there."""
    if not is_case_class(kind) or kind is Case:
        raise ModelError(
            f"{getattr(kind, '__name__', kind)} is no case of a union",
            loc=loc,
            remedy="the type of every other value is known: compare it, or test an Option with 'is None'",
        )
    if isinstance(subject, NewCase | Case):
        own = subject.kind if isinstance(subject, NewCase) else type(subject)
        same = own.__name__ == kind.__name__ and own.__match_args__ == kind.__match_args__
        return b.truth(same), (subject.values if isinstance(subject, NewCase) else subject._values) if same else ()
    if subject is None:
        return b.FALSE, ()
    if is_expr(subject) and isinstance(subject.sort, OptionSort):
        there, fields = _of_case(b.unwrap(subject, loc), kind, loc)
        return b.and_((b.not_(b.is_none(subject, loc)), there), loc), fields
    if not is_expr(subject) or not isinstance(subject.sort, UnionSort):
        raise ModelError(f"{describe(subject)} is never a {kind.__name__}", loc=loc, remedy="declare it Union(...)")
    own_fields = fields_of(kind, subject.sort)
    if own_fields is None:
        raise unknown_case(kind, subject.sort, loc)
    payload = b.payload(subject, kind.__name__, loc)
    return b.is_case(subject, kind.__name__, loc), tuple(b.field(payload, name, loc) for name, _ in own_fields.fields)


@dataclass(frozen=True, slots=True)
class _Matching:
    """One ``match``, where it is lowered."""

    ev: Evaluator
    frame: Frame
    node: ast.Match

    def run(self, subject: Term, at: int, left: frozenset[str] | None) -> None:
        """The cases from position `at`; `left` are the cases of a union that no earlier pattern covers."""
        ev, frame = self.ev, self.frame
        if at == len(self.node.cases):
            return
        case = self.node.cases[at]
        cond, bound = self.pattern(subject, case.pattern)
        covered = self.covered(case.pattern) if left is not None and case.guard is None else frozenset()
        if left is not None and left <= covered:
            cond = b.TRUE
        rest = None if left is None else left - covered

        def otherwise() -> None:
            self.run(subject, at + 1, rest)

        def body() -> None:
            ev.block(case.body, frame)

        def chosen() -> None:
            frame.locals.update(bound)
            if case.guard is None:
                body()
                return
            guard = boolean(dereference(ev.context, ev.value(case.guard, frame)), where(frame, case.guard))
            ev.context.branch(frame, guard, body, otherwise, where(frame, case.guard))

        ev.context.branch(frame, cond, chosen, otherwise, where(frame, case.pattern))

    def pattern(self, subject: Term, node: ast.pattern) -> tuple[Expr, Bound]:
        """The condition that `subject` matches, and the names bound then."""
        ev, loc = self.ev, where(self.frame, node)
        match node:
            case ast.MatchAs(pattern=inner, name=name):
                cond, bound = (b.TRUE, ()) if inner is None else self.pattern(subject, inner)
                return cond, bound if name is None else (*bound, (name, subject))
            case ast.MatchOr(patterns=patterns):
                found = [self.pattern(subject, p) for p in patterns]
                if any(bound for _, bound in found):
                    raise ModelError("a name bound in a pattern with |", loc=loc, remedy="write one case for each")
                return b.or_([cond for cond, _ in found], loc), ()
            case ast.MatchValue(value=value):
                return condition_of(operators.equal(ev.context, subject, ev.value(value, self.frame), loc)), ()
            case ast.MatchSingleton(value=value):
                if value is not None and not (is_expr(subject) and isinstance(subject.sort, BoolSort)):
                    raise ModelError(f"{describe(subject)} is never {value}", loc=loc, remedy=REMEDY)
                never = isinstance(subject, NewCase) or (is_expr(subject) and not isinstance(subject.sort, OptionSort))
                if value is None and never:
                    return b.FALSE, ()
                return condition_of(operators.equal(ev.context, subject, value, loc)), ()
            case ast.MatchClass(cls=cls):
                return self.of_class(subject, node, ev.value(cls, self.frame))
            case ast.MatchSequence(patterns=patterns) if not any(isinstance(p, ast.MatchStar) for p in patterns):
                return self.of_tuple(subject, patterns, loc)
            case _:
                raise ModelError(f"the pattern {text(node)!r} is not part of the language", loc=loc, remedy=REMEDY)

    def of_class(self, subject: Term, node: ast.MatchClass, kind: object) -> tuple[Expr, Bound]:
        """The pattern ``Vote(voter=r, value="YES")``."""
        loc = where(self.frame, node)
        cond, fields = _of_case(subject, kind, loc)
        names: tuple[str, ...] = getattr(kind, "__match_args__", ())
        inner = [*zip(names, node.patterns, strict=False), *zip(node.kwd_attrs, node.kwd_patterns, strict=True)]
        unknown = next((n for n in node.kwd_attrs if n not in names), None)
        if unknown is not None or len(node.patterns) > len(names) or len({n for n, _ in inner}) < len(inner):
            what = f"no field {unknown!r} in" if unknown is not None else "too many fields of"
            raise ModelError(
                f"{what} {text(node.cls)}",
                loc=loc,
                remedy=f"its fields are {', '.join(names) or 'none: write it as X()'}",
            )
        conditions, bound = [cond], list[tuple[str, Term]]()
        if cond is not b.FALSE:
            for name, part in inner:
                there, more = self.pattern(fields[names.index(name)], part)
                conditions.append(there)
                bound += more
        return b.and_(conditions, loc), tuple(bound)

    def of_tuple(self, subject: Term, patterns: list[ast.pattern], loc: Loc) -> tuple[Expr, Bound]:
        """The pattern ``(0, b)`` for a tuple, or a record as the tuple of its fields."""
        present = b.TRUE
        if is_expr(subject) and isinstance(subject.sort, OptionSort):
            present, subject = b.not_(b.is_none(subject, loc)), b.unwrap(subject, loc)
        parts = () if subject is None else as_tuple(self.ev.context, subject, loc)
        if type(parts) is not tuple:
            raise ModelError(f"{describe(subject)} is never a tuple", loc=loc, remedy=REMEDY)
        if subject is None or len(parts) != len(patterns):
            return b.FALSE, ()
        found = [self.pattern(dereference(self.ev.context, one), p) for one, p in zip(parts, patterns, strict=True)]
        return b.and_((present, *(cond for cond, _ in found)), loc), tuple(name for _, bound in found for name in bound)

    def covered(self, node: ast.pattern) -> frozenset[str]:
        """The cases of a union of which a pattern covers every value; a class is its value, whatever the source calls it."""
        match node:
            case ast.MatchClass(cls=cls, patterns=patterns, kwd_patterns=named):
                whole = all(map(covers_all, [*patterns, *named]))
                kind = self.ev.value(cls, self.frame) if whole else None
                return frozenset([kind.__name__]) if is_case_class(kind) else frozenset()
            case ast.MatchOr(patterns=patterns):
                return frozenset().union(*map(self.covered, patterns))
            case ast.MatchAs(pattern=ast.pattern() as inner):
                return self.covered(inner)
            case _:
                return frozenset()


def match_statement(ev: Evaluator, node: ast.Match, frame: Frame) -> None:
    """``match``: the body of the first case that matches."""
    _over(_Matching(ev, frame, node), dereference(ev.context, ev.value(node.subject, frame)))


def _over(matching: _Matching, subject: Term) -> None:
    if isinstance(subject, Cases):
        loc = where(matching.frame, matching.node.subject)
        matching.ev.context.branch(
            matching.frame,
            subject.cond,
            lambda: _over(matching, subject.then),
            lambda: _over(matching, subject.other),
            loc,
        )
        return
    if symbolic(subject) and not is_expr(subject) and not isinstance(subject, NewCase | tuple):
        loc = where(matching.frame, matching.node.subject)
        raise ModelError(f"{describe(subject)} cannot be matched", loc=loc, remedy="match a value of the state")
    union = is_expr(subject) and isinstance(subject.sort, UnionSort)
    matching.run(subject, 0, frozenset(subject.sort.tag.members) if union else None)
