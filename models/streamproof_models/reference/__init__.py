"""Well-known algorithms with published state counts: examples of the language, and the yardstick of the checker.

Each module is one public algorithm, written from its description. The counts in its docstring are the published ones
(states counted by TLC's rules); `tests/oracles` reproduces them.
"""
