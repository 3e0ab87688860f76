"""The certificate of a proof for every parameter value: the obligations of `verifier`, with minimised assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamproof.any.certify.any_values import refuted
from streamproof.any.certify.formulas import NoFormula, condition_data, condition_of, number_of, simplified
from streamproof.any.certify.obligations import (
    SAFE,
    CertifiedClaim,
    ProofObligation,
    claim_of,
    expect_distinct_names,
    expected,
)
from streamproof.any.certify.ranks import rank_claims
from streamproof.any.certify.smt_script import Untranslatable
from streamproof.any.certify.solvers import SAT, UNSAT
from streamproof.any.certify.verifier import SolversDisagree, named, system_fingerprint
from streamproof.base.errors import ModelError
from streamproof.base.options import answer as answer_of
from streamproof.system import build as b
from streamproof.system.sorts import RangeSort
from streamproof.system.verdict import Verdict
from streamproof.transform.rank_rule import RankProof, helpful_constraints
from streamproof.transform.unbounded import Parametric

if TYPE_CHECKING:
    from streamproof.any.engine import AnySize

PATIENCE = 20_000
"""Time limit of one Z3 query while making a certificate, in milliseconds."""


def contents_any(
    parametric: Parametric,
    model: str,
    options: tuple[str, ...],
    proof: AnySize,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Header and evidence of a certificate, and for each proved property without a claim, the reason.

    Raises `SolversDisagree` if a claim of the proof is not inductive.
    """
    claims, discovered = list[CertifiedClaim](), dict[str, Any]()
    try:
        if proof.proved:
            claims, discovered = _claims(parametric, proof)
        made, failed = _supported(parametric, claims, report)
    except (Untranslatable, NoFormula, ModelError) as error:
        claims, made, failed, discovered = [], {}, {SAFE.name: error.message}, {}
    reached = _reached([SAFE, *(c for c in claims if c.name in proof.proved and c.name not in failed)], made)
    kept = [claim for claim in claims if claim in reached and not {claim.name, SAFE.name} & failed.keys()]
    properties = [c for c in kept if c.name in proof.proved]
    lemmas = [c for c in kept if c.name in proof.lemmas]
    found = [c for c in kept if c.name in discovered]
    ordered = [SAFE, *properties, *lemmas, *found]
    obligations = _rows(ordered, expected(parametric, ordered) if properties else (), made)
    header = _header(parametric, model, options, [claim.name for claim in properties])
    evidence = {
        "free": _free(parametric),
        "lemmas": [claim.name for claim in lemmas],
        "discovered": [discovered[claim.name] for claim in found],
        "obligations": obligations,
    }
    why = failed.get(SAFE.name) or next(iter(failed.values()), "nothing was proved")
    return header, evidence, {n: failed.get(n, why) for n in proof.proved if n not in header["claims"]}


def contents_ranked(
    parametric: Parametric,
    model: str,
    options: tuple[str, ...],
    proved: Mapping[str, Sequence[RankProof]],
    report: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """As `contents_any`, of temporal properties with their proofs by ranking functions."""
    proofs, without = dict[str, list[dict[str, Any]]](), dict[str, str]()
    for name, parts in proved.items():
        try:
            proofs[name] = [_ranked(parametric, one, report) for one in parts]
        except (Untranslatable, NoFormula, ModelError) as error:
            without[name] = error.message
    header = _header(parametric, model, options, [*proofs])
    return header, {"free": _free(parametric), "proofs": [one for some in proofs.values() for one in some]}, without


def _ranked(parametric: Parametric, proof: RankProof, report: Callable[[str], None]) -> dict[str, Any]:
    """The data of one proof by a ranking function. Raises `Untranslatable` if Z3 does not discharge an obligation."""
    rule = proof.rule
    rank = condition_data(simplified(rule.parametric, condition_data(proof.rank), RangeSort))
    known = helpful_constraints(parametric, rule.waiting.indices)
    helpful = sorted(known.index(one) for one in proof.helpful)
    terms = [condition_data(simplified(rule.parametric, condition_data(term))) for _, term in proof.discovered]
    discovered = [condition_of(rule.parametric, data) for data in terms]
    of = rank_claims(rule, number_of(rule.parametric, rank), [known[at] for at in helpful], proof.lemmas, discovered)
    made, failed = _supported(of.parametric, of.claims, report)
    extra = len(proof.lemmas) + len(discovered)
    goals, lemmas = of.claims[: len(of.claims) - extra], of.claims[len(of.claims) - extra :]
    for goal in goals:
        if goal.name in failed:
            raise Untranslatable(failed[goal.name])
    steps: dict[tuple[CertifiedClaim, int | None], ProofObligation] = {}
    states = [claim for claim in of.claims if not claim.step and claim.name not in failed]
    for goal, number in of.steps:
        one = _discharged(of.helping, goal, number, states)
        if not isinstance(one, ProofObligation):
            raise Untranslatable(one)
        steps[goal, number] = one
    reached = _reached([*goals, *(need for one in steps.values() for need in one.assumed)], made)
    kept = [claim for claim in lemmas if claim in reached]
    some = [at for at, claim in enumerate(lemmas[len(proof.lemmas) :]) if claim in kept]
    names = [name for name, claim in zip(proof.lemmas, lemmas, strict=False) if claim in kept]
    claims = [*goals, *kept]
    return {
        "region": int(rule.waiting.region is not b.TRUE),
        "idles": rule.idles,
        "rank": rank,
        "helpful": helpful,
        "lemmas": names,
        "discovered": [terms[at] for at in some],
        "obligations": _rows(claims, expected(of.parametric, claims), made),
        "decreases": _rows([*(c for c in claims if not c.step), of.decrease], of.steps, steps),
    }


def _header(parametric: Parametric, model: str, options: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    return {
        "model": model,
        "options": list(options),
        "fingerprint": system_fingerprint(parametric),
        "claims": dict.fromkeys(names, Verdict.HOLDS.value),
        "counts": None,
    }


def _free(parametric: Parametric) -> list[list[Any]]:
    return [[f.name, f.least, f.most] for f in parametric.free]


def _rows(
    claims: Sequence[CertifiedClaim],
    wanted: Iterable[tuple[CertifiedClaim, int | None]],
    made: Mapping[tuple[CertifiedClaim, int | None], ProofObligation],
) -> list[dict[str, Any]]:
    """The obligations `wanted` as data, with the numbers of the claims."""
    number, rows = {claim: at for at, claim in enumerate(claims)}, []
    for claim, rule in wanted:
        one = made[claim, rule]
        needs = sorted(number[need] for need in one.assumed)
        rows.append({"claim": number[claim], "rule": rule, "needs": needs, "terms": one.terms, "text": one.text})
    return rows


def _claims(parametric: Parametric, proof: AnySize) -> tuple[list[CertifiedClaim], dict[str, Any]]:
    """The claims of a proof in the verifier's form, and the data of the discovered ones."""
    written = {p.name: p for p in (*parametric.system.properties, *parametric.system.lemmas)}
    claims, discovered = [SAFE], {}
    for claim in proof.claims:
        if claim.found:
            discovered[claim.name] = condition_data(simplified(parametric, condition_data(claim.condition)))
            claims.append(CertifiedClaim(claim.name, condition_of(parametric, discovered[claim.name])))
        else:
            claims.append(claim_of(parametric, written[claim.name]))
    expect_distinct_names(parametric, claims)
    return claims, discovered


def _supported(
    parametric: Parametric, claims: Sequence[CertifiedClaim], report: Callable[[str], None]
) -> tuple[dict[tuple[CertifiedClaim, int | None], ProofObligation], dict[str, str]]:
    """The obligations of an inductive set of claims, and the reasons why others are left out."""
    failed: dict[str, str] = {}
    while True:
        alive = [claim for claim in claims if claim.name not in failed]
        made: dict[tuple[CertifiedClaim, int | None], ProofObligation] = {}
        before = len(failed)
        wanted = expected(parametric, alive)
        for number, (goal, rule) in enumerate(wanted, start=1):
            report(f"certificate: {number:,} of {len(wanted):,} obligations")
            known = [] if rule is None else [claim for claim in alive if not claim.step]
            one = _discharged(parametric, goal, rule, known, proved=not failed)
            if isinstance(one, ProofObligation):
                made[goal, rule] = one
            else:
                failed[goal.name] = one
                break
        if len(failed) == before or SAFE.name in failed:
            return made, failed


def _discharged(
    parametric: Parametric,
    goal: CertifiedClaim,
    rule: int | None,
    known: Sequence[CertifiedClaim],
    *,
    proved: bool = True,
) -> ProofObligation | str:
    """An obligation with a small set of assumptions that suffices for Z3, or why there is none.

    `proved`: all claims of the proof are known, so it is a mistake if plain values refute the obligation. Raises
    `SolversDisagree`.
    """
    whole = ProofObligation(parametric, goal, rule, known)
    answer, needed = _core(whole)
    if answer == SAT and proved and (at := refuted(parametric, whole)) is not None:
        raise SolversDisagree(
            f"{named(parametric, goal, rule)} was proved for every size, and plain values refute it at {at}",
            remedy="this is a defect of streamproof; please report it with the model",
        )
    if answer != UNSAT:
        why = "is weaker than the proof's" if answer == SAT else "was not decided in time"
        return f"not shown by the certificate's own translation, which {why}: {named(parametric, goal, rule)}"
    needs = [claim for claim in known if claim.name in needed]
    for claim in list(needs):
        fewer = [other for other in needs if other is not claim]
        if _core(ProofObligation(parametric, goal, rule, fewer))[0] == UNSAT:
            needs = fewer
    small = ProofObligation(parametric, goal, rule, needs)
    return whole if len(needs) < len(known) and _core(small)[0] != UNSAT else small


def _core(obligation: ProofObligation) -> tuple[str, set[str]]:
    """Z3's answer, and for ``unsat`` the claims in the unsat core."""
    import z3

    script = obligation.script
    owners = {owner for owner, _ in obligation.parts if owner is not None}
    switches = {owner: script.fresh("a", "Bool") for owner in sorted(owners)}
    formulas = [
        term if owner is None else script.any_of([script.negation(switches[owner]), term])
        for owner, term in obligation.parts
    ]
    solver: Any = z3.Solver(ctx=z3.Context())
    solver.set("timeout", PATIENCE)
    solver.from_string(script.text(formulas))
    assumed = {switch.text: owner for owner, switch in switches.items()}
    answer = answer_of(solver, *(z3.Bool(name, solver.ctx) for name in assumed))
    core = {assumed[str(term)] for term in solver.unsat_core()} if answer == z3.unsat else set()
    return str(answer), core


def _reached(
    start: Sequence[CertifiedClaim], made: dict[tuple[CertifiedClaim, int | None], ProofObligation]
) -> list[CertifiedClaim]:
    """The transitive dependencies of some claims, including themselves."""
    found = list(dict.fromkeys(start))
    for claim in found:  # which grows
        for one in made.values():
            if one.goal is claim:
                found += [need for need in one.assumed if need not in found]
    return found
