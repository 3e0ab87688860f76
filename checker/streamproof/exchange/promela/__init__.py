"""Promela models of a system for Spin; Spin run and read."""
