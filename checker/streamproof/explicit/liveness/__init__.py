"""Temporal properties with fairness, decided on the stored graph of states: automata, fair cycles, lassos."""
