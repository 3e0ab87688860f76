"""Credit-based flow control: `machine.py` is the protocol, `variants.py` has the refuted rules.

Models that add to it, each with its variants beside it: `barriers.py` (aligned checkpoint barriers), `connection.py` (several
channels on one connection), `flush.py` (partly filled buffers); `locks.py` is the order of locks in the receiver.
Flink's own classes, method by method, are in `streamproof_models.credit_channel`.
"""
