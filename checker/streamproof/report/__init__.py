"""What a run found, for people: the console, and pages in HTML."""
