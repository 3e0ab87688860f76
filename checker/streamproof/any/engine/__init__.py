"""Parameterised verification: induction over systems with symbolic parameters, for every value."""

from streamproof.any.engine.proof import AnySize, prove_any

__all__ = ["AnySize", "prove_any"]
