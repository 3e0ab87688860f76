"""Proofs for every value of a parameter: the engine, the comparisons of its readings, ranking functions, certificates."""
