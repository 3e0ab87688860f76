"""Invariants that nobody wrote: candidates read off the rules and off explored states, all of them to be proved."""

from streamproof.symbolic.discovery.discovering import Discovery, Explored, discover
from streamproof.symbolic.discovery.laws import Law, laws

__all__ = ["Discovery", "Explored", "Law", "discover", "laws"]
