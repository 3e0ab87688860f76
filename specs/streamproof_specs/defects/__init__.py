"""Properties of the models of single defects."""
