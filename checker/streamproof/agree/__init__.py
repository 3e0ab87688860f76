"""Agreement: every engine is asked about one system, and what they say is compared."""
