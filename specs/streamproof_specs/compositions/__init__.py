"""Properties of compositions, most of them those of the parts."""
