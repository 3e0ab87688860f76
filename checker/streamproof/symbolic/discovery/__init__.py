"""Invariant discovery: candidates derived from the rules and from explored states, all to be proved by induction."""
