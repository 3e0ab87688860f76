"""Descriptors of deployments as blobs: runs are right and accepted, wrong variants are caught, two judges agree."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from changed_logs import Records, compared, is_accepted, numbered, rearranged, records_of, total, with_args
from descriptor_judge import descriptors_are_right
from nonempty import nonempty
from offloading_jobs import KINDS, offloaded, session
from runtime_mix import JOBS, rejections
from runtime_processes import run as run_on_processes
from shares import share
from streamproof.conformance import judge
from streamproof_runtime.jobmaster.blob_server import digest
from streamproof_runtime.simulator.simulation import Outcome
from streamproof_runtime.taskexecutor.blob_cache import BlobCache
from streamproof_runtime.variants.blob_variants import CACHES, MASTERS
from streamproof_specs.regions.runtime_blobs import BINDING

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL = "task_descriptors"
EVENTS = ("descriptor_offloaded", "descriptor_released", "descriptor_loaded", "blobs_dropped")


def test_a_cache_keeps_the_blobs_that_were_used_last() -> None:
    """A blob is fetched once while it is there; with the JobMaster all are gone."""
    events = []
    cache = BlobCache(lambda event, args: events.append((event, dict(args))), 2)
    assert cache.use("a", b"A") == b"A"
    cache.use("b", b"B")
    assert cache.use("a") == b"A"
    cache.use("c", b"C")
    assert cache.keys == ["c", "a"]
    assert "b" not in cache
    with pytest.raises(KeyError):
        cache.use("b")
    assert cache.keys == ["c", "a"]
    cache.master_lost(3)
    assert (cache.keys, events) == ([], [("blobs_dropped", {"connection": 3, "keys": ["c", "a"]})])
    cache.master_lost(4)
    assert len(events) == 1


def run(kind: str, seed: int) -> Outcome:
    """A run that is right, and has blobs, which are what was offloaded."""
    outcome, wrong = offloaded(seed, **KINDS[kind])
    assert not wrong, (kind, seed)
    return outcome


@pytest.mark.parametrize("seeds", [range(7, 8), pytest.param(range(45), marks=pytest.mark.long)], ids=len)
@pytest.mark.parametrize("kind", share(KINDS, 3))
def test_runs_are_right_and_accepted(kind: str, seeds: range, tmp_path: Path) -> None:
    """Under heavy faults, by every machine; the second judge agrees."""
    found = set()
    for seed in nonempty(seeds):
        outcome = run(kind, seed)
        found |= {entry[2] for entry in outcome.entries}
        assert not [*rejections(outcome, tmp_path, None if len(seeds) > 1 else (MODEL, "slot_pool"))], seed
        assert descriptors_are_right(records_of(outcome)), seed
    assert {"descriptor_offloaded", "descriptor_released", "descriptor_loaded"} <= found
    assert "descriptor_missing" not in found


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_runs_are_right(kind: str) -> None:
    """Under heavy faults, and by the second judge."""
    for seed in range(45, 300):
        assert descriptors_are_right(records_of(run(kind, seed))), seed


def test_what_is_small_goes_with_the_message() -> None:
    """By default nothing of a small job is a blob, and its log is the same as with a larger threshold."""
    small, wrong = offloaded(7, offload=1 << 20)
    assert not wrong
    assert not {entry[2] for entry in small.entries} & {*EVENTS}
    assert small.digest == offloaded(7, offload=1 << 30)[0].digest


@pytest.mark.parametrize("seeds", [2, pytest.param(60, marks=pytest.mark.long)])
def test_jobs_of_a_session_have_one_cache_each_after_the_other(seeds: int, tmp_path: Path) -> None:
    """The blobs of a job go with its JobMaster."""
    for seed in nonempty(range(seeds)):
        outcome = session(seed)
        assert descriptors_are_right(records_of(outcome)), seed
        assert not [*rejections(outcome, tmp_path, (MODEL,))], seed
        loaded = [entry[3] for entry in outcome.entries if entry[2] == "descriptor_loaded"]
        assert len({args["region"] for args in loaded}) == 4  # of which the first job has two


@pytest.mark.parametrize("variant", share({**MASTERS, **CACHES}, 2))
def test_each_wrong_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By the log, in a few runs; the second judge agrees on each."""
    for seed in (7, 9, *range(JOBS.index("sales"), 40 * len(JOBS), len(JOBS))):
        outcome, _ = offloaded(seed, variant=variant, cached_blobs=1 + seed % 2)
        is_rejected = bool([*rejections(outcome, tmp_path, (MODEL,))])
        assert is_rejected is not descriptors_are_right(records_of(outcome))
        if is_rejected:
            return
    raise AssertionError("accepted")


def changed(draw: random.Random, records: Records) -> Records:
    """A copy with one event left out, doubled, moved, or with another number, truth or text."""
    at = draw.choice([at for at, record in enumerate(records) if record["event"] in EVENTS])
    copy = rearranged(draw, records, at, lambda: draw.randrange(-40, 41))
    if copy is not None:
        return numbered(copy)
    args = records[at]["args"]
    others = [r["args"] for r in records if r["event"] == records[at]["event"]]
    name = draw.choice([name for name in args if name not in ("bytes", "tasks")])
    value = args[name]
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, int):
        other = value + draw.choice((-1, 1))
    else:
        other = draw.choice(others)[name]
    return numbered(with_args(records, at, {**args, name: other}))


@pytest.mark.parametrize("changes", [6, pytest.param(150, marks=pytest.mark.long)])
def test_both_judges_agree_on_changed_logs(changes: int, tmp_path: Path) -> None:
    """Events of blobs are left out, doubled, moved or changed."""
    counts = []
    for seed in (7,) if changes < 20 else (7, 22, 9, 24, 10, 25):
        records = records_of(run("all, small cache", seed))
        draw = random.Random(seed)

        def machine(copy: Records) -> bool:
            return is_accepted(copy, tmp_path, BINDING, MODEL)

        def change(own: Records, draw: random.Random = draw) -> Records:
            return changed(draw, own)

        counts.append(compared(records, change, changes, (machine, descriptors_are_right), seed))
    accepted, rejected = total(counts)
    assert rejected > accepted


@pytest.mark.long
@pytest.mark.parametrize("more", [{}, {"kills": ("tm-1@7",)}, {"kills": ("jobmaster@9",)}])
def test_runs_on_processes_are_right_and_accepted(more: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    """Blobs go by TCP, also if a TaskExecutor or the JobMaster is killed."""
    result = run_on_processes(EXAMPLES / "sales.py", tmp_path, executors=3, offload=0, **more)
    assert not result["wrong"]
    plan = BINDING.plan(tmp_path, None)
    assert plan.cases
    assert {v.answer for v in judge(plan, MODEL)} == {"accepted"}


def test_a_key_is_the_digest_of_the_content() -> None:
    """Equal contents have one key."""
    assert digest(b"a") == digest(b"a") != digest(b"b")
    assert len(digest(b"")) == 32
