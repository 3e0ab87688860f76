"""The smallest formula over parameters that separates the points where something holds from those where it does not.

The formula is of a template: a disjunction of conjunctions, or a conjunction of disjunctions, of *atoms*. An atom compares a
sum of up to three terms, each a parameter, a product of two, ``(a - 1) * b`` or ``(a + 1) * b``, with small coefficients,
with a constant; or it says that a parameter has, or has not, one value. Which atoms there are is found by trying all of them
on the points; which of them make a formula of so many clauses is a question to Z3, asked for one clause, two and so on, and
again for a smaller formula of as many until there is none.

What is found agrees with every point given, and says nothing of others: it is a generalisation, not a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

import z3

from streamproof import interrupts
from streamproof.system.errors import UsageError
from streamproof.system.records import dataclass

Value: TypeAlias = int | str
Values: TypeAlias = Mapping[str, Value]

CLAUSES = (1, 2, 3, 4)
MOST_SIZE = 24
"""Parameters, values and numbers in a formula: a longer one lists points, and generalises nothing."""
ALTERNATIVES = 8
"""Formulas of the same size that are looked for, of each form."""
COEFFICIENTS = (1, -1, 2, -2, 3, -3)
QUESTION = 2_000_000
"""What Z3 may do for one question, in its own unit, so that the answer does not depend on the machine's speed."""
EFFORT = 10_000_000
"""What it may do for all questions about one formula: some seconds."""


@dataclass(frozen=True, slots=True)
class ProductTerm:
    """A parameter, ``first``; or the product ``(first + more) * second``."""

    first: str
    second: str | None = None
    more: int = 0

    @property
    def size(self) -> int:
        """Parameters and numbers in it, and one more for a product: what is linear comes first."""
        return 1 if self.second is None else 3 + bool(self.more)

    def at(self, values: Values) -> int:
        """Its value."""
        number = int(values[self.first]) + self.more
        return number if self.second is None else number * int(values[self.second])

    def __str__(self) -> str:
        first = f"({self.first} {'+' if self.more > 0 else '-'} {abs(self.more)})" if self.more else self.first
        return first if self.second is None else f"{first} * {self.second}"


@dataclass(frozen=True, slots=True)
class SumAtom:
    """An atom: the sum of the terms with their coefficients is at least `least`."""

    terms: tuple[tuple[int, ProductTerm], ...]
    least: int

    @property
    def size(self) -> int:
        """Parameters and numbers that it is written with."""
        written = sum(term.size + (abs(coefficient) != 1) for coefficient, term in self.terms)
        _, _, number = self._sides()
        return written + (number != 0 or len(self.terms) == 1)

    def at(self, values: Values) -> bool:
        """Whether it is true."""
        return sum(coefficient * term.at(values) for coefficient, term in self.terms) >= self.least

    def _sides(self) -> tuple[list[tuple[int, ProductTerm]], str, int]:
        """The terms on the left, the sign, and the constant on the right, negative terms being moved there."""
        left = [(c, t) for c, t in self.terms if c > 0]
        if not left:
            return [(-c, t) for c, t in self.terms], "<=", -self.least
        # x - y >= 1 is x > y.
        if len(left) < len(self.terms) and self.least == 1:
            return left, ">", 0
        return left, ">=", self.least

    def __str__(self) -> str:
        left, sign, number = self._sides()
        right = [(-c, t) for c, t in self.terms if c < 0] if sign != "<=" else []
        # A constant stands where it is added, not subtracted.
        more = f" + {-number}" if number < 0 and right else ""
        shown = [_sum(right)] if right else []
        if number > 0 or not right:
            shown.append(str(number))
        return f"{_sum(left)}{more} {sign} {' + '.join(shown)}"


@dataclass(frozen=True, slots=True)
class ValueAtom:
    """An atom: a parameter has the value, or has not."""

    name: str
    value: Value
    is_it: bool

    @property
    def size(self) -> int:
        """As written, and one more for a number: comparisons come first, which say something of other numbers too."""
        return 2 if isinstance(self.value, str) else 3

    def at(self, values: Values) -> bool:
        """Whether it is true."""
        return (values[self.name] == self.value) is self.is_it

    def __str__(self) -> str:
        return f"{self.name} {'==' if self.is_it else '!='} {self.value}"


Atom: TypeAlias = SumAtom | ValueAtom


@dataclass(frozen=True, slots=True)
class Formula:
    """`clauses` of atoms: a disjunction of conjunctions if `any_clause`, else a conjunction of disjunctions."""

    clauses: tuple[tuple[Atom, ...], ...]
    any_clause: bool = True

    @property
    def size(self) -> int:
        """Parameters, words and numbers that it is written with."""
        return sum(atom.size for clause in self.clauses for atom in clause)

    def at(self, values: Values) -> bool:
        """Whether it is true of these values of the parameters."""
        if self.any_clause:
            return any(all(atom.at(values) for atom in clause) for clause in self.clauses)
        return all(any(atom.at(values) for atom in clause) for clause in self.clauses)

    def __str__(self) -> str:
        inner, outer = (" and ", " or ") if self.any_clause else (" or ", " and ")
        alone = len(self.clauses) == 1
        clauses = [inner.join(map(str, clause)) for clause in self.clauses]
        return outer.join(
            f"({text})" if len(clause) > 1 and not alone else text
            for text, clause in zip(clauses, self.clauses, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Separation:
    """What was found: the formula, or None and why there is none.

    `others` are formulas with as few clauses and as small that agree too; `smallest`: whether it is shown that none is
    smaller.
    """

    formula: Formula | None
    others: tuple[Formula, ...] = ()
    smallest: bool = False
    because: str = ""


def separate(points: Sequence[tuple[Values, bool]], effort: int = EFFORT) -> Separation:
    """The formula of the template that is true of the points marked True and false of the others; of those with the fewest
    clauses the smallest.

    Numbers are compared, words are told apart. Raises `UsageError` where one point is marked both, and where all are
    marked alike, so that nothing separates them.
    """
    marks: dict[tuple[tuple[str, Value], ...], bool] = {}
    for values, mark in points:
        if marks.setdefault(tuple(values.items()), mark) is not mark:
            shown = ", ".join(f"{name}={value}" for name, value in values.items())
            raise UsageError(f"the point {shown} is both inside and outside", remedy="decide it once")
    if len(set(marks.values())) < 2:
        raise UsageError("all points are alike, nothing separates them", remedy="explore more points")
    inside = [dict(key) for key, mark in marks.items() if mark]
    outside = [dict(key) for key, mark in marks.items() if not mark]
    found = _fewest_clauses(_useful(inside, outside), len(inside), len(outside), _Effort(effort))
    for formula in (found.formula, *found.others) if found.formula is not None else ():
        # The question to Z3 speaks of tables; this speaks of the points themselves.
        if any(formula.at(values) is not mark for values, mark in points):
            raise AssertionError(f"{formula} does not agree with its points")
    return found


# --- atoms


_Candidate: TypeAlias = tuple[Atom, int, int]
"""An atom with the points inside and the points outside of which it is true, a bit each."""


def _useful(inside: Sequence[Values], outside: Sequence[Values]) -> list[_Candidate]:
    """The atoms that a smallest formula can need.

    Formulas have no negation: an atom that is true of more points inside, false of more outside, and no larger than
    another, can stand for it everywhere.
    """
    first: dict[int, Atom] = {}
    for atom, truth in _atoms([*inside, *outside]):
        if truth not in first or atom.size < first[truth].size:
            first[truth] = atom
    within = (1 << len(inside)) - 1
    kept: list[_Candidate] = []
    for truth, atom in sorted(first.items(), key=lambda entry: entry[1].size):
        one, other = truth & within, truth >> len(inside)
        if one and not any(more | one == more and less & other == less for _, more, less in kept):
            kept.append((atom, one, other))
    return kept


def _atoms(points: Sequence[Values]) -> Iterator[tuple[Atom, int]]:
    """Every atom of the template that is true of some of the points and not of all, with a bit for each where it is."""
    names = [name for name in points[0] if len({values[name] for values in points}) > 1]
    words = [name for name in names if any(isinstance(values[name], str) for values in points)]
    for name in names:
        for is_it in (True, False):
            for value in dict.fromkeys(values[name] for values in points):
                choice = ValueAtom(name, value, is_it)
                yield choice, _bits([choice.at(values) for values in points])
    tables = {term: [term.at(values) for values in points] for term in _terms([n for n in names if n not in words])}
    for pairs in _sums(list(tables)):
        sums = [sum(parts) for parts in zip(*([c * n for n in tables[term]] for c, term in pairs), strict=True)]
        for least in sorted(set(sums))[1:]:
            yield SumAtom(pairs, least), _bits([number >= least for number in sums])


def _terms(names: Sequence[str]) -> list[ProductTerm]:
    """The terms over parameters that are numbers, plain ones first."""
    shifted = [ProductTerm(one, other, more) for more in (-1, 1) for one in names for other in names if one != other]
    return [*map(ProductTerm, names), *(ProductTerm(one, other) for one, other in combinations(names, 2)), *shifted]


def _sums(terms: Sequence[ProductTerm]) -> Iterator[tuple[tuple[int, ProductTerm], ...]]:
    """The sums that atoms compare: at most one term is a product, and large coefficients are for two terms."""
    for term in terms:
        yield from (((coefficient, term),) for coefficient in (1, -1))
    for pair in combinations(terms, 2):
        if sum(term.second is not None for term in pair) < 2:
            for one, other in product(COEFFICIENTS, repeat=2):
                if min(abs(one), abs(other)) == 1:
                    yield (one, pair[0]), (other, pair[1])
    for three in combinations(terms, 3):
        if sum(term.second is not None for term in three) < 2:
            yield from (tuple(zip(signs, three, strict=True)) for signs in product((1, -1), repeat=3))


def _bits(marks: Sequence[bool]) -> int:
    return sum(1 << at for at, mark in enumerate(marks) if mark)


# --- the smallest choice


class _Effort:
    """What Z3 may still do."""

    def __init__(self, left: int) -> None:
        self._left = left

    def check(self, solver: z3.Solver) -> z3.CheckSatResult:
        """Z3's answer, unknown when it would take more than is left, or more than one question may."""
        if self._left <= 0:
            return z3.unknown
        before = _spent(solver)
        solver.set("rlimit", min(self._left, QUESTION))
        answer = interrupts.answer(solver)
        self._left -= _spent(solver) - before
        return answer


def _spent(solver: z3.Solver) -> int:
    """What Z3 has done so far, as it counts."""
    statistics = solver.statistics()
    counted = statistics.keys()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in counted else 0


def _any(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """That one of them is true: `z3.Or` for thousands of them, without its conversions of each."""
    context = z3.main_ctx()
    array = (z3.Ast * len(terms))(*[term.ast for term in terms])
    return z3.BoolRef(z3.Z3_mk_or(context.ref(), len(terms), array), context)


def _fewest_clauses(candidates: Sequence[_Candidate], inside: int, outside: int, effort: _Effort) -> Separation:
    """The smallest formulas of as few clauses as the points allow."""
    for clauses in CLAUSES:
        shapes = [_Shape(candidates, inside, outside, clauses, form, effort) for form in (True, False)]
        best: list[Formula] = []
        sure = True
        for shape in shapes:
            found, proved = shape.smallest(min((formula.size for formula in best), default=MOST_SIZE))
            sure &= proved
            if found and best and found[0].size < best[0].size:
                best = []
            best += found
        if best:
            texts = {str(formula): formula for formula in best}
            ordered = [texts[text] for text in sorted(texts, key=lambda text: (len(text), text))]
            return Separation(ordered[0], tuple(ordered[1:]), sure)
        if not sure:
            return Separation(None, because=f"the search for one of {clauses} clauses was given up")
    return Separation(None, because=f"the template has none of up to {CLAUSES[-1]} clauses and size {MOST_SIZE}")


class _Shape:
    """The question to Z3: which atoms make up so many clauses of one form."""

    def __init__(
        self,
        candidates: Sequence[_Candidate],
        inside: int,
        outside: int,
        clauses: int,
        any_clause: bool,
        effort: _Effort,
    ) -> None:
        self._atoms = [atom for atom, _, _ in candidates]
        self._any_clause = any_clause
        self._solver = z3.SolverFor("QF_FD")
        self._solver.set("random_seed", 1)
        self._effort = effort
        self._chosen = [[z3.Bool(f"{clause}-{at}") for at in range(len(candidates))] for clause in range(clauses)]
        # In a disjunction of conjunctions, an atom that is false keeps a point out of its clause: every point inside
        # is let in by some clause, every point outside is kept out of all. The other form is the same of the opposite.
        let_in = {self._stops(at, [truth for _, truth, _ in candidates]) for at in range(inside)}
        kept_out = {self._stops(at, [truth for _, _, truth in candidates]) for at in range(outside)}
        if not any_clause:
            let_in, kept_out = kept_out, let_in
        for number, stops in enumerate(sorted(let_in)):
            through = [z3.Bool(f"through-{clause}-{number}") for clause in range(clauses)]
            # Which clause is the first does not matter: it is the one that lets the first point in.
            self._solver.add(z3.Or(through) if number else through[0])
            for passes, chosen in zip(through, self._chosen, strict=True):
                self._solver.add(z3.Or(z3.Not(passes), z3.Not(_any([chosen[at] for at in stops]))))
        for stops in sorted(kept_out):
            for chosen in self._chosen:
                self._solver.add(_any([chosen[at] for at in stops]))

    def _stops(self, at: int, truths: Sequence[int]) -> tuple[int, ...]:
        """The atoms that decide a clause by themselves at a point: the false ones of a conjunction, or the true ones."""
        return tuple(n for n, truth in enumerate(truths) if bool(truth >> at & 1) is not self._any_clause)

    def smallest(self, at_most: int) -> tuple[list[Formula], bool]:
        """The smallest formulas, up to `ALTERNATIVES`, of this size at most; and whether none that is smaller was missed."""
        weights = [(chosen[at], atom.size) for chosen in self._chosen for at, atom in enumerate(self._atoms)]
        self._solver.add(z3.PbLe(weights, at_most))
        best: list[list[int]] = []
        while (answer := self._effort.check(self._solver)) == z3.sat:
            best = self._taken()
            self._solver.push()
            self._solver.add(z3.PbLe(weights, self._formula(best).size - 1))
        if not best:
            return [], answer == z3.unsat
        self._solver.pop()
        found = [self._formula(best)]
        for _ in range(ALTERNATIVES - 1):
            used = [chosen[at] for chosen, ats in zip(self._chosen, best, strict=True) for at in ats]
            self._solver.add(z3.Not(z3.And(used)), z3.PbLe(weights, found[0].size))
            if self._effort.check(self._solver) != z3.sat:
                break
            best = self._taken()
            found.append(self._formula(best))
        return found, answer == z3.unsat

    def _taken(self) -> list[list[int]]:
        """The atoms of each clause in Z3's answer."""
        model = self._solver.model()
        return [[at for at, one in enumerate(chosen) if z3.is_true(model[one])] for chosen in self._chosen]

    def _formula(self, taken: Sequence[Sequence[int]]) -> Formula:
        clauses = [tuple(sorted((self._atoms[at] for at in ats), key=_order)) for ats in taken]
        return Formula(tuple(sorted(clauses, key=lambda atoms: list(map(_order, atoms)))), self._any_clause)


def _order(atom: Atom) -> tuple[int, str]:
    return atom.size, str(atom)


def _sum(terms: Sequence[tuple[int, ProductTerm]]) -> str:
    return " + ".join(f"{coefficient} * {term}" if coefficient != 1 else str(term) for coefficient, term in terms)
