"""Reduced searches with the same verdicts: symmetry reduction and partial-order reduction (stubborn sets)."""
