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
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.base.text import visible
from streamproof.exchange.tla.layout import Bind, Text, atom, below, beside, bulleted, closed, listed
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    mapped,
    of_state,
    parts,
    recurring,
    refutable,
    written,
)


def is_direct(formula: Formula) -> bool:
    """Whether TLA+ has every operator of the formula."""
    return not isinstance(formula, Until | Release | Happens) and all(map(is_direct, parts(formula)))


def is_watchable(formula: Formula) -> bool:
    """Whether the operands of until and release are state-level, so that a variable can represent the operator."""
    if isinstance(formula, Until | Release):
        return next(recurring(formula), None) is None
    return not isinstance(formula, Happens) and all(map(is_watchable, parts(formula)))


def within(formula: Formula, inside: Formula) -> Formula:
    """The formula for TLC with a constraint: `inside` is the condition of the states within it.

    TLC takes conditions on the initial state, and ``[]`` of a condition on states, out of a conjunction and checks them in
    the first states outside too, whatever is fair; these parts get `inside` as their antecedent. Other formulas are
    evaluated on the states within the constraint only, and stay as they are.
    """
    conjuncts = tuple(_conjuncts(formula))
    first = tuple(part for part in conjuncts if of_state(part))
    always = tuple(part.arg for part in conjuncts if isinstance(part, Always) and of_state(part.arg))
    rest = tuple(part for part in conjuncts if not is_taken_apart(part))

    def assumed(parts: tuple[Formula, ...]) -> Formula:
        return OrF((NotF(inside), parts[0] if len(parts) == 1 else AndF(parts)))

    made = (*((assumed(first),) if first else ()), *((Always(assumed(always)),) if always else ()), *rest)
    return made[0] if len(made) == 1 else AndF(made)


def is_taken_apart(conjunct: Formula) -> bool:
    """Whether TLC decides the conjunct on states, by finite behaviours."""
    return of_state(conjunct) or (isinstance(conjunct, Always) and of_state(conjunct.arg))


def is_endless_only(formula: Formula) -> bool:
    """Whether a finite behaviour within a constraint may refute the formula without TLC's noticing: TLC decides all but
    `is_taken_apart` on the fair behaviours that stay within the constraint."""
    return any(refutable(part) for part in _conjuncts(formula) if not is_direct(formula) or not is_taken_apart(part))


def _conjuncts(formula: Formula) -> Iterator[Formula]:
    for part in formula.args if isinstance(formula, AndF) else ():
        yield from _conjuncts(part)
    if not isinstance(formula, AndF):
        yield formula


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
        case Happens(expr, arg):
            yield expr
            yield from leaves(arg)
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
