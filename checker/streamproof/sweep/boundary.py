"""The smallest formula over parameters that separates the points where a property holds from those where it does not.

The formula is a disjunction of conjunctions, or a conjunction of disjunctions, of *atoms*. An atom compares a sum of up
to three terms with a constant; a term is a parameter or a product of two, ``(a - 1) * b`` or ``(a + 1) * b``, with a
small coefficient. Other atoms state that a parameter equals, or differs from, one value. All atoms are enumerated and
evaluated on the points; Z3 selects the atoms of a formula with one clause, two clauses and so on, then minimises its
size.

The formula agrees with every given point and generalises from them; it is not a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

import z3

from streamproof import interrupts
from streamproof.base.errors import UsageError
from streamproof.base.records import dataclass
from streamproof.symbolic.solver import steps_of

Value: TypeAlias = int | str | None
Values: TypeAlias = Mapping[str, Value]

CLAUSES = (1, 2, 3, 4)
MOST_SIZE = 24
"""Maximum size of a formula, in parameters, values and numbers: a longer one merely lists points."""
ALTERNATIVES = 8
"""Maximum number of alternative formulas of the same size, per form."""
COEFFICIENTS = (1, -1, 2, -2, 3, -3)
QUESTION = 2_000_000
"""Z3 resource limit for one query; a resource count makes the result independent of the machine's speed."""
EFFORT = 10_000_000
"""Z3 resource limit for all queries about one formula: some seconds."""


@dataclass(frozen=True, slots=True)
class ProductTerm:
    """A parameter, ``first``, or the product ``(first + more) * second``."""

    first: str
    second: str | None = None
    more: int = 0

    @property
    def size(self) -> int:
        """The number of parameters and constants, plus one for a product, so that linear terms come first."""
        return 1 if self.second is None else 3 + bool(self.more)

    def at(self, values: Values) -> int:
        """The value of the term."""
        number = int(values[self.first] or 0) + self.more
        return number if self.second is None else number * int(values[self.second] or 0)

    def __str__(self) -> str:
        first = f"({self.first} {'+' if self.more > 0 else '-'} {abs(self.more)})" if self.more else self.first
        return first if self.second is None else f"{first} * {self.second}"


@dataclass(frozen=True, slots=True)
class SumAtom:
    """An atom: the linear combination of the terms is at least `least`."""

    terms: tuple[tuple[int, ProductTerm], ...]
    least: int

    @property
    def size(self) -> int:
        """The number of parameters and constants in its text."""
        written = sum(term.size + (abs(coefficient) != 1) for coefficient, term in self.terms)
        _, _, number = self._sides()
        return written + (number != 0 or len(self.terms) == 1)

    def at(self, values: Values) -> bool:
        """Whether the atom is true."""
        return sum(coefficient * term.at(values) for coefficient, term in self.terms) >= self.least

    def _sides(self) -> tuple[list[tuple[int, ProductTerm]], str, int]:
        """The left-hand terms, the sign, and the right-hand constant, after moving negative terms to the right."""
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
        # Constants are placed on the side where they are added.
        more = f" + {-number}" if number < 0 and right else ""
        shown = [_sum(right)] if right else []
        if number > 0 or not right:
            shown.append(str(number))
        return f"{_sum(left)}{more} {sign} {' + '.join(shown)}"


@dataclass(frozen=True, slots=True)
class ValueAtom:
    """An atom: a parameter equals, or differs from, a value."""

    name: str
    value: Value
    is_it: bool

    @property
    def size(self) -> int:
        """The size of its text, plus one for a number: comparisons come first, because they generalise to other numbers."""
        return 2 if isinstance(self.value, str) else 3

    def at(self, values: Values) -> bool:
        """Whether the atom is true."""
        return (values[self.name] == self.value) is self.is_it

    def __str__(self) -> str:
        return f"{self.name} {'==' if self.is_it else '!='} {self.value}"


Atom: TypeAlias = SumAtom | ValueAtom


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of `clauses` of atoms: in disjunctive normal form if `any_clause`, else in conjunctive normal form."""

    clauses: tuple[tuple[Atom, ...], ...]
    any_clause: bool = True

    @property
    def size(self) -> int:
        """The number of parameters, operators and numbers in its text."""
        return sum(atom.size for clause in self.clauses for atom in clause)

    def at(self, values: Values) -> bool:
        """Whether the formula is true for these parameter values."""
        outer, inner = (any, all) if self.any_clause else (all, any)
        return outer(inner(atom.at(values) for atom in clause) for clause in self.clauses)

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
    """The result: the formula, or None and the reason.

    `others` are equally small formulas that also agree; `smallest`: minimality was proved.
    """

    formula: Formula | None
    others: tuple[Formula, ...] = ()
    smallest: bool = False
    because: str = ""


def separate(points: Sequence[tuple[Values, bool]], effort: int = EFFORT) -> Separation:
    """The smallest formula with the fewest clauses that is true at the points marked True and false at the others.

    Numbers are compared, texts only tested for equality. Raises `UsageError` if one point has both marks, or if all
    points have the same mark.
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
        # The Z3 query uses tables of atoms and points; this checks the formula itself on the points.
        if any(formula.at(values) is not mark for values, mark in points):
            raise AssertionError(f"{formula} does not agree with its points")
    return found


# --- atoms


_Candidate: TypeAlias = tuple[Atom, int, int]
"""An atom with the sets, as bit masks, of the inside points and the outside points where it is true."""


def _useful(inside: Sequence[Values], outside: Sequence[Values]) -> list[_Candidate]:
    """The atoms that a smallest formula can need.

    Formulas contain no negation: an atom that is true at more inside points and fewer outside points than another, and
    no larger, can replace it everywhere.
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
    """Every atom that is true at some but not all of the points, with its bit mask."""
    names = [name for name in points[0] if len({values[name] for values in points}) > 1]
    words = [name for name in names if any(isinstance(values[name], str | None) for values in points)]
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
    """The terms over numeric parameters, single parameters first."""
    shifted = [ProductTerm(one, other, more) for more in (-1, 1) for one in names for other in names if one != other]
    return [*map(ProductTerm, names), *(ProductTerm(one, other) for one, other in combinations(names, 2)), *shifted]


def _sums(terms: Sequence[ProductTerm]) -> Iterator[tuple[tuple[int, ProductTerm], ...]]:
    """The sums that atoms compare: at most one product per sum, and large coefficients for two terms only."""
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


# --- minimisation


class _Effort:
    """The remaining resource limit of Z3."""

    def __init__(self, left: int) -> None:
        self._left = left

    def check(self, solver: z3.Solver) -> z3.CheckSatResult:
        """Z3's answer; unknown if the query would exceed its own or the remaining total limit."""
        if self._left <= 0:
            return z3.unknown
        before = steps_of(solver)
        solver.set("rlimit", min(self._left, QUESTION))
        answer = interrupts.answer(solver)
        self._left -= steps_of(solver) - before
        return answer


def _any(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """A disjunction: `z3.Or` for thousands of operands, without its conversion of each."""
    context = z3.main_ctx()
    array = (z3.Ast * len(terms))(*[term.ast for term in terms])
    return z3.BoolRef(z3.Z3_mk_or(context.ref(), len(terms), array), context)


def _fewest_clauses(candidates: Sequence[_Candidate], inside: int, outside: int, effort: _Effort) -> Separation:
    """The smallest formulas with the fewest clauses."""
    for clauses in CLAUSES:
        shapes = [_FormulaShape(candidates, inside, outside, clauses, form, effort) for form in (True, False)]
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


class _FormulaShape:
    """The Z3 query for atoms of a formula with a given number of clauses and form."""

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
        # In disjunctive form, an atom that is false excludes a point from its clause: every inside point is admitted by
        # some clause, every outside point is excluded by all. The other form is the dual.
        let_in = {self._stops(at, [truth for _, truth, _ in candidates]) for at in range(inside)}
        kept_out = {self._stops(at, [truth for _, _, truth in candidates]) for at in range(outside)}
        if not any_clause:
            let_in, kept_out = kept_out, let_in
        for number, stops in enumerate(sorted(let_in)):
            through = [z3.Bool(f"through-{clause}-{number}") for clause in range(clauses)]
            # Symmetry breaking: the first clause is one that admits the first point.
            self._solver.add(z3.Or(through) if number else through[0])
            for passes, chosen in zip(through, self._chosen, strict=True):
                self._solver.add(z3.Or(z3.Not(passes), z3.Not(_any([chosen[at] for at in stops]))))
        for stops in sorted(kept_out):
            for chosen in self._chosen:
                self._solver.add(_any([chosen[at] for at in stops]))

    def _stops(self, at: int, truths: Sequence[int]) -> tuple[int, ...]:
        """The atoms that decide a clause at a point: the false ones of a conjunction, or the true ones of a disjunction."""
        return tuple(n for n, truth in enumerate(truths) if bool(truth >> at & 1) is not self._any_clause)

    def smallest(self, at_most: int) -> tuple[list[Formula], bool]:
        """The smallest formulas up to a size, at most `ALTERNATIVES`; and whether minimality was proved."""
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
        """The atoms of each clause in Z3's model."""
        model = self._solver.model()
        return [[at for at, one in enumerate(chosen) if z3.is_true(model[one])] for chosen in self._chosen]

    def _formula(self, taken: Sequence[Sequence[int]]) -> Formula:
        clauses = [tuple(sorted((self._atoms[at] for at in ats), key=_order)) for ats in taken]
        return Formula(tuple(sorted(clauses, key=lambda atoms: list(map(_order, atoms)))), self._any_clause)


def _order(atom: Atom) -> tuple[int, str]:
    return atom.size, str(atom)


def _sum(terms: Sequence[tuple[int, ProductTerm]]) -> str:
    return " + ".join(f"{coefficient} * {term}" if coefficient != 1 else str(term) for coefficient, term in terms)
