"""TLA+ modules of a system for TLC and Apalache; TLC run and read."""
