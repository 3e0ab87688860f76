"""What two searches of one system must have in common."""

from __future__ import annotations

from typing import Any

from streamproof.base.options import SearchOptions
from streamproof.explicit.cluster import Cluster
from streamproof.explicit.exploration import explore
from streamproof.system import Kind, StreamproofError, System

ENDLESS = (Kind.TERMINATION, Kind.TEMPORAL)
"""Kinds of properties of endless behaviours, which are only decided in memory."""


def outcome(system: System, cluster: Cluster | None = None, **options: Any) -> object:
    """All that must be the same; properties of endless behaviours are left out."""
    try:
        found = explore(system, SearchOptions(tier="compiled", **options), cluster=cluster)
    except StreamproofError as error:
        return str(error)
    return (
        found.counts,
        found.counts.queue,
        found.counts.out_degree,
        found.stopped,
        found.coverage,
        [f for f in found.findings if f.kind not in ENDLESS],
        None if found.mistake is None else found.mistake.trace,
        list(found.states()),
    )
