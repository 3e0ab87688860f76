"""From Python functions, by their syntax trees, to the expressions of a transition system."""
