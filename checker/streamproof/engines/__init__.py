"""The engines: registry, and the provers as engines."""
