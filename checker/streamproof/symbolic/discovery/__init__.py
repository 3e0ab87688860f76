"""Invariant discovery: candidates derived from the rules and from explored states, all to be proved by induction."""

from streamproof.symbolic.discovery.discovering import Discovery, Explored, discover
from streamproof.symbolic.discovery.laws import Books, Law

__all__ = ["Books", "Discovery", "Explored", "Law", "discover"]
