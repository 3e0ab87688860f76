"""Spark jobs for many runs, many logs, and many configurations."""
