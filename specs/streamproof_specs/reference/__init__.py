"""Properties of the public models that have some of their own."""
