"""Slot sharing groups and co-location: who shares slots, what is refused, and what the judges of slots say."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import grouped as grouped_batch
from runtime_processes import run
from runtime_slot_judge import accepts
from shares import share
from streamproof.conformance import InputError, judge
from streamproof_runtime import Job, JobError, Stream
from streamproof_runtime.command import Simulated
from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.event_log import lines
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.failover.runtime import BINDING as FAILOVER
from streamproof_specs.partitions.runtime.binding import BINDING as PARTITIONS
from streamproof_specs.regions.runtime import BINDING as REGIONS
from streamproof_specs.slots.runtime.binding import BINDING as SLOTS

Records = list[dict[str, Any]]


def keep(_context: Any, record: Any) -> list[Any]:
    """A function that passes its record on."""
    return [record]


def groups(job: Job) -> dict[str, str]:
    """The slot sharing group of each operator."""
    return dict(regions(job)[0].sharing.groups)


def looped(stream: Stream) -> tuple[Stream, Stream]:
    """A loop that halves numbers."""
    halved = stream.process("halve", lambda _, n: [n // 2], parallelism=2)
    return halved.filter(lambda n: n > 1), halved.filter(lambda n: n <= 1)


def grouped(mode: str = "streaming") -> Job:
    """Three groups: a source and what reads it, a loop, and two sinks of the same group."""
    job = Job("grouped", mode=mode)
    numbers = job.source("numbers", range(24), parallelism=2).slot_sharing_group("in")
    most = numbers.key_by(lambda n: n % 3).reduce("most", max, parallelism=3)
    most.process("last", keep, 2).slot_sharing_group("out").collect("all")

    def loop(stream: Stream) -> tuple[Stream, Stream]:
        return looped(stream.slot_sharing_group("loop"))

    numbers.pipelined().iterate("L", loop, parallelism=2).process("ends", keep).slot_sharing_group("out").collect(
        "sink"
    )
    return job


# --- the API


def test_a_group_is_inherited_from_the_inputs() -> None:
    """As in Flink: the group of all inputs, or the default one; a group that is named later counts, too."""
    job = Job()
    one = job.source("one", [1])
    two = job.source("two", [2]).slot_sharing_group("red")
    one.process("after_one", keep)
    two.process("after_two", keep).key_by(abs).process("later", keep)
    both = one.union(two).process("both", keep)
    both.slot_sharing_group("blue").connect(both, "twice", keep, keep)
    two.connect(one, "mixed", keep, keep)
    red, blue, plain = (dict.fromkeys(names, g) for names, g in (
        (("two", "after_two", "later"), "red"), (("both", "twice"), "blue"), (("one", "after_one", "mixed"), "default")
    ))  # fmt: skip
    assert groups(job) == red | blue | plain
    one.slot_sharing_group("red")
    assert groups(job) == dict.fromkeys(job.operators, "red") | blue
    assert groups(grouped()) == {
        **dict.fromkeys(("numbers", "most"), "in"),
        **dict.fromkeys(("last", "all", "ends", "sink"), "out"),
        **dict.fromkeys(("l", "halve"), "loop"),
    }


def test_nothing_is_chained_across_groups() -> None:
    """A stateless operator of another group has a task of its own; of the same group it is chained."""
    job = Job()
    numbers = job.source("numbers", range(6), parallelism=2)
    numbers.map(abs).slot_sharing_group("default").collect("chained")
    odd = numbers.map(lambda n: n + 1).filter(lambda n: n % 2).slot_sharing_group("red")
    odd.map(lambda n: -n).collect("red_sink")
    odd.union(numbers).map(lambda n: n * 10).collect("mixed")
    assert [*job.operators] == ["numbers", "chained", "map_1", "red_sink", "map_2", "mixed"]
    assert groups(job) == {
        **dict.fromkeys(("numbers", "chained", "map_2", "mixed"), "default"),
        **dict.fromkeys(("map_1", "red_sink"), "red"),
    }
    assert [job.operators[name].parallelism for name in ("map_1", "map_2")] == [2, 2]
    results = Simulation(job).run().results
    assert sorted(results["red_sink"]) == [-5, -3, -1]
    assert sorted(results["mixed"]) == [0, 10, 10, 20, 30, 30, 40, 50, 50]
    united = Job()
    one, two = united.source("one", [1]), united.source("two", [2])
    one.union(two).map(abs).collect("all")
    two.slot_sharing_group("red")
    with pytest.raises(JobError, match=r"two \(slot sharing group red\) and one \(slot sharing group default\)"):
        regions(united)


def test_a_function_after_an_exchange_is_not_chained() -> None:
    """What is broadcast, rebalanced, keyed or stored before a function is so for what reads the function's output."""
    job = Job()
    numbers = job.source("numbers", range(4))
    numbers.broadcast().map(abs).process("spread", lambda c, n: [(c.subtask, n)]).collect("all")
    numbers.blocking().map(abs).collect("stored")
    assert {(e.source, e.target): (e.exchange.value, e.exchange_type) for e in job.edges} == {
        ("numbers", "map_1"): ("broadcast", "pipelined"),
        ("map_1", "spread"): ("forward", "pipelined"),
        ("spread", "all"): ("forward", "pipelined"),
        ("numbers", "map_2"): ("forward", "blocking"),
        ("map_2", "stored"): ("forward", "pipelined"),
    }


def refused(build: Any, *words: str) -> None:
    """`build` is refused by a message with the words."""
    with pytest.raises(RuntimeFailure) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_what_is_refused() -> None:
    """Each message names the operators, and what to do."""
    job = Job()
    one, two = job.source("one", [1]), job.source("two", [2], parallelism=2)
    refused(lambda: one.slot_sharing_group(""), "group of one needs a name")
    refused(lambda: one.union(two).slot_sharing_group("red"), "union of one and two", "that reads them")
    out = two.iterate("L", lambda s: looped(s), parallelism=2)
    refused(lambda: out.slot_sharing_group("red"), "output of loop L, which halve makes")
    refused(lambda: one.map(abs).co_location_group("k"), "a function that is chained to one")
    one.co_location_group("k")
    two.co_location_group("k")
    refused(lambda: regions(job), "two (parallelism 2) and one (parallelism 1) are co-located, by group k")
    one.slot_sharing_group("red")
    refused(lambda: regions(job), "two (slot sharing group default) and one (slot sharing group red) are co-located")

    across = Job()
    source = across.source("numbers", [1])
    source.iterate("L", lambda s: (s.process("tail", keep).slot_sharing_group("red").filter(bool),) * 2)
    refused(
        lambda: regions(across),
        "tail (slot sharing group red) and l (slot sharing group default) are co-located, as tail and head of loop L",
        "give both the same slot sharing group",
    )
    apart = Job()
    apart.source("a", [1]).co_location_group("k").blocking().process("b", keep).co_location_group("k")
    refused(lambda: regions(apart), "b and a are co-located, but what is between them is stored")


def test_too_few_slots(tmp_path: Path) -> None:
    """One message that names what is needed, by group, and how to give more."""
    file = tmp_path / "job.py"
    file.write_text(
        "from streamproof_runtime import Job\n\n\ndef job():\n    made = Job()\n"
        "    ones = made.source('ones', [1], parallelism=2).slot_sharing_group('in')\n"
        "    ones.process('more', lambda _, n: [n], 3).slot_sharing_group('work')\n    return made\n"
    )
    plain: dict[str, Any] = {"level": "none", "variant": None}
    refused(
        lambda: Simulated(file, executors=2, slots=2, **plain),
        "the job needs 5 slots; there are 4 (2 for slot sharing group in, 3 for slot sharing group work)",
        "raise --taskmanagers or --slots, or lower the parallelism or the number of groups",
    )
    assert Simulated(file, executors=1, slots=5, **plain).seed(0)["wrong"] == ""


# --- runs


def records_of(outcome: Outcome) -> Records:
    """The log of a run."""
    return [json.loads(line) for line in lines(outcome.entries)]


def slots_only(records: Records) -> Records:
    """The events of slots."""
    return [r for r in records if r["trace"].endswith("/slots")]


def verdicts(records: Records, folder: Path, binding: Any = SLOTS, model: str = "slot_pool") -> set[str]:
    """The verdicts on a log; "error" for one that is none."""
    log = folder / "run.ndjson"
    log.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="ascii")
    try:
        return {v.answer for v in judge(binding.plan(log, None), model)}
    except InputError:
        return {"error"}


def shared(records: Records) -> list[dict[str, list[str]]]:
    """The subtasks in each slot, by reservation."""
    return [r["args"]["subtasks"] for r in records if r["event"] == "slots_reserved"]


@pytest.mark.parametrize("mode", share(["streaming", "batch"], 2))
def test_runs_with_groups(mode: str, tmp_path: Path) -> None:
    """The job requires as many slots as its groups need, uses no more, and its results are right; all judges accept."""
    restarts = 0
    for seed in range(1, 3):
        level = ("severe", "heavy")[seed % 2]
        outcome = Simulation(grouped(mode), seed=seed, level=level, executors=4, eager=seed % 2 == 0).run(200_000)
        assert outcome.finished, (seed, outcome.reason)
        assert Counter(outcome.results["sink"]) == Counter({1: 22, 0: 2})
        records = records_of(outcome)
        declared = [r["args"]["required"] for r in records if r["event"] == "slots_declared"]
        assert declared[0] == max(declared) == 3 + 2 + 2
        assert verdicts(records, tmp_path) == {"accepted"}, seed
        assert accepts(slots_only(records)), seed
        assert verdicts(records, tmp_path, BATON, "baton") == {"accepted"}, seed
        if mode == "batch":
            for binding, model in ((FAILOVER, "failover"), (REGIONS, "regions"), (PARTITIONS, "partition_lifecycle")):
                assert verdicts(records, tmp_path, binding, model) == {"accepted"}, (seed, model)
        restarts += outcome.attempts - 1
    assert restarts > 0


def check(seed: int, folder: Path, changes: int) -> tuple[int, int, int]:
    """A random job is right and accepted, and both judges agree on changed copies of its log; the number of its groups, and
    of rejected and accepted copies."""
    job, expected = grouped_batch(seed)
    try:
        number = len({*groups(job).values()})
    except JobError:
        return 0, 0, 0
    level = "severe" if seed % 4 == 3 else "heavy"
    outcome = Simulation(job, seed=seed, level=level, executors=4, slots=2, eager=seed % 3 == 0).run(100_000)
    assert outcome.finished, (seed, outcome.reason)
    assert {name: Counter(records or ()) for name, records in outcome.results.items()} == expected, seed
    records = records_of(outcome)
    assert verdicts(records, folder) == {"accepted"}, seed
    assert accepts(slots_only(records)), seed
    draw = random.Random(seed)
    counts = [0, 0]
    for n in range(changes):
        changed = copy.deepcopy(records)
        change(draw, slots_only(changed))
        mine = verdicts(changed, folder) == {"accepted"}
        assert mine is accepts(slots_only(changed)), (seed, n, mine)
        counts[mine] += 1
    return number, counts[0], counts[1]


def change(draw: random.Random, records: Records) -> None:
    """Another place, group, parallelism or co-location, in one event or wherever it is recorded."""
    moved = [r for r in records if r["event"] in ("slots_reserved", "tasks_deployed") and r["args"]["subtasks"]]
    kind = draw.randrange(6)
    if kind == 0 or not moved:  # a subtask is of another group, everywhere
        for r in (r for r in records if r["event"] == "slots_declared"):
            own = [g for g in r["args"]["groups"] if r["args"]["groups"][g]]
            to, operator = draw.choice(own), draw.choice([*r["args"]["groups"][own[0]]])
            r["args"]["groups"].setdefault(to, {})[operator] = r["args"]["groups"][own[0]].pop(operator)
            if draw.random() < 0.5:
                return
        return
    if kind == 1:  # another requirement of one declaration
        chosen = draw.choice([r for r in records if r["event"] == "slots_declared"])
        chosen["args"]["groups"][draw.choice([*chosen["args"]["groups"]])]["more"] = draw.choice((1, 2, 9))
        return
    reserved = draw.choice(moved)["args"]["subtasks"]
    slots = [*reserved]
    one, other = draw.choice(slots), draw.choice(slots)
    if kind == 2:  # two subtasks change places
        reserved[one][0], reserved[other][-1] = reserved[other][-1], reserved[one][0]
    elif kind == 3:  # a subtask comes into another slot, in both logs
        task = draw.choice(reserved[one])
        for r in moved:
            here = r["args"]["subtasks"]
            if task in here.get(one, ()) and other in here and len(here[one]) > 1:
                here[one].remove(task)
                here[other].append(task)
    elif kind == 4:  # a subtask is forgotten
        reserved[one].pop()
        if not reserved[one] and draw.random() < 0.5:
            del reserved[one]
    else:
        for r in (r for r in records if r["event"] == "slots_declared"):
            names = [n for own in r["args"]["groups"].values() for n in own]
            r["args"]["co_located"] = [*r["args"]["co_located"], names[:2] if len(names) > 1 else names]


@pytest.mark.long
def test_random_jobs_with_groups(tmp_path: Path) -> None:
    """Some of several groups."""
    found = [check(seed, tmp_path, 5) for seed in range(7)]
    assert sum(number > 1 for number, *_ in found) > 2
    assert sum(rejected for _, rejected, _ in found) > 10
    assert sum(accepted for *_, accepted in found) > 0


@pytest.mark.long
def test_many_random_jobs_with_groups(tmp_path: Path) -> None:
    """Several hundred."""
    found = [check(seed, tmp_path, 12) for seed in range(1000, 1300)]
    assert sum(number > 1 for number, *_ in found) > 100


def test_lies_about_who_shares_a_slot_are_rejected(tmp_path: Path) -> None:
    """Two groups in one slot, two subtasks of one operator, a tail without its head, and a slot that only one side knows."""
    records = records_of(Simulation(grouped(), executors=4).run())

    def answer(*swapped: tuple[str, str], only: str = "") -> set[str]:
        changed = copy.deepcopy(records)
        for r in changed:
            tasks = r.get("args", {}).get("subtasks") if r["trace"].endswith("/slots") else None
            for one, other in swapped if tasks and only in ("", r["event"]) else ():
                at = {task: slot for slot, own in tasks.items() for task in own}
                if one in at and other in at:
                    tasks[at[one]][tasks[at[one]].index(one)], tasks[at[other]][tasks[at[other]].index(other)] = (
                        other,
                        one,
                    )
        assert accepts(slots_only(changed)) is (verdicts(changed, tmp_path) == {"accepted"})
        return verdicts(changed, tmp_path)

    assert answer() == {"accepted"}
    every = shared(records)[0]
    slot = {task: s for s, own in every.items() for task in own}
    assert slot["halve0"] == slot["l0"] != slot["l1"] == slot["halve1"]
    assert answer(("most0", "last0")) == {"rejected"}  # of groups in and out
    assert answer(("halve0", "l1")) == {"rejected"}  # two heads, and two tails, in one slot each
    assert answer(("halve0", "halve1")) == {"rejected"}  # tails beside the wrong heads
    assert answer(("last0", "last1"), only="slots_reserved") == {"rejected"}


def test_co_located_operators_share_slots() -> None:
    """Subtask by subtask, wherever the turn would put them."""
    job = Job()
    numbers = job.source("numbers", range(12), parallelism=3)
    one = numbers.process("one", keep, 2).co_location_group("k")
    one.rebalance().process("two", keep, 3).rebalance().process("three", keep, 2).co_location_group("k").collect("all")
    reserved = 0
    for seed in range(6):
        records = records_of(Simulation(job, seed=seed, slots=3, level="heavy").run())
        assert shared(records), seed
        for tasks in shared(records):
            reserved += 1
            at = {task: slot for slot, own in tasks.items() for task in own}
            assert [at["one0"], at["one1"]] == [at["three0"], at["three1"]]
    assert reserved >= 7, "some run reserves slots again"


def test_processes_with_groups(tmp_path: Path) -> None:
    """On processes, with a kill: the result is right, the log accepted, the groups apart."""
    file = tmp_path / "job.py"
    source = Path(__file__).read_text()
    functions = source[source.index("def keep(") : source.index("# --- the API")]
    file.write_text(
        f"from typing import Any\nfrom streamproof_runtime import Job, Stream\n\n{functions}\n\njob = grouped\n"
    )
    logs = tmp_path / "logs"
    logs.mkdir()
    found = run(file, logs, executors=4, kills=["tm-1@12"])
    assert found["wrong"] == ""
    assert Counter(found["results"]["sink"]) == Counter({1: 22, 0: 2})
    (log,) = SLOTS.runs(logs)
    for binding, model in ((SLOTS, "slot_pool"), (BATON, "baton")):
        assert {v.answer for v in judge(binding.plan(log, None), model)} == {"accepted"}, model


def test_a_job_of_one_group_asks_for_a_slot_for_each_subtask() -> None:
    """So that it is spread as far as there are slots."""
    job = Job()
    job.source("numbers", range(12), parallelism=3).process("one", keep, 2).collect("all")
    records = records_of(Simulation(job).run())
    assert next(r["args"]["required"] for r in records if r["event"] == "slots_declared") == 6
    assert len(ExecutionGraph(job).tasks) == 6


@pytest.mark.parametrize(
    ("event", "name", "form"),
    [
        ("slots_declared", "groups", "an object"),
        ("slots_reserved", "subtasks", "an object"),
        ("offer_received", "from", "a text"),
        ("registered", "total", "a number"),
    ],
)
def test_a_log_of_an_older_version_is_one_message(event: str, name: str, form: str, tmp_path: Path) -> None:
    """With its line and a remedy; an argument of another form is one message, too."""
    records = [*map(json.loads, lines(Simulation(grouped(), executors=5).run().entries))]
    at = next(n for n, r in enumerate(records) if r["event"] == event)
    log = tmp_path / "old.ndjson"
    for value in (None, [{}]):
        changed = [*records[:at], {**records[at], "args": dict(records[at]["args"])}, *records[at + 1 :]]
        changed[at]["args"].pop(name)
        if value is not None:
            changed[at]["args"][name] = value
        log.write_text("".join(json.dumps(r) + "\n" for r in changed))
        with pytest.raises(InputError, match=rf"needs the argument '{name}', {form}") as error:
            SLOTS.plan(log, None)
        assert error.value.loc is not None
        assert (error.value.loc.file, error.value.loc.line) == (str(log), at + 1)
        assert ("trace the job again" in error.value.remedy) == (value is None)
