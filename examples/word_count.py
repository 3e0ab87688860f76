"""Word count: the smallest job, without a loop."""

from __future__ import annotations

from streamproof_runtime import Job

LINES = ["to be or not to be", "that is the question", "to sleep to dream"]


def job() -> Job:
    """How often each word occurs."""
    made = Job("word_count")
    words = made.source("lines", LINES, parallelism=2).flat_map(str.split).map(lambda word: (word, 1))
    counted = words.key_by(lambda r: r[0]).reduce("count", lambda a, b: (a[0], a[1] + b[1]), parallelism=2)
    counted.collect_latest("counts")
    return made


def expected() -> dict[str, object]:
    """The words, counted directly."""
    words = " ".join(LINES).split()
    return {"counts": {word: words.count(word) for word in words}}
