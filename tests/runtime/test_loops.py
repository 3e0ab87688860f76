"""Loops read their inputs by every policy with right results, their logs conform, variants and tampered logs are caught."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import changed_logs
from changed_logs import Records, records_of
from loop_judge import wrong
from loop_tampering import KINDS, changed
from runtime_runs import EXAMPLES, example
from shares import share
from streamproof.conformance import InputError, judge
from streamproof_models.scopes.topologies import NAMED
from streamproof_runtime.command import Processes
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs import walks
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.input_policies import POLICIES
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.subtasks.subtask import plans
from streamproof_runtime.variants.loop_variants import BY_RESULT, LOOPS, loop_rules
from streamproof_specs.cyclic.runtime.binding import BINDING

JOBS = ("collatz", "components", "shortest_paths", "doubling")
Awaited = dict[tuple[str, str], tuple[str, ...]]


def run(name: str, seed: int, policy: str = "any", variant: str = "", **more: Any) -> tuple[bool, Outcome, Awaited]:
    """A run of an example: whether its result is right, its outcome, and where its heads await batons."""
    module = example(name)
    job = module.job()
    outcome = Simulation(job, seed=seed, loops=loop_rules(variant, policy), **more).run(100_000)
    results = {k: v for k, v in outcome.results.items() if k in module.expected()}
    return outcome.finished and not outcome.lost and results == module.expected(), outcome, awaited(job)


def awaited(job: Job) -> Awaited:
    """For each subtask and baton the channels on which it arrives, by the runtime."""
    tasks = [item for region in regions(job) for item in plans(region.graph).items()]
    return {(t, str(baton)): tuple(cs) for t, plan in tasks for baton, cs in plan.itinerary.awaited.items()}


def is_rejected(records: Records, folder: Path) -> bool:
    """Whether the binding rejects a log, or cannot read it."""
    try:
        answers = {v.answer for v in changed_logs.verdicts(records, folder, BINDING, "cyclic")}
    except InputError:
        return True
    assert answers <= {"accepted", "rejected"}
    return "rejected" in answers


# --- runs by the rules


@pytest.mark.parametrize(("name", "policy"), share(itertools.product(JOBS, POLICIES), 3))
def test_runs_by_every_policy_are_right_and_accepted(name: str, policy: str, tmp_path: Path) -> None:
    """Under heavy faults; the second judge agrees."""
    is_right, outcome, known = run(name, 3 + POLICIES.index(policy), policy, level="heavy")
    assert is_right, outcome.reason
    assert not is_rejected(records_of(outcome), tmp_path)
    assert wrong(records_of(outcome), known) is None


@pytest.mark.long
def test_a_run_on_processes_spills_to_disk_and_is_accepted(tmp_path: Path) -> None:
    """A TaskExecutor is killed; each record leaves alone, so that more than 64 buffers are fed back."""
    job = tmp_path / "job.py"
    job.write_text((EXAMPLES / "doubling.py").read_text().replace("ROUNDS = 20,", "ROUNDS = 90,"))
    (tmp_path / "out").mkdir()
    settings: dict[str, Any] = {"variant": None, "executors": 2, "slots": 2, "restarts": 3, "seconds": 60}
    runs = Processes(job, **settings, kills=["tm-1@60"], timeout=0, input_policy="fair")
    found = runs.run(tmp_path / "out", lambda _: None)
    assert not found["wrong"]
    assert found["attempts"] == 2
    logs = "".join(log.read_text() for log in (tmp_path / "out").iterdir())
    assert logs.count('"spill_read"')
    assert {v.answer for v in judge(BINDING.plan(tmp_path / "out", None), "cyclic")} == {"accepted"}


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
def test_hundreds_of_runs_are_accepted(policy: str, tmp_path: Path) -> None:
    """Of every job and every graph of the catalogue, with severe faults and buffer timeouts."""
    spills = 0
    for seed in range(60):
        for name in JOBS:
            timeout = (None, 1, 0, -1)[seed % 4]
            is_right, outcome, known = run(name, seed, policy, level="severe", timeout=timeout)
            assert is_right, (name, seed, outcome.reason)
            records = records_of(outcome)
            spills += sum(r["event"] == "spill_read" for r in records)
            assert not is_rejected(records, tmp_path), (name, seed)
            assert wrong(records, known) is None, (name, seed)
    assert spills > 100
    for graph in (g for g in NAMED.values() if "~" in g):
        job = walks.walk(graph)
        outcome = Simulation(job, seed=7, level="heavy", loops=loop_rules(None, policy)).run(100_000)
        assert outcome.finished
        assert walks.visits(job, outcome.results) == walks.expected(job)
        assert not is_rejected(records_of(outcome), tmp_path), graph
        assert wrong(records_of(outcome), awaited(job)) is None, graph


def test_a_loop_can_have_a_policy_of_its_own() -> None:
    """It counts more than that of the run; an unknown one is refused."""

    def job(policy: str) -> Job:
        made = Job("own")
        made.source("a", range(9)).iterate(
            "L", lambda s: (s.filter(lambda n: n > 5).map(lambda n: n - 5), s.filter(lambda n: n <= 5)), 1, policy
        ).collect("b")
        return made

    outcome = Simulation(job("forward-first"), loops=loop_rules(None, "fair")).run()
    opened = [args["policy"] for _, _, event, args, _, _ in outcome.entries if event == "loop_opened"]
    assert opened == ["forward-first"]
    assert sorted(outcome.results["b"]) == sorted(n - 5 if n > 5 else n for n in range(9))
    with pytest.raises(JobError, match="operator l has the input policy 'first', none of any, feedback-first"):
        job("first")


def test_a_policy_decides_what_is_spilled() -> None:
    """Feedback first spills least, forward first most, in a loop that amplifies."""
    spilled = {}
    for policy in POLICIES:
        _, outcome, _ = run("doubling", 0, policy)
        spilled[policy] = sum(len(e[3]["numbers"]) for e in outcome.entries if e[2] == "spill_read")
    assert spilled["feedback-first"] < spilled["fair"] < spilled["forward-first"]


# --- variants


@pytest.mark.parametrize("variant", share(LOOPS, 2))
def test_each_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By a rejected log, or by a run that gets stuck; both judges agree on each log."""
    for seed in range(20):
        is_right, outcome, known = run("doubling", seed, variant=variant)
        rejected = is_rejected(records_of(outcome), tmp_path)
        assert rejected == (wrong(records_of(outcome), known) is not None), seed
        if rejected if variant not in BY_RESULT else not is_right:
            break
    else:
        pytest.fail("not caught")
    assert rejected == (variant not in BY_RESULT)


def test_a_bounded_loop_that_amplifies_blocks_itself() -> None:
    """Without a spill nothing is wrong but that nothing moves; with one the same seed ends."""
    is_right, outcome, _ = run("doubling", 0, variant="bounded")
    assert not is_right
    assert outcome.reason.startswith("stuck: ")
    assert run("doubling", 0)[0]


# --- logs that are not what happened


def compare(jobs: Sequence[str], seeds: range, copies: int, folder: Path) -> Counter[tuple[str, bool]]:
    """Both judges on changed copies of runs, which must agree: how often each kind of change was rejected."""
    answers = Counter[tuple[str, bool]]()
    for seed in seeds:
        draw = random.Random(seed)
        name, policy = draw.choice(jobs), draw.choice(POLICIES)
        timeout = draw.choice((None, None, 1))
        _, outcome, known = run(name, seed, policy, level="heavy", timeout=timeout)
        records = records_of(outcome)
        for _ in range(copies):
            kind = draw.choice(KINDS)
            copy = changed(records, kind, draw)
            if copy is None:
                continue
            rejected = is_rejected(copy, folder)
            reason = wrong(copy, known)
            assert rejected == (reason is not None), (seed, name, policy, kind, reason)
            answers[kind, rejected] += 1
    return answers


def test_changed_logs_are_judged_alike(tmp_path: Path) -> None:
    """What changes a number, a place or an item is rejected; the order of events that do not depend on each other is free."""
    answers = compare(("components", "shortest_paths"), range(6), 12, tmp_path)
    assert not any(answers[kind, False] for kind in ("number", "numbers", "state", "item", "writer"))


@pytest.mark.long
def test_thousands_of_changed_logs_are_judged_alike(tmp_path: Path) -> None:
    """Every kind of change, with every policy."""
    answers = compare(JOBS, range(150), 20, tmp_path)
    assert answers.total() > 2000
    assert not any(answers[kind, False] for kind in ("number", "numbers", "state", "writer"))
    assert all(answers[kind, True] > 50 for kind in KINDS)


@pytest.mark.long
def test_a_policy_that_is_violated_is_rejected(tmp_path: Path) -> None:
    """The log of one policy is not that of another."""
    found = Counter[tuple[str, str]]()
    for policy in POLICIES[1:]:
        _, outcome, known = run("doubling", 0, policy)
        for other in POLICIES[1:]:
            records = records_of(outcome)
            for record in records:
                if record["event"] == "loop_opened":
                    record["args"]["policy"] = other
            rejected = is_rejected(records, tmp_path)
            assert rejected == (wrong(records, known) is not None)
            found[policy, other] = rejected
    assert all(found[p, o] == (p != o) for p, o in found)


@pytest.mark.long
def test_unreadable_events_are_errors_with_their_line(tmp_path: Path) -> None:
    """Unknown channels and items, numbers that are none, a state without its parts, and loops that cannot be opened."""
    records = records_of(run("doubling", 0)[1])
    first = {r["event"]: at for at, r in reversed([*enumerate(records)])}
    opened, arrived, read = (first[e] for e in ("loop_opened", "feedback_received", "spill_read"))
    for at, part, change, words in (
        (opened, "args", {"policy": "first"}, "needs a policy"),
        (opened, "args", {"spilling": 1}, "needs a policy, and 'spilling', true or false"),
        (opened, "args", {"buffers": 0}, "'buffers', a number from 1 to"),
        (opened, "args", {"forward": []}, "different forward and feedback channels"),
        (opened, "args", {"forward": ["x>y"]}, "no channel into 'loop' in the graph"),
        (arrived, "args", {"channel": ["x"]}, "has not been opened with this channel"),
        (arrived, "args", {"item": {}}, "'item', one of baton Loop, end, record"),
        (arrived, "state", {"memory": None, "more": 1}, "'memory' and 'spilled'"),
        (read, "args", {"numbers": "all"}, "'numbers', a list of numbers"),
        (read, "args", {"numbers": []}, "'numbers', a list of numbers"),
    ):
        changed_event = {**records[at], part: {**records[at][part], **change}}
        with pytest.raises(InputError, match=words) as error:
            changed_logs.verdicts([*records[:at], changed_event, *records[at + 1 :]], tmp_path, BINDING, "cyclic")
        assert error.value.loc is not None
        assert error.value.loc.line == at + 1, words


def test_a_log_that_ends_early_is_accepted(tmp_path: Path) -> None:
    """Every prefix is a run that was killed; lines in another order say the same."""
    records = records_of(run("components", 2, "fair")[1])
    start = next(at for at, r in enumerate(records) if r["event"] == "loop_opened")
    for end in range(start + 1, len(records), 29):
        assert not is_rejected(records[:end], tmp_path), end
    shuffled = records[1:]
    random.Random(1).shuffle(shuffled)
    assert not is_rejected([records[0], *shuffled], tmp_path)
