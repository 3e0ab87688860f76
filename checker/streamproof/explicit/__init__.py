"""The explicit engine: exact breadth-first search of all reachable states."""

from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.level_search import DEFAULT_MAX_STATES
from streamproof.system.options import SearchOptions

__all__ = ["DEFAULT_MAX_STATES", "Exploration", "SearchOptions", "explore"]
