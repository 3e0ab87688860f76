"""SMT-LIB scripts: named terms, their definitions, and assertions.

Every name in the text is a letter and a number from a counter: no text of a model or a certificate is copied into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from streamproof.base.errors import StreamproofError
from streamproof.base.records import dataclass


class Untranslatable(StreamproofError):
    """A term outside the verifier's translation."""


@dataclass(frozen=True, slots=True)
class SmtTerm:
    """The text of a scalar term and its SMT-LIB sort."""

    text: str
    sort: str


Columns: TypeAlias = tuple[SmtTerm, ...]
"""A value: its scalars from left to right (`smt_terms.layout`)."""

INT, TRUTH = "Int", "Bool"
TRUE, FALSE = SmtTerm("true", TRUTH), SmtTerm("false", TRUTH)


def number(value: int) -> SmtTerm:
    """A numeral."""
    return SmtTerm(str(value) if value >= 0 else f"(- {-value})", INT)


class Script:
    """Constants and definitions by name, and the commands that declare and assert them.

    Every operation becomes a definition, so a shared term is written once.
    """

    def __init__(self) -> None:
        self._lines: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._known: dict[str, SmtTerm] = {}
        self.nonlinear = False

    def fresh(self, letter: str, sort: str) -> SmtTerm:
        """A fresh constant."""
        name = f"{letter}{len(self._lines)}"
        self._lines[name] = (f"(declare-fun {name} () {sort})", ())
        return SmtTerm(name, sort)

    def op(self, name: str, sort: str, *args: SmtTerm) -> SmtTerm:
        """The operation `name` applied to `args`."""
        text = f"({name} {' '.join(a.text for a in args)})"
        if text not in self._known:
            used = tuple(a.text for a in args if a.text in self._lines)
            short = f"t{len(self._lines)}"
            self._lines[short] = (f"(define-fun {short} () {sort} {text})", used)
            self._known[text] = SmtTerm(short, sort)
        return self._known[text]

    def all_of(self, parts: Iterable[SmtTerm]) -> SmtTerm:
        """Conjunction."""
        return self._joined("and", parts, TRUE, FALSE)

    def any_of(self, parts: Iterable[SmtTerm]) -> SmtTerm:
        """Disjunction."""
        return self._joined("or", parts, FALSE, TRUE)

    def _joined(self, name: str, parts: Iterable[SmtTerm], neutral: SmtTerm, decisive: SmtTerm) -> SmtTerm:
        some = [p for p in dict.fromkeys(parts) if p != neutral]
        if decisive in some:
            return decisive
        return self.op(name, TRUTH, *some) if len(some) > 1 else some[0] if some else neutral

    def negation(self, term: SmtTerm) -> SmtTerm:
        """Negation."""
        return {TRUE: FALSE, FALSE: TRUE}.get(term) or self.op("not", TRUTH, term)

    def same(self, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        """Equality of scalars."""
        return TRUE if left == right else self.op("=", TRUTH, left, right)

    def choice(self, cond: SmtTerm, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        """`left` if `cond` else `right`."""
        return left if left == right else self.op("ite", left.sort, cond, left, right)

    def minus(self, term: SmtTerm) -> SmtTerm:
        """The negative of an integer."""
        return self.op("-", INT, term)

    def text(self, asserted: Iterable[SmtTerm]) -> str:
        """The commands that declare, define and assert these terms, and check satisfiability."""
        asserted = list(dict.fromkeys(asserted))
        needed: set[str] = set()
        pending = [t.text for t in asserted]
        while pending:
            name = pending.pop()
            if name in self._lines and name not in needed:
                needed.add(name)
                pending += self._lines[name][1]
        lines = [line for name, (line, _) in self._lines.items() if name in needed]
        logic = "QF_ANIA" if self.nonlinear else "QF_ALIA"
        asserts = [f"(assert {t.text})" for t in asserted]
        return "\n".join([f"(set-logic {logic})", *lines, *asserts, "(check-sat)", ""])
