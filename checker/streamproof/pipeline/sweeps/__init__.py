"""One model at many points: which points, how one is decided, by which processes, and what is kept of it."""
