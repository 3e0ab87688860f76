"""Does an implementation follow its model? Event logs, bindings, the tracker, readers of real systems."""
