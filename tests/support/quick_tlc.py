"""TLC for models of few states, where most of the time goes into starting the virtual machine."""

from __future__ import annotations

from streamproof.exchange.tla.tlc import TlcOptions

QUICK = TlcOptions(memory=1_000, java=("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
"""Little memory, one collector thread, and no optimising compiler."""
