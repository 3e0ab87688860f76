"""Certificates: verdicts with evidence, which `verifier`, a small independent program, accepts or rejects."""
