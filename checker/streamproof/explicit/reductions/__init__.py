"""Searches that leave something out and still give the same verdicts: symmetry, and partial-order reduction."""
