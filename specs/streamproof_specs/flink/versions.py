"""The version of Flink that wrote the logs of a run, as far as they show it.

A rule that a line must be there holds from the version that writes it; of an older or an unknown version it says nothing.
"""

from __future__ import annotations

import re

from streamproof.conformance.flink import FlinkRun


def is_at_least(run: FlinkRun, version: tuple[int, int]) -> bool | None:
    """Whether the logs are of this version or a later one; None if they do not show it.

    The logs name the version, or have identifiers of attempts: from 1.16 on they end with the number of the attempt.
    """
    found = re.match(r"(\d+)\.(\d+)", run.version or "")
    if found is not None:
        return (int(found[1]), int(found[2])) >= version
    plain = {"plain" in event.args for event in run.events if "attempt" in event.args}
    if plain == {False}:
        return True if version <= (1, 16) else None
    return False if plain and version >= (1, 16) else None
