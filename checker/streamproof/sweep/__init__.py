"""Sweeps over parameters and variants: plan, decisions, results, their tables and pages, and comparisons of designs."""
