"""A session of three jobs: the first promotes the words that it has counted to a cluster partition, which the others read."""

from __future__ import annotations

from collections import Counter

from streamproof_runtime import Job

LINES = ["to be or not to be", "that is the question", "whether it is nobler in the mind", "to suffer"] * 3


def job() -> list[Job]:
    """The jobs, in their order."""
    counting = Job("counting")
    words = counting.source("lines", LINES, parallelism=2).flat_map(str.split).map(lambda word: (word, 1))
    counted = words.key_by(lambda pair: pair[0]).process("count", count, parallelism=2)
    counted.promote("counts")

    by_length = Job("by_length")
    read = by_length.cluster_source("counts", parallelism=2).map(lambda pair: (len(pair[0]), 1))
    read.key_by(lambda pair: pair[0]).reduce("sum", lambda a, b: (a[0], a[1] + b[1]), 2).collect_latest("lengths")

    frequent = Job("frequent")
    frequent.cluster_source("counts", parallelism=2).filter(lambda pair: pair[1] == 9).collect("words")
    return [counting, by_length, frequent]


def count(context, pair):
    """A word with the number of times it has come so far."""
    context.state["number"] = context.state.get("number", 0) + 1
    return [(pair[0], context.state["number"])]


def expected() -> dict[str, object]:
    """The results of each job, computed directly: every occurrence of a word is in the cluster partition."""
    words = Counter(word for line in LINES for word in line.split())
    lengths = Counter(len(word) for line in LINES for word in line.split())
    return {
        "counting": {},
        "by_length": {"lengths": dict(lengths)},
        "frequent": {"words": [(word, 9) for word, number in words.items() if number >= 9]},
    }
