"""Specifications of the protocols: properties, expected verdicts of variants, and bindings of real logs."""
