"""The explicit engine: every reachable state, enumerated breadth first and exactly."""

from streamproof.explicit.exploration import Exploration, explore
from streamproof.explicit.limits import DEFAULT_MAX_STATES
from streamproof.explicit.witness import Disagreement
from streamproof.system.options import SearchOptions

__all__ = ["DEFAULT_MAX_STATES", "Disagreement", "Exploration", "SearchOptions", "explore"]
