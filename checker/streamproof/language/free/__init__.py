"""Rules with a free parameter, read for every value of it."""
