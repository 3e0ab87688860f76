"""Exploring a model step by step, on a page or a terminal: behaviours, what is enabled and why not, searches from a state."""
