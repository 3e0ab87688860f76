"""The place of the reference runtime, which runs the protocols for real and records what it did.

It is an implementation under test: it shares the trace format (newline-delimited JSON events) with the checker
and nothing else. It imports neither the engines nor the models, so an agreement between the two is evidence.
The package holds no code yet.
"""
