"""Proofs for every size: induction over systems whose parameters stand for every number."""

from streamproof.symbolic.parametric.proof import AnySize, prove_any

__all__ = ["AnySize", "prove_any"]
