"""Traces: behaviours of a System, replayed by the interpreter, explained in the model's terms, rendered as text."""
