"""Other tools' formats, one file each: what goes out can be checked by them, what comes in is checked by us."""
