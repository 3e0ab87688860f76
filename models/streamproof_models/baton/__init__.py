"""Termination of dataflows with loops by batons (FLIP-15, part III).

`machine.py` has the routes of batons, the dataflow and the protocol; `variants.py` the refuted rules, `readings.py` other
readings of the text, `two_types.py` heads apart from operators with a feedback link, `buffers.py` channels of limited size.
`counts.py` has numbers in place of queues, for proofs about any number of records, `counts_variants.py` what it refutes.
`costs.py` and `detection.py` compute how many batons an attempt needs, and compare with termination detection by counting.
Scoped graphs are in `streamproof_models.scopes`.
"""
