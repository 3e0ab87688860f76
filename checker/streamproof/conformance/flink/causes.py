"""Failure causes from stack traces: the chain of exceptions, and the partition named by one of them.

Flink decides what to restart by the first exception of the chain that is a `PartitionException`, at any depth: it
carries the partition that could not be read (`RestartPipelinedRegionFailoverStrategy`). Suppressed exceptions are not
part of the chain; they are indented, and only unindented lines are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from streamproof.conformance.flink.identifiers import PARTITION_TEXT

# The first line of a trace needs a package or a typical name; otherwise any text before a colon would match.
_THROWABLE: Final = re.compile(
    r"(?:Caused by: (?P<cause>[\w$.]+)|(?P<first>(?:[\w$]+\.)+[\w$]+|[\w$]+(?:Exception|Error)))(?:: (?P<text>.*))?"
)
_NAMES_PARTITION: Final = ("PartitionNotFoundException", "PartitionConnectionException", "DataConsumptionException")
_PARTITION: Final = re.compile(PARTITION_TEXT)


def read_causes(head: str | None, detail: Sequence[str]) -> dict[str, Any]:
    """Arguments of a failure event from its stack trace.

    `head` is the exception named in the message itself, if any; `detail` are the lines that follow. The result has
    `cause` (first exception with its text), `causes` (the classes of the chain, outermost first) and, if an exception
    names a partition, `partition`, `dataset`, `pnum` and `producer`. It is empty without an exception.
    """
    lines = ([head] if head else []) + [line for line in detail if not line.startswith(("\t", " "))]
    causes: list[str] = []
    args: dict[str, Any] = {}
    for line in lines:
        found = _THROWABLE.fullmatch(line)
        if found is None or (causes and not found["cause"]):
            continue
        if not causes:
            args["cause"] = line
        name = found["cause"] or found["first"]
        causes.append(name)
        if "partition" not in args and name.rpartition(".")[2] in _NAMES_PARTITION:
            named = _PARTITION.search(found["text"] or "")
            if named:
                dataset, _, rest = named[0].partition("#")
                number, _, producer = rest.partition("@")
                args |= {"partition": named[0], "dataset": dataset, "pnum": int(number), "producer": producer}
    if causes:
        args["causes"] = causes
    return args
