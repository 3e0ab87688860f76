"""The event logs of ``streamproof run``: those of earlier runs are removed, and those of a finished run become Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from streamproof.base.files import PARQUET, RUN_LOG, RUN_PART, Form, expect_writable, remove
from streamproof.conformance.event_table import write_parquet
from streamproof.conformance.events import read_events

NDJSON, TABLE = ".ndjson", ".parquet"
"""Suffixes of the two forms of a log."""


def remove_older(folder: Path) -> None:
    """Removes the logs of an earlier run on processes. Raises `SystemFailure` if a file of their names is another one."""
    logs = [log for suffix in (NDJSON, TABLE) for log in _logs(folder, suffix)]
    for log in logs:
        expect_writable(log, form_of_log(log))
    for log in logs:
        remove(log, form_of_log(log))


def run_in_parquet(folder: Path) -> None:
    """Replaces the logs of a finished run on processes; see `in_parquet`."""
    for log in _logs(folder, NDJSON):
        if log.is_file():
            in_parquet(log)


def in_parquet(log: Path) -> None:
    """Replaces a log by a Parquet file, which is complete and on the disk before the log is removed.

    A last line without an end is left out, as its readers do. Raises `InputError` for a log that is damaged otherwise, and
    `SystemFailure` if the file cannot be written; then the log stays.
    """
    events = read_events(log, without_torn_line=True)
    write_parquet((replace(event, file=None, line=None) for event in events), log.with_suffix(TABLE))
    remove(log, form_of_log(log))


def form_of_log(log: Path) -> Form:
    """What a log of a run contains, by its name."""
    if log.suffix == TABLE:
        return PARQUET
    return RUN_PART if log.name.startswith(("rm", "tm-")) else RUN_LOG


def _logs(folder: Path, suffix: str) -> Iterator[Path]:
    """The logs of a run on processes, which need not be there."""
    yield folder / f"jobmaster{suffix}"
    yield folder / f"rm{suffix}"
    for name in ("jobmaster", "rm", "tm-*"):
        yield from (log for log in sorted(folder.glob(f"{name}.*{suffix}")) if log.name.split(".")[1].isdigit())
