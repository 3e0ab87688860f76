"""Logs that lack an end, or the events of loops, and runs that change a record inside a buffer: none is accepted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changed_logs import Records, numbered, records_of, verdicts
from nonempty import nonempty
from runtime_mix import LIMIT, crashes, readings
from runtime_processes import run
from runtime_runs import EXAMPLES, example
from streamproof.conformance import judge
from streamproof_runtime.command import Simulated
from streamproof_runtime.jobs.api import Job
from streamproof_runtime.jobs.records import content
from streamproof_runtime.simulator.simulation import Simulation
from streamproof_runtime.subtasks.items import RECORD, Item
from streamproof_runtime.subtasks.termination import BatonSubtask
from streamproof_specs.baton.runtime import BINDING as BATON
from streamproof_specs.cyclic.runtime.binding import BINDING as CYCLIC
from tampering.runtime_lies import recorded

LOOPS = ("loop_opened", "feedback_received", "spill_read")


def answers(records: Records, folder: Path, binding: Any = BATON) -> list[tuple[str, str]]:
    """The answers of a machine on a log, numbered anew, and why."""
    return [(v.answer, v.reason or "") for v in verdicts(numbered(records), folder, binding, "baton")]


def read(run: Path) -> Records:
    """The events of a log."""
    return [json.loads(line) for line in run.read_text(encoding="ascii").splitlines()]


def without(records: Records, is_gone: Callable[[dict[str, Any]], bool]) -> Records:
    """A copy without some events, of which there are some."""
    left = [record for record in records if not is_gone(record)]
    assert len(left) < len(records)
    return left


def test_a_log_without_events_of_loops_is_inconclusive(tmp_path: Path) -> None:
    """With the head of which nothing is said."""
    for log in nonempty(recorded(tmp_path, ["walk", "loop"])):
        found = answers(without(read(log), lambda record: record["event"] in LOOPS), tmp_path, CYCLIC)
        assert {answer for answer, _ in found} == {"inconclusive"}
        assert all("the log has no event of the inputs of" in why for _, why in found)


def test_who_has_sent_end_has_terminated(tmp_path: Path) -> None:
    """Whenever END was taken, the log has the event before it; a whole log without those events is rejected, too."""
    (log,) = recorded(tmp_path, ["words"])
    records = read(log)
    assert {answer for answer, _ in answers(records, tmp_path)} == {"accepted"}
    own = [record for record in records if record["event"] == "terminated"]
    for gone in own:
        taken = [
            r for r in records if r["event"] == "channel_released" and r["args"]["channel"].startswith(gone["process"])
        ]
        found = answers(without(records, lambda record, gone=gone: record is gone), tmp_path)
        assert bool(taken) <= any(answer == "rejected" for answer, _ in found)
        alone = answers(without(_until(records, gone, taken), lambda record, gone=gone: record is gone), tmp_path)
        assert bool(taken) is any(f"END was taken, but {gone['process']} has not terminated" in why for _, why in alone)
    assert any(a == "rejected" for a, _ in answers(without(records, lambda r: r["event"] == "terminated"), tmp_path))


def test_who_has_sent_end_that_nobody_took_has_terminated(tmp_path: Path) -> None:
    """A log that ends when END has been sent has the event before it."""
    (log,) = recorded(tmp_path, ["words"])
    records = read(log)
    sent = 0
    for at, gone in enumerate(records):
        later = [r for r in records[at:] if r["process"] == gone["process"] and r["event"] == "buffers_sent"]
        if gone["event"] == "terminated" and later:
            found = answers(without(records[: records.index(later[0]) + 1], lambda r, gone=gone: r is gone), tmp_path)
            sent += any(answer == "rejected" and "has sent more on" in why for answer, why in found)
    assert sent > 2


def test_a_writer_whose_partition_is_finished_has_terminated(tmp_path: Path) -> None:
    """Though its attempt was interrupted, so that nobody reads it."""
    records = records_of(Simulation(example("sales").job(), seed=0, level="heavy").run(20_000))
    finished = {record["trace"] for record in records if record["event"] == "finished"}
    own = [r for r in records if r["event"] == "terminated" and r["trace"] not in finished and "_to_" in r["process"]]
    for gone in nonempty(own):
        found = answers(without(records, lambda record, gone=gone: record is gone), tmp_path)
        assert any(answer == "rejected" and "has not terminated" in why for answer, why in found)


@pytest.mark.parametrize("seeds", [range(1, 3), pytest.param(range(3, 60), marks=pytest.mark.long)])
def test_buffers_of_an_unaligned_checkpoint_are_sent_again(seeds: range, tmp_path: Path) -> None:
    """They have no event of their own, and the logs are accepted; so are those of aligned checkpoints."""
    for seed in nonempty(seeds):
        about: dict[str, Any] = {"checkpoint_interval": 100_000, "unaligned": seed % 3 != 0}
        simulation = Simulation(readings().job(), seed=seed, faults_given=crashes(seed), **about)
        simulation.records = 1 + seed % 3
        assert {answer for answer, _ in answers(records_of(simulation.run(LIMIT)), tmp_path)} == {"accepted"}, seed


def test_names_of_operators_may_end_with_digits(tmp_path: Path) -> None:
    """The end of the writer of a1_to_b2, subtask 0, is that of a1_to_b20."""
    job = Job("digits")
    job.source("a1", range(4), 2).blocking().process("b2", lambda _, n: [n], 2).blocking().collect("c3")
    records = records_of(Simulation(job).run())
    assert {answer for answer, _ in answers(records, tmp_path)} == {"accepted"}
    for event in ("terminated", "partition_finished"):
        gone = next(r for r in records if r["event"] == event and "b2" in str((r["process"], r.get("args"))))
        found = answers(without(records, lambda record, gone=gone: record is gone), tmp_path)
        assert "rejected" in {answer for answer, _ in found}


def _until(records: Records, gone: dict[str, Any], taken: Records) -> Records:
    """A log that ends when an END is taken for the first time: nobody behind has terminated, and the job has not."""
    end = records.index(taken[0]) if taken else records.index(gone)
    return records[: end + 1]


def test_a_writer_that_has_terminated_has_a_finished_partition(tmp_path: Path) -> None:
    """Also if it was deleted at once, because its region was canceled."""
    for log in nonempty(recorded(tmp_path, ["sales", "batch-69"])):
        records = read(log)
        assert {answer for answer, _ in answers(records, tmp_path)} == {"accepted"}
        for gone in nonempty(record for record in records if record["event"] == "partition_finished"):
            found = answers(without(records, lambda record, gone=gone: record is gone), tmp_path)
            dataset = gone["args"]["partition"].partition("/")[0]
            assert any(answer == "rejected" and f"of {dataset} is not finished" in why for answer, why in found)


@pytest.mark.parametrize("name", ["walk", "sales", "words"])
def test_the_job_master_gives_up_slots_at_an_end(name: str, tmp_path: Path) -> None:
    """Its log lacks the ends of regions and of the job, alone and together."""
    (log,) = recorded(tmp_path, [name])
    records = read(log)
    ends = ("finished", "region_finished", "job_finished")
    for gone in ((ends[2],), ends[:2], ends):
        found = answers(without(records, lambda record, gone=gone: record["event"] in gone), tmp_path)
        assert "rejected" in {answer for answer, _ in found}


class Losing(BatonSubtask):
    """A subtask that loses the last record of a buffer that arrives, or takes it twice."""

    changed = staticmethod(lambda values: values[:-1])

    def deliver(self, channel: str, item: Item) -> None:
        """One of the third buffer."""
        self.arrived_buffers = getattr(self, "arrived_buffers", 0) + (item[0] == RECORD)
        if item[0] == RECORD and self.arrived_buffers == 3:
            item = (*item[:3], self.changed(item[3]))
        super().deliver(channel, item)


class Doubling(Losing):
    """The last record twice."""

    changed = staticmethod(lambda values: [*values, values[-1]])


class Exchanging(Losing):
    """Another record of the same size."""

    changed = staticmethod(lambda values: [*values[:-1], "other"])


@pytest.mark.parametrize("subtask", [Losing, Doubling, Exchanging])
def test_records_inside_a_buffer_are_those_that_were_sent(subtask: type[BatonSubtask], tmp_path: Path) -> None:
    """A buffer that arrives with other records is rejected, with what was sent."""
    for seed in range(3):
        outcome = Simulation(example("word_count").job(), seed=seed, subtask_type=subtask).run(50_000)
        found = answers(records_of(outcome), tmp_path)
        assert any(answer == "rejected" and "and other records: " in why for answer, why in found)


def test_equal_records_have_one_content_in_every_process() -> None:
    """Whatever the order of sets; other records, types and numbers of records have another one."""
    draw = random.Random(4)
    names = [f"name{n}" for n in range(50)]
    found = set()
    for _ in range(5):
        draw.shuffle(names)
        found.add(content([{1: frozenset(names)}, {*names}, ("{", 1 << 20_000, "\ud800")]))
    assert len(found) == 1
    others = (
        [1],
        [1.0],
        [True],
        ["1"],
        [(1,)],
        [[1]],
        [1, 1],
        [{1}],
        [frozenset([1])],
        [{1: 1}],
        [b"1"],
        [1 << 20_000],
        [[{}], 1],
    )
    assert len({*map(content, others)}) == len(others)


def test_contents_agree_on_processes(tmp_path: Path) -> None:
    """Of a job with sets, on three TaskExecutors, in whose processes sets have different orders."""
    job = tmp_path / "given.py"
    job.write_text(
        "from streamproof_runtime import Job\n"
        "def job():\n    made = Job('sets')\n"
        "    words = [frozenset(f'{a}{b}' for a in 'abcdefgh') for b in range(40)]\n"
        "    spread = made.source('words', words).rebalance().process('spread', lambda _, r: [{r: {*r}}], 3)\n"
        "    spread.map(lambda r: 1).collect('ones')\n    return made\n"
        "def expected():\n    return {'ones': [1] * 40}\n"
    )
    logs = tmp_path / "logs"
    logs.mkdir()
    assert run(job, logs, executors=3)["wrong"] == ""
    (folder,) = BATON.runs(logs)
    found = judge(BATON.plan(folder, None), "baton")
    assert [v.answer for v in found] == ["accepted"]
    assert any('"content":"' in file.read_text() for file in logs.iterdir())


def test_a_simulated_run_has_contents(tmp_path: Path) -> None:
    """Of each buffer that leaves, and of each that arrives."""
    simulated = Simulated(EXAMPLES / "word_count.py", level="none", variant=None, executors=3, slots=2)
    events = [json.loads(line) for line in simulated.seed(0)["lines"]()]
    for event in events:
        args = event.get("args", {})
        if event["event"] in ("record_produced", "record_received"):
            assert args["content"]
        if event["event"] == "record_processed":
            assert len(args["contents"]) == len(args["channels"])
    assert {"record_produced", "record_received", "record_processed"} <= {event["event"] for event in events}
