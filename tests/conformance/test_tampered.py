"""Recorded runs that were tampered with are rejected at the tampered line, for every kind of edit in every kind of run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from shares import share
from tampering import failover_lies

ROOT = Path(__file__).parents[2]


def check(run: Path, sample: int | None) -> int:
    """Tries the edits that fit a run, or of each kind so many, spread over the run; returns the number of kinds."""
    edits = defaultdict(list)
    for edit in failover_lies.edits(run):
        edits[edit.kind].append(edit)
    for kind, found in edits.items():
        step = 1 if sample is None else -(-len(found) // sample)
        for edit in found[step // 2 :: step]:
            outcome = failover_lies.outcome(run, edit)
            legal = edit.may_be_legal and outcome.verdict == "accepted"
            assert outcome.hit or legal, (kind, edit.what, outcome.place, outcome.expected, outcome.message)
    return len(edits)


@pytest.mark.push
@pytest.mark.parametrize(
    ("name", "kinds"),
    share(
        [("a-taskfail-1", 25), ("b-lostpart-1", 26), ("c-disjoint-1", 24), ("d-credit-3", 23), ("m-job-failed-1", 24)],
        5,
    ),
)
def test_tampered_runs_are_rejected_at_the_line(name: str, kinds: int, flink_logs: Path) -> None:
    """Decisions, failures, attempts, the order of scheduling, the job's lines, the TaskManagers' logs: each is caught."""
    assert check(flink_logs / name, 1) == kinds


@pytest.mark.parametrize(("name", "kinds"), [("stream", 24), ("rand2", 27), ("global", 23)])
@pytest.mark.long
def test_tampered_runs_with_rare_turns_are_rejected_at_the_line(name: str, kinds: int, flink_more: Path) -> None:
    """The same where failures overlap, the whole job fails, and executors are lost."""
    assert check(flink_more / name, 1) == kinds


EVERY = [
    *(("more", name) for name in ("rand2", "stream", "global", "pipe")),
    *(("logs", name) for name in ("a-pipelined-1", "a-taskfail-1", "a-taskfail-2", "b-delfile-1")),
    *(("logs", name) for name in ("b-lostpart-1", "b-lostpart-2", "b117-lostpart-1", "c-disjoint-1")),
    *(("logs", name) for name in ("d-credit-3", "k-insufficient-buffers-1", "m-job-failed-1")),
]
"""All runs in which something failed."""


@pytest.mark.long
@pytest.mark.parametrize(("folder", "name"), EVERY)
def test_every_edit_is_caught(folder: str, name: str, flink_logs: Path, flink_more: Path) -> None:
    """All edits at all places of a run."""
    assert check({"logs": flink_logs, "more": flink_more}[folder] / name, None) > 13


@pytest.mark.long
def test_the_documented_table_is_the_tools(flink_logs: Path, flink_more: Path) -> None:
    """The users' page lists every kind of edit, as often as its command makes them; all but exchanged neighbours are hits."""
    page = (ROOT / "docs" / "flink-checks-tested.md").read_text()
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    documented = {kind: tuple(map(int, counts)) for kind, *counts in rows}
    made: Counter[str] = Counter()
    for folder, pattern in re.findall(
        r"\b(logs|more)/(\S+)", page.partition("lies.py --machine failover --every 4 ")[2].split("```")[0]
    ):
        for run in named(flink_logs if folder == "logs" else flink_more, pattern):
            made.update(
                {
                    kind: -(-count // 4)
                    for kind, count in Counter(edit.kind for edit in failover_lies.edits(run)).items()
                }
            )
    assert {kind: counts[0] for kind, counts in documented.items()} == made
    for kind, (count, hit, near, missed) in documented.items():
        assert (hit, near, missed) == (count, 0, 0) or (kind == "neighbours exchanged" and near == 0)


def named(folder: Path, pattern: str) -> list[Path]:
    """What a pattern of the shell stands for, braces included."""
    head, _, rest = pattern.partition("{")
    names = [head + name for name in rest.removesuffix("}").split(",")] if rest else [pattern]
    return [path for name in names for path in folder.glob(name)]
