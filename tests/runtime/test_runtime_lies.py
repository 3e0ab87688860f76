"""Lies about the events of the runtime's logs are caught by a machine, but for kinds that are known, with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tampering import runtime_lies
from tampering.runtime_lies import Outcome, edits, machines, outcome, reason, recorded


def one_of_each_kind(run: Path, *, of_slots: bool) -> list[Outcome]:
    """The answers on one edit of each kind, of the events of slots or of all."""
    kinds = {e.kind: e for e in edits(run) if e.is_of_slots or not of_slots}
    return [outcome(run, edit) for edit in kinds.values()]


@pytest.mark.long
def test_lies_about_slots_are_caught(tmp_path: Path) -> None:
    """One of each kind in a run with lost connections, in which slots fail and time out."""
    (run,) = recorded(tmp_path, ["batch-69"])
    assert {"slot_pool", "partition_lifecycle", "failover", "regions", "baton", "credit"} <= {*machines(run)}
    found = one_of_each_kind(run, of_slots=True)
    assert [o.kind for o in found if o.is_missed and not reason(o.kind)] == []
    assert sum(not o.is_missed for o in found) > 80


@pytest.mark.long
@pytest.mark.parametrize("name", runtime_lies.JOBS)
def test_lies_are_caught(name: str, tmp_path: Path) -> None:
    """One of each kind about each event."""
    (run,) = recorded(tmp_path, [name])
    found = one_of_each_kind(run, of_slots=False)
    assert [o.kind for o in found if o.is_missed and not reason(o.kind)] == []
