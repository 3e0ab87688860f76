"""The version of streamproof, as in what it writes."""

VERSION = "0.1.0"
