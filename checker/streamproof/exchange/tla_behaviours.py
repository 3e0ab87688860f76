"""Temporal formulas in TLA+, and separate modules for operators that TLA+ lacks.

``until`` and ``release`` are not in TLA+. A property with them gets a module that extends the model's own by one
variable for each: a guessed truth value, constrained by the operator's expansion over this state and the next, which
must not postpone an until indefinitely. Every behaviour of the model has exactly one such guess, so the property is
true of one specification exactly if it is true of the other. The model's own module, and its count of states, are
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from itertools import groupby
from typing import Any, TypeAlias, assert_never

from streamproof.exchange.tla_layout import Bind, Text, atom, below, beside, bulleted, closed, listed
from streamproof.system.expr import Const, Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    mapped,
    parts,
    recurring,
    written,
)
from streamproof.system.records import dataclass
from streamproof.system.text import visible


def is_direct(formula: Formula) -> bool:
    """Whether TLA+ has every operator of the formula."""
    return not isinstance(formula, Until | Release) and all(map(is_direct, parts(formula)))


def is_watchable(formula: Formula) -> bool:
    """Whether the operands of until and release are state-level, so that a variable can represent the operator."""
    if isinstance(formula, Until | Release):
        return next(recurring(formula), None) is None
    return all(map(is_watchable, parts(formula)))


def folded(formula: Formula) -> Formula | bool:
    """The formula without constants, for which TLC gives wrong verdicts and errors in temporal formulas, or a constant."""
    match formula:
        case Atom(expr) | Recurs(expr):
            return expr.value if isinstance(expr, Const) and (isinstance(formula, Atom) or not expr.value) else formula
        case NotF(arg):
            one = folded(arg)
            return not one if isinstance(one, bool) else NotF(one)
        case AndF(args) | OrF(args):
            decides = isinstance(formula, OrF)
            some = [folded(arg) for arg in args]
            kept = tuple(one for one in some if not isinstance(one, bool))
            if any(one is decides for one in some):
                return decides
            if not kept:
                return not decides
            return kept[0] if len(kept) == 1 else type(formula)(kept)
        case Always(arg) | Eventually(arg):
            one = folded(arg)
            return one if isinstance(one, bool) else type(formula)(one)
        case Until(left, right):
            before, after = folded(left), folded(right)
            if isinstance(after, bool) or before is False:
                return after
            return Eventually(after) if isinstance(before, bool) else Until(before, after)
        case Release(left, right):
            before, after = folded(left), folded(right)
            if isinstance(after, bool) or before is True:
                return after
            return Always(after) if isinstance(before, bool) else Release(before, after)
        case LeadsTo(left, right):
            before, after = folded(left), folded(right)
            if before is False or after is True:
                return True
            if isinstance(after, bool):
                return Always(NotF(before)) if not isinstance(before, bool) else False
            return Always(Eventually(after)) if isinstance(before, bool) else LeadsTo(before, after)
        case _:
            assert_never(formula)


def _operator(formula: Formula, text: Callable[[Formula], Text]) -> Text:
    """An operator of TLA+, applied to the texts of its operands."""
    match formula:
        case NotF(arg) | Always(arg) | Eventually(arg):
            sign = {NotF: "~", Always: "[]", Eventually: "<>"}[type(formula)]
            return beside(sign, closed(text(arg), Bind.ATOM), bind=Bind.COMPARED)
        case AndF(args):
            return listed("/\\", [text(arg) for arg in args]) if args else atom("TRUE")
        case OrF(args):
            return listed("\\/", [text(arg) for arg in args]) if args else atom("FALSE")
        case LeadsTo(left, right):
            before, after = (closed(text(arg), Bind.ATOM) for arg in (left, right))
            return beside(before, " ~> ", after, bind=Bind.LOOSE)
        case _:
            raise AssertionError("TLA+ has no such operator")


def leaves(formula: Formula) -> Iterator[Expr]:
    """The conditions in a formula, from left to right."""
    match formula:
        case Atom(expr) | Recurs(expr):
            yield expr
        case _:
            for part in parts(formula):
                yield from leaves(part)


def skeleton(formula: Formula) -> tuple[Any, ...]:
    """The operators of a formula."""
    return (type(formula), *map(skeleton, parts(formula)))


Several: TypeAlias = Callable[[Sequence[Formula], Callable[[Formula, Callable[[Expr], Text]], Text]], Text | None]
"""One text, with a quantifier, for the conjunction of several formulas; None if they are not alike."""


def direct(
    formula: Formula,
    condition: Callable[[Expr], Text],
    several: Several | None = None,
    shape: Callable[[Formula], Hashable] = skeleton,
) -> Text:
    """A formula whose operators TLA+ has. Neighbours of one `shape` in a conjunction share a quantifier where possible."""
    match formula:
        case Atom(expr):
            return condition(expr)
        case Recurs(step):
            return beside("[]<><<(", condition(step), ")>>_vars")
        case AndF(args) if several is not None and len(args) > 1:
            text = several(args, direct)
            if text is not None:
                return text
            runs = [tuple(run) for _, run in groupby(args, shape)]
            if 1 < len(runs) < len(args):
                return bulleted("/\\", [direct(AndF(run), condition, several) for run in runs])
        case AndF((arg,)):
            return direct(arg, condition, several, shape)
        case _:
            pass
    return _operator(formula, lambda part: direct(part, condition, several, shape))


TRUE_FORMULA = AndF(())


def core(formula: Formula) -> Formula:
    """The formula with until, negation and connectives only."""
    match formula:
        case Always(arg):
            return NotF(Until(TRUE_FORMULA, NotF(core(arg))))
        case Eventually(arg):
            return Until(TRUE_FORMULA, core(arg))
        case Release(left, right):
            return NotF(Until(NotF(core(left)), NotF(core(right))))
        case LeadsTo(left, right):
            return core(Always(OrF((NotF(left), Eventually(right)))))
        case _:
            return mapped(formula, core)


@dataclass
class Guesses:
    """The truth values of the untils in a formula, as variables: inner ones first."""

    condition: Callable[[Expr], Text]
    names: Callable[[], str]
    found: dict[Formula, str] = field(default_factory=dict)

    def text(self, formula: Formula) -> Text:
        """A formula on a single state, in which the variables represent the untils."""
        match formula:
            case Atom(expr):
                return self.condition(expr)
            case NotF() | AndF() | OrF():
                return _operator(formula, self.text)
            case Until(left, right):
                if formula not in self.found:
                    self.text(left)
                    self.text(right)
                    self.found[formula] = self.names()
                return atom(self.found[formula])
            case _:
                raise AssertionError("only what `core` leaves")

    def outermost(self, formula: Formula) -> Text:
        """The formula to check: TLA+'s own operators outside any until."""
        match formula:
            case NotF() | Always() | Eventually() | LeadsTo() | AndF() | OrF() if formula not in (
                TRUE_FORMULA,
                OrF(()),
            ):
                return _operator(formula, self.outermost)
            case Recurs():
                return direct(formula, self.condition)
            case _:
                return self.text(core(formula))

    def consistent(self) -> list[Text]:
        """The constraint on a guess in a single state: true where the until is fulfilled, false where it cannot be."""
        items = []
        for until, name in self._untils():
            right = self.text(until.right)
            items.append(beside(closed(right, Bind.COMPARED), f" => {name}", bind=Bind.LOOSE))
            if until.left != TRUE_FORMULA:
                kept = closed(listed("\\/", [right, self.text(until.left)]), Bind.COMPARED)
                items.append(beside(f"{name} => ", kept, bind=Bind.LOOSE))
        return items

    def handed_on(self) -> list[Text]:
        """The constraint on consecutive guesses."""
        items = []
        for until, name in self._untils():
            waiting = beside("~", closed(self.text(until.right), Bind.ATOM), bind=Bind.COMPARED)
            if until.left != TRUE_FORMULA:
                waiting = listed("/\\", [self.text(until.left), waiting])
            items.append(beside(closed(waiting, Bind.COMPARED), f" => {name}' = {name}", bind=Bind.LOOSE))
        return items

    def kept(self) -> list[Text]:
        """No until is postponed indefinitely."""
        return [
            beside("[]<>(", listed("\\/", [atom(f"~{name}"), self.text(until.right)]), ")")
            for until, name in self._untils()
        ]

    def _untils(self) -> Iterator[tuple[Until, str]]:
        for formula, name in self.found.items():
            assert isinstance(formula, Until)
            yield formula, name


def watched_module(
    module: str,
    base: str,
    title: str,
    name: str,
    formula: Formula,
    guesses: Guesses,
    new: Callable[[str], str],
    *,
    fair: bool,
) -> tuple[str, str]:
    """A module for the property `name`, which extends `base`: its specification and its text. `new` gives unused names."""
    agrees, init, following, specification = map(new, ("Agrees", "InitWatched", "NextWatched", "SpecWatched"))
    # A wrong guess can look like a violation in a single state; with an additional temporal formula that is always
    # false, TLC checks whole behaviours, in which no guess is wrong.
    whole = closed(guesses.outermost(formula), Bind.COMPARED)
    names = list(guesses.found.values())
    shown = beside(f"<>({names[0]} /\\ ~{names[0]}) \\/ ", whole, bind=Bind.LOOSE)
    guessed = [f"{n} \\in BOOLEAN" for n in names]
    every = ", ".join(["vars", *names])
    bodies = {
        agrees: guesses.consistent(),
        init: [atom("Init"), *map(atom, guessed), atom(f"{agrees} = TRUE")],
        following: [
            atom("Next"),
            *(atom(g.replace(" ", "' ", 1)) for g in guessed),
            atom(f"{agrees}' = TRUE"),
            *(beside("(", text, ") = TRUE", bind=Bind.COMPARED) for text in guesses.handed_on()),
        ],
        specification: [
            atom(init),
            atom(f"[][{following}]_<<{every}>>"),
            *([atom("Fairness")] if fair else []),
            *guesses.kept(),
        ],
    }
    declared = [
        line
        for at, n in enumerate(names)
        for line in ("    \\* @type: Bool;", f"    {n}{',' if at + 1 < len(names) else ''}")
    ]
    lines = [
        f"{'-' * 20} MODULE {module} {'-' * 20}",
        f"\\* {title}",
        "\\* Each variable is a guess, whether what TLA+ has no operator for is true from this state on:",
        *(f"\\*   {guess}: {comment(written(until))}" for until, guess in guesses.found.items()),
        "\\* A guess must agree with its state, be handed on to the next one, and an until must be fulfilled.",
        f"EXTENDS {base}",
        "",
        "VARIABLES",
        *declared,
    ]
    for defining, items in bodies.items():
        lines += ["", *defined(defining, bulleted("/\\", items)).lines]
    lines += ["", *defined(name, shown).lines, "=" * 60, ""]
    return specification, "\n".join(lines)


def defined(head: str, body: Text) -> Text:
    """The definition of an operator."""
    return below((atom(f"{head} =="), beside("    ", body)))


def comment(text: str) -> str:
    """Text in a comment: one line, in ASCII."""
    return " ".join(visible(" ".join(text.split())).encode("ascii", "replace").decode().split())
