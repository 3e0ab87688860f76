"""Variants that omit or change one rule of a protocol."""
