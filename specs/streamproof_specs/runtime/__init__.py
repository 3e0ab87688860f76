"""Bindings of the event logs of the reference runtime."""
