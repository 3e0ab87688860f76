"""A behaviour of a System: replayed by the interpreter, explained in the model's own words, written for people."""
