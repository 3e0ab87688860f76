"""Independent check of a parametric induction: at small sizes its claims are inductive, without quantifiers or axioms.

At values of the free parameters, the claims of a proof, its rules and the initial condition are grounded by
substitution alone (`transform.ground`), so universal conditions are conjunctions and sums are additions. Then a solver
searches for a state that satisfies all claims, and a rule that breaks one. Nothing from the proof about sums, indices
and witnesses is used. The interpreter confirms a state before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from streamproof import interrupts
from streamproof.any.engine.claims import ParametricClaim, inside
from streamproof.any.engine.steps import SAFE
from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.records import dataclass, replace
from streamproof.base.text import parameters_text
from streamproof.symbolic.encoding import Encoding
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.model import Check, Instance, Kind, Property, System
from streamproof.transform.assume import Substitution
from streamproof.transform.constraint import after
from streamproof.transform.ground import Ground, Weight, ground
from streamproof.transform.scalarise import scalarise
from streamproof.transform.unbounded import Parametric

MOST = 6
"""Values of the parameters at which an induction is checked."""
HEAVIEST = 3_000
"""Maximum size of a checked system, in terms (see `Weight`)."""
ALL_TERMS = 6_000
"""Maximum total size, in terms."""
LIMIT = 3_000_000
"""Resource limit of the solver for one system, in its own steps."""
_DEFECT = "one of the two is wrong: a defect of streamproof; please report it with the model"


class NotInductive(StreamproofError):
    """A counterexample to claims proved for every size: a step at one size from a state with all claims to one without."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class _Broken:
    """The condition under which a claim fails: in an initial state, or after the rule with the label `where`."""

    claim: str
    where: str
    condition: Expr


def check_induction(
    parametric: Parametric,
    claims: Sequence[ParametricClaim],
    candidates: Sequence[Mapping[str, int]],
    on_progress: Callable[[str], None] = lambda _: None,
) -> tuple[Mapping[str, int], ...]:
    """Checks that `claims`, together, are inductive at the first and the smallest of some values of the free parameters.

    Returns the values without a counterexample. Raises `NotInductive` at the first one.
    """
    checked: list[Mapping[str, int]] = []
    spent = 0
    for heavy, values in _lightest(parametric, candidates):
        spent += heavy
        if spent > ALL_TERMS or len(checked) == MOST or interrupts.left() <= 0:
            break
        on_progress(f"checking the induction at {parameters_text(values)}")
        try:
            with interrupts.doing("checking the induction"):
                decided = _expect_none(*_obligations(parametric, claims, values), values)
        except interrupts.TimeUp:
            break
        except NotInductive:
            raise
        except StreamproofError:
            continue  # no such finite system, or no leaves
        checked += [values] if decided else []
    return tuple(checked)


def _lightest(
    parametric: Parametric, candidates: Sequence[Mapping[str, int]]
) -> Iterator[tuple[int, Mapping[str, int]]]:
    """The first of the candidates, then the others by size, each with its size."""
    weight = Weight(parametric)
    weighed = [(weight(values), values) for values in candidates]
    for heavy, values in (*weighed[:1], *sorted(weighed[1:], key=lambda pair: pair[0])):
        if heavy <= HEAVIEST:
            yield heavy, values


def _obligations(
    parametric: Parametric, claims: Sequence[ParametricClaim], values: Mapping[str, int]
) -> tuple[System, list[_Broken]]:
    """The system at these values, and its forbidden events."""
    system = ground(parametric, values)
    put = Ground(values)
    said = [replace(c, condition=put(c.condition)) for c in claims]
    assumed = b.and_(c.condition for c in said if not c.step)
    first = [_Broken(c.name, "initially", b.and_((system.initially, b.not_(c.condition)))) for c in said if not c.step]
    rules = [
        replace(one, condition=b.and_((assumed, one.condition)))
        for instance in system.instances
        for one in _breaking(system, instance, said)
    ]
    return system, [one for one in (*first, *rules) if one.condition is not b.FALSE]


def _breaking(system: System, instance: Instance, claims: Sequence[ParametricClaim]) -> Iterator[_Broken]:
    """The claims that one rule may break."""
    guard = b.and_(c.expr for c in instance.guard)
    label = f"after {instance.label}"
    sorts = {v.name: v.sort for v in system.variables}
    written: dict[Expr, Expr] = {b.var(name, sorts[name]): term for name, term in instance.updates}
    leaving = (b.not_(inside(term, sorts[name], 0)) for name, term in instance.updates)
    wrong = b.and_((guard, b.or_((_some(instance.effect_checks), *leaving))))
    yield _Broken(SAFE, label, b.or_((_some(instance.guard_checks), wrong)))
    changed = {name for name, _ in instance.updates}
    for c in claims:
        if c.step:
            yield _Broken(c.name, label, b.and_((guard, b.not_(after(system, instance)(c.condition)))))
        elif e.variables(c.condition) & changed:
            yield _Broken(c.name, label, b.and_((guard, b.not_(Substitution(written)(c.condition)))))


def _some(checks: Sequence[Check]) -> Expr:
    return b.or_(c.condition for c in checks)


def _expect_none(system: System, broken: Sequence[_Broken], values: Mapping[str, int]) -> bool:
    """Whether the solver proves that no claim is broken. Raises `NotInductive` if the interpreter confirms a
    counterexample, or if solver and interpreter disagree on its state."""
    bad = b.or_(one.condition for one in broken)
    query = Property("query", Kind.INVARIANT, bad)
    scalar = scalarise(replace(system, actions=(), properties=(query,), lemmas=(), initially=b.TRUE, terminal=None))
    encoding = Encoding(scalar, integers=True)
    import z3

    solver: Any = z3.Solver(ctx=encoding.ctx)
    solver.set("rlimit", LIMIT)
    formulas = [encoding.wellformed, encoding.term(scalar.system.property("query").expr)]
    solver.add(*(encoding.at(formula, 0) for formula in formulas))
    answer = interrupts.answer(solver)
    if answer != z3.sat:
        return bool(answer == z3.unsat)
    state = scalar.decode(encoding.state(solver.model(), 0))
    interpreter = Interpreter(system)
    for one in broken:
        if interpreter.value(one.condition, state):
            raise NotInductive(
                f"{one.claim} was proved for every size by induction, and is not inductive at {parameters_text(values)}:"
                f" it fails {one.where}",
                remedy=_DEFECT,
            )
    raise NotInductive(
        f"checking the induction at {parameters_text(values)}, the solver found a state that the interpreter refutes",
        remedy=_DEFECT,
    )
