"""The certificate of a proof by induction: lemmas and formulas that are inductive together with the proved properties."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.base.errors import StreamproofError
from streamproof.certify.writing import Contents, Written
from streamproof.system import expr as e
from streamproof.system.model import System
from streamproof.system.sorts import EnumSort
from streamproof.transform.canonical import canonical
from streamproof.transform.scalarise import scalarise

if TYPE_CHECKING:
    from streamproof.symbolic.proof import Proof


MOST_TERMS = 1_000_000
"""Maximum size of one formula of a certificate, in operators and operands."""


class Unwritable(StreamproofError):
    """An invariant with unsupported or too many terms."""


def certify_proof(path: Path, system: System, model: str, options: tuple[str, ...], proof: Proof) -> Written:
    """Writes a proof, and its counterexamples and witnesses. Raises `SystemFailure`, and `Unwritable`."""
    to = Contents(system, model, options, proof.findings)
    without = to.undecided()
    for finding in to.left:
        if finding.property not in without and finding.property not in proof.k:
            without[finding.property] = (
                "it was decided by a search of all behaviours, which leaves nothing that shows it"
            )
    claimed = [f for f in to.left if f.property not in without]
    to.claim(*claimed)
    if claimed:
        # The engines assume the representation invariant once it is proved: here it is an explicit claim.
        formulas = (*canonical(scalarise(system)), *proof.invariant)
        to.evidence["proofs"].append(
            {
                "claims": [f.property for f in claimed],
                "k": proof.strength,
                "distinct": proof.strength > 1,
                "lemmas": list(proof.used),
                "formulas": [formula_data(writable(term)) for term in formulas],
            }
        )
    return to.write(path, without)


def writable(term: e.Expr) -> e.Expr:
    """The term without sharing. Raises `Unwritable` if it is too long."""
    weights: dict[e.Expr, int] = {}
    for part in e.subterms(term):
        weights[part] = 1 + sum(weights[c] for c in e.children(part))
    if weights[term] > MOST_TERMS:
        raise Unwritable(
            "the proof rests on the set of all states, which takes too much room as a formula",
            remedy="check --certificate writes the states themselves",
        )
    return term


def formula_data(term: e.Expr) -> Any:
    """A condition on the leaves of a state in the form of a certificate. Raises `Unwritable`."""
    match term:
        case e.Const(sort=EnumSort(members), value=value):
            return members.index(value)
        case e.Const(value=value):
            return value
        case e.Var(name=name):
            return ["Var", name]
        case e.Not() | e.And() | e.Or() | e.Ite() | e.Eq() | e.Less() | e.LessEq() | e.Add() | e.Sub() | e.Mul():
            return [type(term).__name__, *map(formula_data, e.children(term))]
        case _:
            raise Unwritable(f"certificates have no {type(term).__name__}, and the proof rests on {term!r}")
