"""Bindings of Flink's logs to the models of this project."""
