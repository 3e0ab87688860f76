"""A model run by Python itself: states as objects, rules as functions."""
