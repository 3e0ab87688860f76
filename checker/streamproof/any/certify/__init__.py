"""Certificates of proofs for every value of a parameter, and their verifier, which shares nothing with the engine."""
