"""Memory-only caching: what has been read stays in memory while there is room, and is made again when it is missed."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import runtime_partition_judge
import runtime_region_judge
from batch_jobs import batch, chain
from runtime_processes import run
from streamproof.conformance import InputError, judge
from streamproof_runtime import Job, JobError
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.api import BLOCKING, CACHING, MEMORY_ONLY
from streamproof_runtime.processes.file_partitions import FilePartitions
from streamproof_runtime.simulator.faults import FULL
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.taskexecutor.memory_cache import CachedPartitions, MemoryFull
from streamproof_runtime.taskexecutor.partitions import MemoryPartitions, Missing
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.partitions.runtime.binding import BINDING as PARTITIONS
from streamproof_specs.regions.runtime import BINDING as REGIONS

Records = list[dict[str, Any]]
MACHINES = {"partition_lifecycle": PARTITIONS, "failover": FAILOVER, "regions": REGIONS}


def records_of(outcome: Outcome) -> Records:
    """The log of a run."""
    return [json.loads(line) for line in lines(outcome.entries)]


def verdict(records: Records, folder: Path, model: str = "partition_lifecycle") -> set[str]:
    """The verdicts on a log; "error" for one that is none."""
    log = folder / "run.ndjson"
    log.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="ascii")
    try:
        return {v.answer for v in judge(MACHINES[model].plan(log, None), model)}
    except InputError:
        return {"error"}


def is_accepted(records: Records, folder: Path) -> None:
    """By all machines and second judges."""
    assert runtime_partition_judge.accepts(records)
    assert runtime_region_judge.accepts([r for r in records if r["process"] == "jobmaster" and "#" not in r["trace"]])
    for model in MACHINES:
        assert verdict(records, folder, model) == {"accepted"}, model


# --- the state machine


def test_what_has_been_read_makes_room() -> None:
    """What was read longest ago first; what has not been read is never discarded, and is too much at some point."""
    for store in (MemoryPartitions(5), FilePartitions()):
        cache = CachedPartitions(store, {"a>b"})
        store.room = 5 * store.packed([[1]])[1]
        one, two, three = (("a>b", 0, number) for number in range(3))
        for key in (one, two, three):
            cache.create(key)
            cache.append(key, [[1]])
        assert (cache.settle(), cache.is_full) == ([], False)
        cache.consumed(two)
        cache.consumed(one)
        records, number = cache.open(one)
        assert (number, [*records]) == (1, [[1]])
        for _ in range(3):
            cache.append(three, [[1]])
        assert (cache.settle(), cache.is_full) == ([two], False)
        with pytest.raises(Missing, match="partition 1 of a>b"):
            cache.open(two)
        cache.append(three, [[1]])
        assert cache.settle() == [one]
        cache.append(three, [[1]])
        assert (cache.settle(), cache.is_full) == ([], True)
        with pytest.raises(MemoryFull, match=r"results of a for b do not fit.*make it caching\(\)"):
            cache.expect_room(three)
        assert cache.clear() == [three]
        assert cache.size == 0


def test_other_partitions_are_in_the_store() -> None:
    """The memory is for memory-only ones; a record that is read twice is the same, whatever its readers do with it."""
    cache = CachedPartitions(FilePartitions(), {"a>b"})
    for dataset in ("a>b", "b>c"):
        key = dataset, 3, 0
        cache.create(key)
        cache.append(key, [[1, 2]])
        next(cache.open(key)[0]).append(3)
        assert [*cache.open(key)[0]] == [[1, 2]]
        assert (cache.size > 0) is (dataset == "a>b")
        assert cache.release(dataset, 3) == [key]
        with pytest.raises(Missing):
            cache.open(key)
    assert cache.size == 0


# --- runs


def check(seed: int, folder: Path) -> tuple[int, int]:
    """A chain with little memory and many faults is right and accepted; discarded partitions, and those made again."""
    draw = random.Random(seed)
    length = draw.randint(2, 4)
    level = ("heavy", "severe")[seed % 2]
    simulation = Simulation(
        chain(length), seed=seed, level=level, eager=seed % 3 == 0, executors=2, room=draw.randint(14, 20)
    )
    outcome = simulation.run(200_000)
    assert outcome.finished, (seed, outcome.reason)
    assert Counter(outcome.results["all"]) == Counter(range(length, length + 10)), seed
    records = records_of(outcome)
    is_accepted(records, folder)
    missed = sum(r["event"] == "region_failed" and "missing" in r["args"] for r in records)
    return sum(len(r["args"]["discarded"]) for r in records if r["event"] == "partitions_discarded"), missed


def test_runs_with_little_memory_are_right(tmp_path: Path) -> None:
    """Results are discarded and made again through failures."""
    found = [check(seed, tmp_path) for seed in range(5)]
    assert sum(discarded for discarded, _ in found) > 3
    assert sum(missed for _, missed in found) > 0


@pytest.mark.long
def test_many_runs_with_little_memory_are_right(tmp_path: Path) -> None:
    """Several hundred chains, and random jobs of all exchanges."""
    assert sum(discarded for discarded, _ in (check(seed, tmp_path) for seed in range(300))) > 300
    for seed in range(300):
        job, expected = batch(seed)
        draw = random.Random(seed)
        for edge in job.edges:
            if edge.is_stored:
                edge.exchange_type = draw.choice((MEMORY_ONLY, MEMORY_ONLY, CACHING, BLOCKING))
        outcome = Simulation(job, seed=seed, level="severe", eager=seed % 3 == 0, room=40).run(100_000)
        assert outcome.finished, (seed, outcome.reason)
        assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
        if any(region.reads for region in regions(job)):  # else nothing is stored
            is_accepted(records_of(outcome), tmp_path)


def test_while_there_is_room_it_is_caching() -> None:
    """The same runs, with the same restarts, as with `caching`, while disks have space; some of them have restarts."""
    restarts = 0
    for seed in range(12):
        faults = [f for f in Simulation(chain(1), seed=seed, level="heavy").faults if f.kind != FULL]
        mine, cached = (
            Simulation(chain(1, t), seed=seed, faults_given=faults).run(100_000) for t in (MEMORY_ONLY, CACHING)
        )
        assert Counter(mine.results["all"]) == Counter(range(1, 11)), seed
        assert (mine.steps, mine.time, mine.attempts) == (cached.steps, cached.time, cached.attempts)
        restarts += mine.attempts - 1
    assert restarts > 2


def test_a_result_that_does_not_fit_ends_the_job() -> None:
    """Nothing that has not been read is discarded, and nothing is spilled."""
    outcome = Simulation(chain(1), room=6, executors=1, slots=4).run(100_000)
    assert not outcome.finished
    assert "the results of numbers for p0 do not fit in the memory of a TaskExecutor (6 records)" in outcome.reason
    assert "make it caching()" in outcome.reason


def test_a_loop_stores_nothing_in_memory() -> None:
    """Its operators cannot wait for each other."""
    with pytest.raises(JobError, match="in a loop"):
        Job().source("numbers", [1]).iterate("Loop", lambda s: (s.memory_only_caching(), s))


def test_lies_about_what_is_discarded_are_rejected(tmp_path: Path) -> None:
    """Only what is memory-only and has been read is discarded, and only for want of room; both judges say so."""
    records = records_of(Simulation(chain(4), executors=1, slots=4, room=22).run())
    is_accepted(records, tmp_path)
    discards = [at for at, r in enumerate(records) if r["event"] == "partitions_discarded"]
    assert discards

    def answer(change: Any) -> set[str]:
        changed = copy.deepcopy(records)
        change(changed)
        numbers: Counter[tuple[str, str]] = Counter()
        for r in changed:
            r["seq"] = numbers[r["trace"], r["process"]]
            numbers[r["trace"], r["process"]] += 1
        found = verdict(changed, tmp_path)
        assert (found == {"accepted"}) is runtime_partition_judge.accepts(changed)
        return found

    def args(changed: Records) -> Any:
        return changed[discards[0]]["args"]

    def blocking(changed: Records) -> None:
        changed[0]["args"]["memory_only"].remove(args(changed)["discarded"][0].partition("/")[0])

    def early(changed: Records) -> None:
        copies = args(changed)["discarded"]
        read = next(
            n
            for n, r in enumerate(changed)
            if r["event"] == "partition_consumed" and r["args"]["partition"] == copies[0]
        )
        changed.insert(read, changed.pop(discards[0]))

    assert records[0]["event"] == "job_started"
    assert answer(lambda changed: None) == {"accepted"}
    assert answer(blocking) == {"rejected"}
    assert answer(early) == {"rejected"}
    assert answer(lambda changed: args(changed).update(stored=args(changed)["room"])) == {"rejected"}
    assert answer(lambda changed: args(changed)["discarded"].append("numbers>p0/0@7")) == {"rejected"}
    assert answer(lambda changed: args(changed)["discarded"].append("numbers>p9/0@0")) == {"error"}


def test_processes_with_a_kill(tmp_path: Path) -> None:
    """On processes: what a killed TaskExecutor had in memory is made again; nothing is on disk, the log is accepted."""
    job = tmp_path / "chain.py"
    job.write_text(
        "from streamproof_runtime import Job\n\n\ndef job():\n    made = Job('chain')\n"
        "    added = made.source('numbers', range(40), 2).memory_only_caching().process('added', lambda _, n: (n + 1,), 2)\n"
        "    added.memory_only_caching().collect('all')\n    return made\n"
    )
    (tmp_path / "logs").mkdir()
    found = run(job, tmp_path / "logs", executors=2, kills=["tm-1@20"])
    assert (found["wrong"], sorted(found["results"]["all"])) == ("", [*range(1, 41)])
    (log,) = PARTITIONS.runs(tmp_path / "logs")
    for model, binding in MACHINES.items():
        assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, model
