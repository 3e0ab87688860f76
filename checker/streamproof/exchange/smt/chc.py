"""Constrained Horn clauses: per property, a script that is satisfiable exactly if the system is safe, for Spacer and
Eldarica.

`reach` is any set of states that contains the initial states and is closed under steps. If one excludes the bad states,
the solver answers ``sat``: an inductive invariant exists, for behaviours of any length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamproof.base.files import GENERATOR
from streamproof.base.records import dataclass
from streamproof.exchange.smt.terms import Scalar, SmtTerms, declared, meanings, remark, sort_name, symbol
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind, System
from streamproof.system.verdict import Verdict

MISTAKE = "mistake_of_the_model"
"""The script for the absence of model errors."""


@dataclass(frozen=True, slots=True)
class Clauses:
    """The scripts for each supported property, and for model errors, by name."""

    texts: Mapping[str, str]
    kinds: Mapping[str, Kind]
    """The kinds of the properties; the script about model errors has none."""
    left_out: tuple[str, ...]


def chc(system: System) -> Clauses:
    """One script of Horn clauses per state or step property. Raises `TooLarge` if a state has too many components."""
    scalar = Scalar(system)
    kinds: dict[str, Kind] = {}
    texts: dict[str, str] = {}
    for event in scalar.events():
        bad = b.or_((event.shown, event.wrong))
        kinds[event.prop.name] = event.prop.kind
        texts[event.prop.name] = _script_text(scalar, event.prop.name, bad, of_steps=event.prop.kind is Kind.STEP)
    texts[MISTAKE] = _script_text(scalar, MISTAKE, scalar.mistake, of_steps=False)
    left_out = tuple(p.name for p in system.properties if p.name not in kinds)
    return Clauses(texts, kinds, left_out)


def read(clauses: Clauses, answers: Mapping[str, str]) -> dict[str, Verdict]:
    """The verdicts for a solver's answers, ``sat``, ``unsat`` or ``unknown`` by name of the script.

    Behaviours end at a model error, so nothing is proved unless there is none; a bad state is a violation or an
    evaluation error of the property, which these scripts do not distinguish.
    """
    safe = answers.get(MISTAKE) == "sat"
    found: dict[str, Verdict] = {}
    for name, kind in clauses.kinds.items():
        bad, good = (Verdict.HOLDS, Verdict.VIOLATED) if kind is Kind.REACHABLE else (Verdict.VIOLATED, Verdict.HOLDS)
        match answers.get(name):
            case "unsat":
                found[name] = bad
            case "sat" if safe:
                found[name] = good
            case _:
                found[name] = Verdict.INCONCLUSIVE
    return found


def _script_text(scalar: Scalar, name: str, bad: Expr, *, of_steps: bool) -> str:
    return "\n".join((*_lines(scalar, name, bad, of_steps=of_steps), ""))


def _lines(scalar: Scalar, name: str, bad: Expr, *, of_steps: bool) -> Iterator[str]:
    """The clauses: initial states are reached, successors of reached states are reached, and no bad state is reached."""
    terms = SmtTerms(symbol, lambda name: symbol(f"{name}'"))
    bound = declared([(symbol(v.name), v.sort) for v in scalar.variables])
    here = f"(reach {' '.join(symbol(v.name) for v in scalar.variables)})"
    yield remark(f"{scalar.original.heading}, {GENERATOR} export")
    yield remark(f"{name}: sat, nothing bad is reached; unsat, something is")
    yield from meanings(scalar)
    yield "(set-logic HORN)"
    yield f"(declare-fun reach ({' '.join(sort_name(v.sort) for v in scalar.variables)}) Bool)"
    yield f"(assert (forall ({bound}) (=> {terms.text(scalar.initial)} {here})))"
    fine = b.not_(scalar.mistake)
    for instance in scalar.system.instances:
        written = dict(instance.updates)
        taken = b.and_((scalar.guard(instance), fine))
        yield remark(instance.label)
        after = " ".join(terms.text(written.get(v.name, b.var(v.name, v.sort))) for v in scalar.variables)
        yield f"(assert (forall ({bound}) (=> (and {here} {terms.text(taken)}) (reach {after}))))"
        if of_steps:
            broken = b.and_((taken, scalar.stepped(bad, instance)))
            yield f"(assert (forall ({bound}) (=> (and {here} {terms.text(broken)}) false)))"
    if not of_steps:
        yield f"(assert (forall ({bound}) (=> (and {here} {terms.text(bad)}) false)))"
    yield "(check-sat)"
