"""The queries of an induction: the initial states, and one step of each rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from streamproof.any.engine.claims import ParametricClaim, well_formed
from streamproof.any.engine.question import Question, in_range, touched
from streamproof.any.engine.values import SymbolicView, Universe
from streamproof.symbolic.solver import Solver, SolverAnswer, SolverBudget, checked
from streamproof.symbolic.theory import Term
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Instance
from streamproof.system.sorts import TermRange
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import BINDING, Forall, Parametric, Tabulated, Total, any_length
from streamproof.transform.unbounded import total as sum_of

SAFE = "no evaluation error"
"""The name of the claim that the model makes no error and every value stays in its sort."""


class SwitchedSolver:
    """A solver with switchable assumptions and switchable goals."""

    def __init__(self, universe: Universe, budget: SolverBudget, instance: Instance | None) -> None:
        self.universe = universe
        self.instance = instance
        self.indices: Sequence[Term] = ()
        self.before: SymbolicView
        self.after: SymbolicView | None = None
        self._budget = budget
        self.solver = Solver(universe, budget)
        self.reasons: list[tuple[Term, str]] = []
        """The possible errors of the model, each with its description."""

    def load(self, facts: Sequence[Term], assumed: Mapping[str, Term], goals: Mapping[str, Term]) -> None:
        """The facts, the switchable assumptions, and the formula that breaks each goal."""
        self._facts, self._assumed, self._goals = facts, assumed, goals
        self.solver.add(*facts)
        self._assuming = {name: self.solver.given(f"assume {name}", formula) for name, formula in assumed.items()}
        self._breaking = {name: self.solver.given(f"break {name}", formula) for name, formula in goals.items()}

    def broken(self, goals: Collection[str], assuming: Collection[str]) -> tuple[SolverAnswer, list[str]]:
        """Whether one of the goals can be false under the assumptions `assuming`, and which are false in the model."""
        query = [g for g in goals if g in self._goals]
        if not query:
            return SolverAnswer.NO, []
        switches = [self._assuming[a] for a in assuming if a in self._assuming]
        answer = self.solver.check(self.universe.any_of(self._breaking[g] for g in query), switches)
        if answer is not SolverAnswer.YES:
            return answer, []
        return answer, [g for g in query if self.solver.true(self._goals[g])]

    def excluding(self, names: Iterable[str]) -> str | None:
        """The first of `names` whose assumption would have excluded the last model."""
        for name in names:
            formula = self._assumed.get(name)
            if formula is not None and self.universe.z3.is_false(
                self.solver.model.eval(formula, model_completion=True)
            ):
                return name
        return None

    def shown(self, goal: str, using: Sequence[str]) -> bool:
        """Whether one query in a new solver proves `goal` from the claims `using`.

        A goal that this query cannot break is not checked.
        """
        if goal not in self._goals:
            return True
        solver = self.universe.z3.Solver(ctx=self.universe.ctx)
        solver.add(*self._facts, *(self._assumed[n] for n in using if n in self._assumed), self._goals[goal])
        return checked(solver, self._budget, ()) is SolverAnswer.NO


class StepQuestions:
    """The queries of one system for one set of claims.

    The state before a step is the same for all rules, and so are the names of their parameters (numbered by sort), so
    that the assumptions about it are generated once.
    """

    def __init__(self, parametric: Parametric, claims: Sequence[ParametricClaim], budget: SolverBudget) -> None:
        self.parametric = parametric
        self._claims = claims
        self._budget = budget
        self._formed = well_formed(parametric)
        self._universe = Universe()
        self._start = self._view(self._universe)
        self._question = Question(self._universe, budget.allowance)
        self._mention_firsts(self._question, self._start)
        self._question.mentioned(self._start, *(c.condition for c in claims))
        self._steps = [_RuleStep(self, i) for i in parametric.system.instances]
        for step in self._steps:
            self._question.mentioned(step.before, *(c.condition for c in claims if c.step))
        for claim in claims:  # generates the witnesses, at which everything is assumed from then on
            if not claim.step or self._steps:
                view = self._steps[0].before if claim.step else self._start
                self._question.denied(view, claim.condition, "goal")
        self._question.denied(self._start, self._formed, "goal")
        self._question.about_conditions(self._start, *(step.before for step in self._steps))
        self._shared = [*self._limits(self._start), self._question.assumed(self._start, self._formed)]
        self._assumed = {c.name: self._question.assumed(self._start, c.condition) for c in claims if not c.step}

    def first(self) -> SwitchedSolver:
        """The base case: which state claims are false in an initial state."""
        universe = Universe()
        query = SwitchedSolver(universe, self._budget, None)
        view = query.before = self._view(universe)
        question = Question(universe, self._budget.allowance)
        self._mention_firsts(question, view)
        question.mentioned(view, *(c.condition for c in self._claims if not c.step))
        states = {c.name: c.condition for c in self._claims if not c.step}
        for _ in range(2):  # the first pass generates the witnesses that the second pass uses
            facts = [*self._limits(view), question.assumed(view, self.parametric.initial)]
            goals = {name: question.denied(view, condition, "goal") for name, condition in states.items()}
            goals[SAFE] = question.denied(view, self._formed, "goal")
            facts += self._first_sums(view)
            facts += question.about_conditions(view)
        query.indices = question.indices
        query.load([*facts, *question.about_sums(view, formed=False)], {}, goals)
        return query

    def begins(self) -> SolverAnswer:
        """Whether there is an initial state, at some values of the free parameters; "yes" may be due to a missing instance of
        an assumption."""
        first = self.first()
        return first.solver.check(first.universe.truth(True), [])

    def each(self) -> list[SwitchedSolver]:
        """The inductive step of each rule: which claims it breaks if the state claims hold before it."""
        return [step.query() for step in self._steps]

    # --- views

    def _view(self, universe: Universe) -> SymbolicView:
        """A state, and values for the parameters of every rule."""
        system = self.parametric.system
        names = {v.name: universe.fresh(v.name, v.sort, v.loc) for v in system.variables}
        names |= {f.name: universe.fresh(f.name, f.sort) for f in self.parametric.free}
        shared: dict[tuple[object, int], Term] = {}
        for instance in system.instances:
            for at, v in enumerate(_parameters(instance)):
                if (v.sort, at) not in shared:
                    shared[v.sort, at] = universe.fresh(v.name.rpartition(".")[2], v.sort)
                names[v.name] = shared[v.sort, at]
        return SymbolicView(universe, names)

    def _mention_firsts(self, question: Question, view: SymbolicView) -> None:
        """The first index of every array of unbounded length; it exists if the array is not empty."""
        for v in self.parametric.system.variables:
            sort = v.sort
            while any_length(sort):
                assert isinstance(sort.index, TermRange)
                question.mention(view.value(sort.index.least), sort.index)
                sort = sort.element

    def _limits(self, view: SymbolicView) -> list[Term]:
        found = []
        for f in self.parametric.free:
            value = view.names[f.name]
            found += [] if f.least is None else [value >= f.least]
            found += [] if f.most is None else [value <= f.most]
        return found

    # --- sums

    def _first_sums(self, view: SymbolicView) -> list[Term]:
        """A sum whose summands are equal initially is the number of indices times the summand."""
        facts = list(_uniform(self.parametric.initial))
        found = []
        for total, value in list(view.totals.items()):
            body = _at_first(total, facts)
            sort = total.bound.sort
            if body is not None and isinstance(sort, TermRange):
                count = view.value(sort.most) - view.value(sort.least) + 1
                many = view.universe.z3.If(count > 0, count, 0)
                part = view.value(body)
                zero = view.universe.z3.is_int_value(part) and part.as_long() == 0
                found.append(value == 0 if zero else value == many * part)
        return found


class _RuleStep:
    """One rule in the queries of a system."""

    def __init__(self, steps: StepQuestions, instance: Instance) -> None:
        self._steps = steps
        self._instance = instance
        start, universe, question = steps._start, steps._universe, steps._question
        changed = {name: start.value(term) for name, term in instance.updates}
        self.after = SymbolicView(universe, {**start.names, **changed})
        self.before = SymbolicView(universe, start.names, self.after)
        self._guard = b.and_(c.expr for c in instance.guard)
        self._wrong = b.or_(c.condition for c in instance.effect_checks)
        self._early = b.or_(c.condition for c in instance.guard_checks)
        for v in _parameters(instance):
            question.mention(start.names[v.name], v.sort)
        question.mentioned(start, self._guard, self._wrong, self._early, *(term for _, term in instance.updates))
        self._conditions()

    def _conditions(self) -> tuple[Term, Term, Term]:
        """The rule is enabled; its effect is an error; evaluating its guard is an error."""
        question = self._steps._question
        return (
            question.assumed(self.before, self._guard),
            question.assumed(self.before, self._wrong),
            question.assumed(self.before, self._early),
        )

    def query(self) -> SwitchedSolver:
        """The query for this rule."""
        steps, instance, before, after = self._steps, self._instance, self.before, self.after
        universe, question, z3 = steps._universe, steps._question, steps._universe.z3
        query = SwitchedSolver(universe, steps._budget, instance)
        query.before, query.after, query.indices = before, after, question.indices
        facts = [*steps._shared, *(in_range(before, v.sort, before.names[v.name]) for v in _parameters(instance))]
        taken, wrong, early = self._conditions()
        written = {name for name, _ in instance.updates}
        goals = {}
        for c in steps._claims:
            if c.step or e.variables(c.condition) & written:  # claims about unchanged variables remain true
                denied = question.denied(before if c.step else after, c.condition, "goal")
                goals[c.name] = z3.And(taken, denied)
        leaving = question.denied(after, steps._formed, "goal")
        goals[SAFE] = z3.Or(z3.And(taken, z3.Or(leaving, wrong)), early)
        query.reasons = [
            (question.assumed(before, c.condition), c.message + (f" ({c.loc.short})" if c.loc else ""))
            for c in (*instance.guard_checks, *instance.effect_checks)
        ]
        facts += question.about_conditions(steps._start, before, after)
        facts += self._following_sums()
        facts += [before.total(t) == steps._start.total(t) for t in self._sums()]
        facts += self._changed_sums()
        query.load([*facts, *question.about_sums(steps._start, formed=True)], steps._assumed, goals)
        return query

    def _sums(self) -> list[Total]:
        """The sums in the query, over one state each."""
        return [t for t in {**self.before.totals, **self.after.totals} if not _reads_next(t)]

    def _following_sums(self) -> list[Term]:
        """Relates the sums over the state after the step to that state."""
        variables = self._steps.parametric.system.index
        found = []
        for total in list(self.before.totals):
            parts = list(e.subterms(total.body))
            if any(isinstance(t, BINDING) for t in parts):
                continue
            if _reads_next(total) and not any(isinstance(t, e.Var) and t.name in variables for t in parts):
                now: dict[Expr, Expr] = {t: b.var(t.name, t.sort) for t in parts if isinstance(t, e.Next)}
                same = sum_of(total.bound, Substitution(now)(total.body))
                found.append(self.before.total(total) == self.after.value(same))
        return found

    def _changed_sums(self) -> list[Term]:
        """A sum changes by the differences at the written indices, if its summands read nothing else that is written."""
        question, instance, before, after = self._steps._question, self._instance, self.before, self.after
        written = dict(instance.updates)
        found = []
        for total in self._sums():
            change = question.universe.number(0)
            changed = sorted(e.variables(total.body) & written.keys())
            indices = [touched(before, name, written[name]) if _local(total, name) else None for name in changed]
            if None in indices:
                whole = _of_tables(total, {name: written[name] for name in changed})
                found += [] if whole is None else [after.total(total) == before.value(whole)]
                continue
            for difference in self._differences(total, [index for at in indices for index in at or ()]):
                change = change + difference
            found.append(after.total(total) == before.total(total) + change)
        return found

    def _differences(self, total: Total, indices: Sequence[Term]) -> Iterator[Term]:
        """The change of the summand at each index; an index that occurs twice counts once."""
        question, z3 = self._steps._question, self._steps._universe.z3
        different: list[Term] = []
        for index in indices:
            if not any(index.eq(known) for known in different):
                different.append(index)
        for at, index in enumerate(different):
            earlier = [index == other for other in different[:at]]
            here = z3.And(in_range(self.before, total.bound.sort, index), *(z3.Not(same) for same in earlier))
            part = question.part(self.after, total, index) - question.part(self.before, total, index)
            yield z3.If(here, part, 0)


def _parameters(instance: Instance) -> list[e.Var]:
    """The numeric parameters of a rule."""
    return [v for _, v in instance.args if isinstance(v, e.Var)]


def _reads_next(total: Total) -> bool:
    return any(isinstance(t, e.Next) for t in e.subterms(total.body))


def _local(total: Total, name: str) -> bool:
    """Whether a summand reads the variable called `name` only as an array, at the index of the sum."""
    terms = list(e.subterms(total.body))
    if any(isinstance(t, Forall | Total) and t.bound is total.bound for t in terms):
        return False  # an inner binding shadows the index
    reads = [(t, child) for t in terms for child in e.children(t) if isinstance(child, e.Var) and child.name == name]
    return bool(reads) and all(
        isinstance(t, e.Select) and child is t.array and t.index is total.bound for t, child in reads
    )


def _of_tables(total: Total, written: Mapping[str, Expr]) -> Expr | None:
    """A sum over the state after a step, in terms of the state before, if all of its arrays are written as a whole."""
    elements: dict[Expr, Expr] = {}
    for name, table in written.items():
        if not isinstance(table, Tabulated) or not _local(total, name) or table.bound.sort != total.bound.sort:
            return None
        if any(isinstance(t, BINDING) for t in e.subterms(table.body, total.body)):
            return None
        element = Substitution({table.bound: total.bound})(table.body)
        elements[b.select(b.var(name, table.sort), total.bound)] = element
    if not all(read in {*e.subterms(total.body)} for read in elements):
        return None
    return sum_of(total.bound, Substitution(elements)(total.body))


def _uniform(initial: Expr) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Terms with the same initial value at every index: the index, the term at it, and the value."""
    for part in initial.args if isinstance(initial, e.And) else (initial,):
        if not isinstance(part, Forall):
            continue
        bound = part.bound
        for fact in part.body.args if isinstance(part.body, e.And) else (part.body,):
            match fact:
                case e.Not(arg=term):
                    value: Expr = b.FALSE
                case e.Eq(left=left, right=right):
                    term, value = (right, left) if e.variables(right) & e.variables(bound) else (left, right)
                case term:
                    value = b.TRUE
            nested = any(isinstance(t, Forall | Total) for t in e.subterms(term))
            if not nested and not e.variables(value) & e.variables(bound):
                yield bound, term, value


def _at_first(total: Total, facts: Sequence[tuple[Expr, Expr, Expr]]) -> Expr | None:
    """The initial summand, without the index; None if it is unknown. `facts`: see `_uniform`."""
    if any(isinstance(t, Forall | Total) for t in e.subterms(total.body)):
        return None
    known: dict[Expr, Expr] = {}
    for bound, term, value in facts:
        if bound.sort == total.bound.sort:
            known[Substitution({bound: total.bound})(term)] = value
    body = Substitution(known)(total.body)
    return None if e.variables(body) & e.variables(total.bound) else body
