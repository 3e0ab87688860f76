"""What an author writes: declarations of state, actions and properties; models, composites, specifications, sweeps."""
