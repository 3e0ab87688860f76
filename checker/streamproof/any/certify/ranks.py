"""The claims of a proof by ranking functions, from the data of a certificate, by the rule of `transform.rank_rule`.

Each conjunct of a claimed property has a proof: which of its waiting states the rank is about (`region`), whether idle steps
count (`idles`), the rank as data, the positions of the helpful constraints in `rank_rule.helpful_constraints`, the names of
the written lemmas and the discovered ones as data. Its obligations are those of the induction of the rule's claims with the
lemmas; and in `decreases`, that no rule of a helpful constraint breaks the remaining claim in states that satisfy the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamproof.any.certify.formulas import condition_of, number_of
from streamproof.any.certify.obligations import SAFE, CertifiedClaim, claim_of, expect_distinct_names
from streamproof.any.certify.smt_script import Untranslatable
from streamproof.base.errors import reject
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Kind
from streamproof.transform.rank_rule import Helpful, RankRule, Waiting, helpful_constraints, waitings, with_names
from streamproof.transform.unbounded import Parametric, written

PROOF = {"region", "idles", "rank", "helpful", "lemmas", "discovered", "obligations", "decreases"}


@dataclass(frozen=True)
class RankClaims:
    """The claims of one proof: `claims` are inductive in `parametric`, and every step of `helping` satisfies `decrease`."""

    parametric: Parametric
    claims: tuple[CertifiedClaim, ...]
    helping: Parametric
    decrease: CertifiedClaim
    text: str
    """The rank and its helpful constraints, for people."""

    @property
    def known(self) -> list[CertifiedClaim]:
        """The claims about states, and the one about the steps of `helping`, which may assume the others."""
        return [*(c for c in self.claims if not c.step), self.decrease]

    @property
    def steps(self) -> list[tuple[CertifiedClaim, int]]:
        """The obligations about `helping`."""
        return [(self.decrease, number) for number in range(len(self.helping.system.instances))]


def regions_of(parametric: Parametric, name: str) -> list[tuple[Waiting, ...]]:
    """The waiting states of each conjunct of a temporal property. Raises `Untranslatable` for one without a rank."""
    prop = parametric.system.property(name)
    if prop.kind is not Kind.TEMPORAL or prop.formula is None:
        raise Untranslatable(f"{name} is of kind {prop.kind.value}, which has no rank")
    if any(check.condition is not b.FALSE for check in prop.checks) or parametric.system.constraint is not None:
        raise Untranslatable(f"evaluating {name} may be an error, or there is a state constraint")
    found = list(waitings(parametric, prop.formula))
    if not all(found):
        raise Untranslatable(
            f"{name} is no conjunction of leads_to, eventually and always(eventually(...)) of conditions"
        )
    return found


def rank_claims(
    rule: RankRule, rank: Expr, helpful: Sequence[Helpful], lemmas: Sequence[str], discovered: Sequence[Expr]
) -> RankClaims:
    """The claims of a proof. `lemmas` are names of invariants and lemmas of the system."""
    parametric, system = rule.parametric, rule.original.system
    offered = {p.name: p for p in (*system.lemmas, *system.properties) if p.kind is Kind.INVARIANT}
    claims = [SAFE, *(claim_of(parametric, prop) for prop in rule.claims(rank, helpful))]
    claims += [claim_of(parametric, offered[name]) for name in lemmas]
    claims += [CertifiedClaim(f"discovered {number}", found) for number, found in enumerate(discovered, start=1)]
    if len({claim.name for claim in claims}) < len(claims):
        raise Untranslatable("it names a claim twice")
    expect_distinct_names(parametric, claims)
    decrease = claim_of(parametric, rule.decreases(rank))
    text = written(with_names(rank, rule.waiting.indices, rule.original))
    text += f", helped by {', '.join(one.label for one in helpful)}" if helpful else ""
    return RankClaims(parametric, tuple(claims), rule.helping(helpful), decrease, text)


def claimed(parametric: Parametric, names: Sequence[str], proofs: Any) -> Iterator[tuple[str, RankClaims, Any]]:
    """Each proof of a certificate: its property, its claims, and its data. Raises `Rejected`."""
    rest = iter(proofs)
    for name in names:
        for regions in regions_of(parametric, name):
            data = next(rest)
            if {*data} != PROOF or type(data["region"]) is not int or type(data["idles"]) is not bool:
                reject("a proof is malformed")
            rule = RankRule(parametric, regions[range(len(regions))[data["region"]]], data["idles"])
            known = helpful_constraints(parametric, rule.waiting.indices)
            if not all(type(at) is int for at in data["helpful"]) or data["helpful"] != sorted({*data["helpful"]}):
                reject("its helpful constraints are not numbers in ascending order")
            helpful = [known[range(len(known))[at]] for at in data["helpful"]]
            rank = number_of(rule.parametric, data["rank"])
            discovered = [condition_of(rule.parametric, formula) for formula in data["discovered"]]
            yield name, rank_claims(rule, rank, helpful, data["lemmas"], discovered), data
    if next(rest, None) is not None:
        reject("it has a proof of nothing that it claims")
