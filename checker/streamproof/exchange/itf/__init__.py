"""Traces in the Informal Trace Format."""
