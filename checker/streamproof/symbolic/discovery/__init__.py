"""Invariant discovery: candidates derived from the rules and from explored states, all to be proved by induction."""

from streamproof.symbolic.discovery.discovering import Discovery, Explored, discover
from streamproof.symbolic.discovery.laws import Law, laws

__all__ = ["Discovery", "Explored", "Law", "discover", "laws"]
