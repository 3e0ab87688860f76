"""The explicit engine: exact breadth-first search of all reachable states."""

from streamproof.base.options import SearchOptions
from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.level_search import DEFAULT_MAX_STATES

__all__ = ["DEFAULT_MAX_STATES", "Exploration", "SearchOptions", "explore"]
