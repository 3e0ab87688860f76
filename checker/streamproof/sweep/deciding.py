"""Checking one point: from a job to a record, both JSON data, the same in every process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamproof.base.errors import ModelError, OutOfTime, StreamproofError, TooLarge, UsageError
from streamproof.base.options import SearchOptions, Tuning
from streamproof.base.reading import Shape
from streamproof.explicit.exploration import explore
from streamproof.explicit.level_search import Stop
from streamproof.interrupts import limited
from streamproof.language.lower.model_reader import TERMINATION
from streamproof.model_registry import Target, find, stated_by
from streamproof.system.fingerprint import fingerprint
from streamproof.system.model import Kind, System
from streamproof.system.verdict import Finding, Verdict
from streamproof.version import VERSION

SCHEMA = "streamproof.sweep-point/1"

Job = dict[str, Any]
"""One point to check, as JSON data sent to a worker process or a Spark task."""
Record = dict[str, Any]
"""The record of one point, as JSON data: of `SHAPE`, or with an outcome that is not stored.

The outcomes: ``decided``, ``refused`` (the model does not allow these parameters), ``interrupted``, ``unchanged`` (the
record of an earlier run is of the same system), ``malformed``, or ``lost``. ``asked`` are the names of properties.
"""

_TEXT, _COUNT = (None, str), range(1 << 63)
SHAPE: Shape = {
    "schema": frozenset({SCHEMA}),
    "key": str,
    "outcome": frozenset({"decided", "refused", "interrupted", "lost"}),
    "because": _TEXT,
    "fingerprint": _TEXT,
    "limits": {str: (None, float)},
    "asked": [str],
    "states": (None, {"distinct": _COUNT, "generated": _COUNT, "depth": _COUNT}),
    "properties": {
        str: {
            "kind": frozenset(kind.value for kind in Kind),
            "verdict": frozenset(verdict.value for verdict in Verdict),
            "because": _TEXT,
            "length": (None, _COUNT),
            "vacuous": bool,
            "within": _TEXT,
        }
    },
    "seconds": float,
}
"""The shape of a stored record."""


def record_of(job: Job, outcome: str, because: str | None = None) -> Record:
    """The record of a point whose search found nothing."""
    return {
        "schema": SCHEMA,
        "key": job["key"],
        "outcome": outcome,
        "because": because,
        "fingerprint": None,
        "limits": job["limits"],
        "asked": job["properties"],
        "states": None,
        "properties": {},
        "seconds": 0.0,
    }


def decide(job: Job) -> Record:
    """The record for the point of `job`. Does not raise errors caused by a model, its parameters or limits."""
    begun = time.monotonic()
    print_ = None
    try:
        with limited(job["limits"]["timeout"]):
            target = find(job["model"])
            system = (_narrowed(target, job["properties"]) if job["narrow"] else target).system(
                job["variant"], job["parameters"]
            )
        print_ = fingerprint(system, VERSION, SCHEMA)
        record = record_of(job, "unchanged") if print_ == job["known"] else _searched(system, job)
    except UsageError as refusal:
        record = record_of(job, "refused", refusal.message)
    except OutOfTime as late:
        record = record_of(job, "lost", late.message)
    except ModelError as mistake:
        record = record_of(job, "malformed", mistake.one_line)
    return {**record, "fingerprint": print_, "seconds": round(time.monotonic() - begun, 3)}


def _narrowed(target: Target, names: Sequence[str]) -> Target:
    """The model with these properties only: with thousands of small systems, reading the others takes a quarter of the
    time."""
    kept = tuple(function for function in target.spec.properties if not stated_by(function).isdisjoint(names))
    return replace(target, spec=replace(target.spec, properties=kept, termination=TERMINATION in names))


def _searched(system: System, job: Job) -> Record:
    names = [p.name for p in system.properties if p.name in job["properties"]]
    record = record_of(job, "decided")
    try:
        limit, seconds = job["limits"]["max_states"], job["limits"]["timeout"]
        options = SearchOptions(
            names, max_states=limit, time_limit=seconds, memory=job["memory"], workers=1, tuning=Tuning(cycle_work=0)
        )
        found = explore(system, options)
    except (TooLarge, MemoryError) as error:
        because = error.one_line if isinstance(error, StreamproofError) else "out of memory"
        findings: Sequence[Finding] = [
            Finding(n, system.property(n).kind, Verdict.INCONCLUSIVE, None, because) for n in names
        ]
    else:
        if found.interrupted:
            return record_of(job, "interrupted")
        findings = found.findings
        if found.stopped == Stop.MEMORY.value:
            because = f"out of memory after {found.counts.distinct:,} states: with fewer processes each has more"
            findings = [replace(f, because=because) if f.verdict is Verdict.INCONCLUSIVE else f for f in findings]
        counts = found.counts.inside
        record["because"] = None if found.mistake is None else found.mistake.error.one_line
        record["states"] = {"distinct": counts.distinct, "generated": counts.generated, "depth": counts.depth}
    record["properties"] = {finding.property: _verdict(finding) for finding in findings}
    return record


def _verdict(finding: Finding) -> dict[str, Any]:
    trace = finding.trace
    shown = finding.verdict is Verdict.VIOLATED or (finding.kind is Kind.REACHABLE and trace is not None)
    return {
        "kind": finding.kind.value,
        "verdict": finding.verdict.value,
        "because": finding.because,
        "length": len(trace.steps) if trace is not None and shown else None,
        "vacuous": finding.is_vacuous(),
        "within": finding.within,
    }
