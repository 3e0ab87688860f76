"""State graphs for Graphviz, and sequence diagrams."""
