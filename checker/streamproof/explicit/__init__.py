"""The explicit engine: exact breadth-first search of all reachable states."""
