"""Formats of other tools, one file each: models and traces are exported for them, and their results are imported."""
