"""Simulated runs: virtual time, a tape of choices, a network and faults."""
