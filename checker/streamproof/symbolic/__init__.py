"""The symbolic engine: solver-based checks of all behaviours up to a depth (BMC), and proofs for all depths
(k-induction, PDR)."""
