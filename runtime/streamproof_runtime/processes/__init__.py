"""Runs on processes: hosts of the machines, connections, files."""
