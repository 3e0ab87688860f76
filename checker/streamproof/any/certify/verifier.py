"""The verifier for proofs for every parameter value: it generates its own obligations, discharged by Z3 and cvc5.

The caller gives the parametric system that the header names. The evidence has the free parameters; the names of the
written lemmas and the discovered lemmas as data (`formulas`); and the obligations. Claims are numbered: 0 is that no
evaluation error occurs and every value stays in its sort (`obligations.SAFE`), then come the properties, the written
lemmas and the discovered ones. Each obligation names its claim, its rule (null: the initial states) and the assumed
claims, and has the instantiation terms and the SMT-LIB script. The verifier generates all obligations of these claims
again, which must equal those in the file byte for byte. Then two solvers, each in a separate process, must find every
script unsatisfiable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamproof.any.certify.formulas import condition_of, readable
from streamproof.any.certify.obligations import (
    SAFE,
    CertifiedClaim,
    ProofObligation,
    claim_of,
    expect_distinct_names,
    expected,
)
from streamproof.any.certify.ranks import claimed
from streamproof.any.certify.solvers import ERROR, PATIENCE, SAT, UNKNOWN, UNSAT, present, solve
from streamproof.base.errors import Exit, StreamproofError, reject
from streamproof.base.reading import MOST_EVIDENCE
from streamproof.base.records import dataclass, replace
from streamproof.base.unpacking import malformed
from streamproof.certify.verifier import parse
from streamproof.system.fingerprint import fingerprint
from streamproof.system.verdict import Verdict
from streamproof.transform.unbounded import Parametric

EVIDENCE = {"free", "lemmas", "discovered", "obligations"}
RANKED = {"free", "proofs"}
"""The parts of the evidence for temporal properties."""
PARTS = {"claim", "rule", "needs", "terms", "text"}


class SolversDisagree(StreamproofError):
    """Two solvers, or a proof and its certificate, contradict each other."""

    exit_code = Exit.DISAGREE


@dataclass(frozen=True, slots=True)
class Discharged:
    """One obligation: the names of its claim, its rule (None: the initial states) and the claims that it needs.

    `answers` has the answer of each solver; `text` is the script.
    """

    claim: str
    rule: str | None
    needs: tuple[str, ...]
    terms: int
    text: str
    answers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """The contents of an accepted certificate. `lemmas`: the written and discovered lemmas by name, as text."""

    header: dict[str, Any]
    free: tuple[tuple[str, int | None, int | None], ...]
    lemmas: tuple[tuple[str, str], ...]
    obligations: tuple[Discharged, ...]
    solvers: Mapping[str, str]
    """The version of each solver."""
    ranks: tuple[tuple[str, str], ...] = ()
    """Temporal properties, each with a rank that proves it, or a conjunct of it."""

    @property
    def by_one(self) -> tuple[Discharged, ...]:
        """The obligations that one of several solvers could not decide."""
        return tuple(o for o in self.obligations if UNKNOWN in o.answers.values())


def system_fingerprint(parametric: Parametric) -> str:
    """The fingerprint of a parametric system with its initial condition and its free parameters."""
    system = replace(parametric.system, initially=parametric.initial)
    return fingerprint(system, *(f"free {f.name} {f.least} {f.most}" for f in parametric.free))


def verify_any(
    data: bytes,
    parametric_of: Callable[[Any], Parametric],
    report: Callable[[str], None],
    *,
    seconds: float | None = None,
    solvers: Sequence[str] = ("z3", "cvc5"),
    most: int = MOST_EVIDENCE,
) -> Shown:
    """Verifies a certificate. Solvers in `solvers` that are not installed are skipped.

    Raises `Rejected`, and `SolversDisagree` if one solver finds a script satisfiable and another one unsatisfiable.
    """
    try:
        header, evidence = parse(data, EVIDENCE, RANKED, most=most)
        parametric = parametric_of(header)
        if system_fingerprint(parametric) != header["fingerprint"]:
            reject(f"it is of another {parametric.system.name} than this one: the model or its parameters have changed")
        expect_holds(parametric, header, evidence)
        if "proofs" in evidence:
            lemmas, made, ranks = ranked(parametric, header, evidence, report)
        else:
            claims = stated(parametric, header, evidence)
            made = remade(parametric, claims, expected(parametric, claims), evidence["obligations"], report)
            lemmas, ranks = _lemmas(claims[1 + len(header["claims"]) :]), []
        header["constraint"] = None if parametric.system.constraint is None else parametric.system.constraint.text
    except StreamproofError:
        raise
    except Exception as error:  # whatever the error, nothing is proved
        reject(malformed(error))
    texts = [one.text for one in made]
    solved = [solve(solver, texts, report, seconds or PATIENCE) for solver in solvers if present(solver)]
    done = tuple(replace(one, answers={by.solver: by.answers[at] for by in solved}) for at, one in enumerate(made))
    decide(done)
    free = tuple((f.name, f.least, f.most) for f in parametric.free)
    return Shown(header, free, tuple(lemmas), done, {by.solver: by.version for by in solved}, tuple(ranks))


def _lemmas(claims: Sequence[CertifiedClaim]) -> list[tuple[str, str]]:
    return [(claim.name, readable(claim.condition)) for claim in claims]


def ranked(
    parametric: Parametric, header: Any, evidence: Any, report: Callable[[str], None]
) -> tuple[list[tuple[str, str]], list[Discharged], list[tuple[str, str]]]:
    """The lemmas, the obligations and the ranks of a certificate of temporal properties. Raises `Rejected`."""
    lemmas: dict[tuple[str, str], None] = {}
    made, ranks = list[Discharged](), list[tuple[str, str]]()
    for number, (name, of, data) in enumerate(claimed(parametric, [*header["claims"]], evidence["proofs"]), start=1):
        end = len(of.claims) - len(data["lemmas"]) - len(data["discovered"])
        lemmas |= dict.fromkeys(_lemmas(of.claims[end:]))
        wanted = expected(of.parametric, of.claims)
        some = remade(of.parametric, of.claims, wanted, data["obligations"], report)
        some += remade(of.helping, of.known, of.steps, data["decreases"], report)
        several = f" ({number})" if len(evidence["proofs"]) > 1 else ""
        made += [replace(one, claim=f"{one.claim}{several}") for one in some]
        ranks.append((name, of.text))
    return [*lemmas], made, ranks


def expect_holds(parametric: Parametric, header: Any, evidence: Any) -> None:
    """Raises `Rejected` unless it claims that properties hold, for all values of the system's free parameters."""
    if header["counts"] is not None or not header["claims"] or {*header["claims"].values()} != {Verdict.HOLDS.value}:
        reject("it claims something else than that properties hold")
    if evidence["free"] != [[f.name, f.least, f.most] for f in parametric.free]:
        reject("its free parameters are not those of the system")


def stated(parametric: Parametric, header: Any, evidence: Any) -> list[CertifiedClaim]:
    """The claims of a certificate, in their order. Raises `Rejected`."""
    offered = {lemma.name: lemma for lemma in parametric.system.lemmas}
    props = [*map(parametric.system.property, header["claims"]), *(offered[name] for name in evidence["lemmas"])]
    claims = [SAFE, *(claim_of(parametric, prop) for prop in props)]
    for number, formula in enumerate(evidence["discovered"], start=1):
        claims.append(CertifiedClaim(f"discovered {number}", condition_of(parametric, formula)))
    if len({claim.name for claim in claims}) < len(claims):
        reject("it names a claim twice")
    expect_distinct_names(parametric, claims)
    return claims


def remade(
    parametric: Parametric,
    claims: Sequence[CertifiedClaim],
    wanted: Sequence[tuple[CertifiedClaim, int | None]],
    given: Sequence[Any],
    report: Callable[[str], None],
) -> list[Discharged]:
    """The obligations `wanted` of the claims, each generated from its assumptions. Raises `Rejected` if the file differs."""
    if [(one["claim"], one["rule"]) for one in given] != [(claims.index(claim), rule) for claim, rule in wanted]:
        reject("its obligations are not those of its claims: one is missing, added or in another place")
    found = []
    for number, ((goal, rule), one) in enumerate(zip(wanted, given, strict=True), start=1):
        report(f"{number:,} of {len(wanted):,} obligations")
        if {*one} != PARTS or not all(type(n) is int for n in one["needs"]) or one["needs"] != sorted({*one["needs"]}):
            reject(f"obligation {number} is malformed")
        needs = [claims[range(len(claims))[n]] for n in one["needs"]]
        if any(claim.step for claim in needs) or (rule is None and needs):
            reject(f"obligation {number} assumes a claim that does not hold in the state before")
        made = ProofObligation(parametric, goal, rule, needs)
        if (one["terms"], one["text"]) != (made.terms, made.text):
            reject(
                f"obligation {number} differs from the one generated from the model and the lemmas: "
                f"{named(parametric, goal, rule)}"
            )
        label = None if rule is None else rule_label(parametric, rule)
        names = tuple(claim.name for claim in needs)
        found.append(Discharged(goal.name, label, names, len(made.terms), made.text, {}))
    return found


def decide(obligations: Sequence[Discharged]) -> None:
    """Raises `Rejected`, or `SolversDisagree`, unless every obligation is discharged by a solver, and refuted by none."""
    for number, one in enumerate(obligations, start=1):
        said = {*one.answers.values()}
        where = f"obligation {number}, {one.claim} {'initially' if one.rule is None else f'after {one.rule}'}"
        who = ", ".join(f"{solver} answers {answer}" for solver, answer in one.answers.items())
        if {SAT, UNSAT} <= said:
            raise SolversDisagree(
                f"solvers disagree on {where}: {who}", remedy="write the scripts with --smt DIR and run a third solver"
            )
        if SAT in said:
            reject(f"not inductive: {where}, does not follow from its assumptions ({who})")
        if ERROR in said:
            reject(f"{where}, cannot be read by a solver ({who})")
        if UNSAT not in said:
            reject(f"{where}, could not be decided ({who or 'no solver is installed'})")


def rule_label(parametric: Parametric, rule: int) -> str:
    """The name of a rule: its action, and the arguments that identify the instance."""
    instance = parametric.system.instances[rule]
    fixed = [f"{n}={v}" for n, v in instance.args if isinstance(v, str | int | bool)]
    picks = [f"{n}={v}" for n, v in instance.picks]
    text = instance.action + (f"({', '.join(fixed)})" if fixed else "")
    return text + (f"[{', '.join(picks)}]" if picks else "")


def named(parametric: Parametric, goal: CertifiedClaim, rule: int | None) -> str:
    """The name of an obligation."""
    return f"{goal.name} {'initially' if rule is None else f'after {rule_label(parametric, rule)}'}"
