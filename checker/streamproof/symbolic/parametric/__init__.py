"""Parameterised verification: induction over systems with symbolic parameters, for every value."""

from streamproof.symbolic.parametric.proof import AnySize, prove_any

__all__ = ["AnySize", "prove_any"]
