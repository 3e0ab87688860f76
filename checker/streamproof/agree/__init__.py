"""Agreement: every engine runs on one system, and their results are compared."""
