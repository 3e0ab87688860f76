"""The decision of temporal properties on small graphs, in plain Python: the same choices as the array code makes."""
