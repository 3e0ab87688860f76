"""Sweeps: one model at many points; their generation, checking, distribution and storage."""
