"""Temporal properties under fairness, decided on the stored state graph: Büchi automata, fair cycles, lassos."""
