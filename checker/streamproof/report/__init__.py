"""Reports of results for people: console output and HTML pages."""
