"""Certificates: a verdict with evidence that `verifier`, a small program of its own, accepts or rejects."""
