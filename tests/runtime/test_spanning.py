"""Records that span buffers, and pools of buffers at senders: runs are right and accepted, wrong variants are caught."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from changed_logs import Records, compared, is_accepted, numbered, rearranged, records_of, total, verdicts, with_args
from nonempty import nonempty
from runtime_mix import rejections
from runtime_processes import run as run_on_processes
from shares import share
from span_judge import pools_are_right, spans_are_right
from spanning_jobs import KINDS, SIZE, spanned, spanning
from streamproof import check
from streamproof.system import Verdict
from streamproof_runtime import Job
from streamproof_runtime.errors import RuntimeFailure
from streamproof_runtime.jobmaster.regions import regions
from streamproof_runtime.jobs.records import size
from streamproof_runtime.simulator.simulation import Outcome, Simulation
from streamproof_runtime.subtasks.items import PART, RECORD
from streamproof_runtime.subtasks.sender_pools import LARGEST_SHARE, SenderPool, expect_enough
from streamproof_runtime.subtasks.spanning import Deserialisers, is_too_large, parts
from streamproof_runtime.variants.span_variants import FLOWS, POOLS, SUBTASKS
from streamproof_specs.credit.runtime_pools import BINDING as POOLS_BINDING
from streamproof_specs.credit.runtime_spans import BINDING as SPANS_BINDING
from streamproof_specs.cyclic.head import SPEC as HEAD

MACHINES = ("record_spans", "buffer_shares", "baton", "credit", "cyclic", "checkpoints", "loop_checkpoint_counts")


@pytest.mark.parametrize("most", [1, 7, 64, 10_000])
def test_a_record_is_put_together_from_its_parts(most: int) -> None:
    """Between parts of other channels, and also while the last parts still wait in the queue."""
    draw = random.Random(most)
    records = [(n, "x" * draw.randrange(400), [None, n]) for n in range(30)]
    together, seen = Deserialisers(), dict[str, list[object]](a=[], b=[])
    queues = {
        c: [p for r in own for p in parts((RECORD, {}, 0, [r]), most)]
        for c, own in zip("ab", (records[::2], records[1::2]), strict=True)
    }
    while any(queues.values()):
        channel = draw.choice([c for c, queue in queues.items() if queue])
        waiting = [values[0] for _, values in together.waiting(channel, queues[channel])]
        assert seen[channel] + waiting == (records[::2] if channel == "a" else records[1::2])
        item = queues[channel].pop(0)
        if item[0] == PART:
            assert len(item[3]) == most
            together.gather(channel, item[3])
        else:
            found = together.complete(channel, item[3])[0] if isinstance(item[3], bytes) else item[3]
            seen[channel] += found
    assert not together.begun
    assert is_too_large((RECORD, {}, 0, ["x" * 93]), 100)
    assert not is_too_large((RECORD, {}, 0, ["x" * 92]), 100)
    assert size("x" * 92) == 100


def test_every_channel_has_the_same_share_up_to_one_buffer() -> None:
    """At least one buffer and at most the largest share; a pool without a buffer for each channel is refused."""
    for buffers in range(1, 80):
        for count in range(1, min(buffers, 9) + 1):
            sizes = [*SenderPool([*map(str, range(count))], buffers).sizes.values()]
            assert sum(sizes) == min(buffers, count * LARGEST_SHARE)
            assert min(sizes) >= 1
            assert max(sizes) - min(sizes) <= 1
    graphs = [region.graph for region in regions(spanning(0)[0])]
    expect_enough(graphs, 2)
    with pytest.raises(RuntimeFailure, match="sends on 2 channels, each of which needs a buffer, and has 1 buffer"):
        expect_enough(graphs, 1)


def run(kind: str, seed: int) -> Outcome:
    """A run that is right, and has records that span buffers."""
    outcome, wrong = spanned(seed, **KINDS[kind])
    assert not wrong, (kind, seed)
    assert any(entry[2] == "record_spans" for entry in outcome.entries)
    return outcome


@pytest.mark.parametrize("seeds", [1, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", share(KINDS, 2))
def test_runs_are_right_and_accepted(kind: str, seeds: int, tmp_path: Path) -> None:
    """Under heavy faults, by every machine; the second judge agrees."""
    for seed in nonempty(range(seeds)):
        outcome = run(kind, seed)
        assert not [*rejections(outcome, tmp_path, None if seeds > 1 else MACHINES)], seed
        records = records_of(outcome)
        assert spans_are_right(records)
        assert pools_are_right(records)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_runs_are_right(kind: str) -> None:
    """Under heavy faults."""
    for seed in range(60, 360):
        run(kind, seed)


def caught(variant: str, folder: Path, seeds: int) -> set[str]:
    """The machines that reject the log of a variant."""
    kind = "unaligned" if variant == "cut-forgotten" else "pools" if variant in POOLS else "aligned"
    more = {**KINDS[kind], "sender_buffers": 3} if variant in POOLS else KINDS[kind]
    for seed in range(seeds):
        outcome, _ = spanned(seed, variant, **more)
        records = records_of(outcome)
        found = {*rejections(outcome, folder, ("record_spans", "buffer_shares", "checkpoints"))}
        assert ("record_spans" in found) is not spans_are_right(records)
        assert ("buffer_shares" in found) is not pools_are_right(records)
        if found:
            return found
    return set()


@pytest.mark.parametrize("variant", share({**SUBTASKS, **FLOWS, **POOLS}, 2))
def test_each_wrong_variant_is_caught(variant: str, tmp_path: Path) -> None:
    """By the machine of the rule that it breaks."""
    found = caught(variant, tmp_path, 12)
    own = {"begun-forgotten": "checkpoints", "cut-forgotten": "checkpoints"}
    assert own.get(variant, "buffer_shares" if variant in POOLS else "record_spans") in found


def changed(draw: random.Random, records: Records, events: tuple[str, ...]) -> Records:
    """A copy with one event left out, doubled, moved, or with another number."""
    at = draw.choice([at for at, record in enumerate(records) if record["event"] in events])
    copy = rearranged(draw, records, at, lambda: draw.randrange(-30, 31))
    if copy is None:
        args = {
            name: value + draw.choice((-1, 1)) if type(value) is int else value
            for name, value in records[at]["args"].items()
        }
        copy = with_args(records, at, args)
    return numbered(copy)


@pytest.mark.parametrize("changes", [5, pytest.param(60, marks=pytest.mark.long)])
def test_both_judges_agree_on_changed_logs(changes: int, tmp_path: Path) -> None:
    """Events of parts and of pools are left out, doubled, moved or changed."""
    counts = []
    for seed in range(1 if changes < 20 else 3):
        records = records_of(run("pools", seed))
        draw = random.Random(seed)
        for binding, model, second, events in (
            (SPANS_BINDING, "record_spans", spans_are_right, ("record_spans", "part_received", "record_received")),
            (POOLS_BINDING, "buffer_shares", pools_are_right, ("pool_opened", "buffers_sent", "credits_received")),
        ):

            def machine(copy: Records, binding: object = binding, model: str = model) -> bool:
                return is_accepted(copy, tmp_path, binding, model)

            def change(own: Records, draw: random.Random = draw, events: tuple[str, ...] = events) -> Records:
                return changed(draw, own, events)

            counts.append(compared(records, change, changes, (machine, second), (seed, model)))
    assert total(counts)[1] > 0


def test_a_head_takes_parts_without_holding_them() -> None:
    """A part is a word that no channel brings together with others: all properties of a loop head hold with it."""
    found = check(HEAD, parameters={"batons": '{"part": [], "B": [[0, 1]]}'}).findings
    assert {finding.verdict for finding in found} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("parts", "channels", "answers"),
    [
        (300, 20, {"accepted"}),
        pytest.param(4_000, 64, {"accepted"}, marks=pytest.mark.long),
        pytest.param(5_000, 65, {"inconclusive"}, marks=pytest.mark.long),
    ],
)
def test_how_many_parts_and_channels_are_followed(parts: int, channels: int, answers: set[str], tmp_path: Path) -> None:
    """A record of thousands of parts, and a pool of 64 channels."""
    job = Job("large")
    large = job.source("large", ["x" * 16 * parts]).rebalance().process("length", lambda _, text: [len(text)], 2)
    large.collect("lengths")
    many = job.source("many", range(3 * channels)).rebalance().process("same", lambda _, n: [n], channels)
    many.collect("all")
    outcome = Simulation(job, buffer_size=16, sender_buffers=3 * channels, slots=channels).run()
    assert outcome.results["lengths"] == [16 * parts], outcome.reason
    found = verdicts(outcome, tmp_path, SPANS_BINDING, "record_spans")
    assert {v.answer for v in found} == answers
    pools = verdicts(outcome, tmp_path, POOLS_BINDING, "buffer_shares")
    assert {v.answer for v in pools if "pool of many" in v.title} == answers


PROCESSES = """
from spanning_jobs import spanning


def job():
    return spanning(3)[0]


def expected():
    return {"all": sorted(spanning(3)[1].elements())}
"""


@pytest.mark.parametrize("more", [{}, pytest.param({"kills": ("tm-1@9",)}, marks=pytest.mark.long)])
def test_runs_on_processes_are_right_and_accepted(more: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    """With small buffers and pools, also if a TaskExecutor is killed."""
    support = Path(__file__).resolve().parents[1] / "support"
    file = tmp_path / "spanning_file.py"
    file.write_text(f"import sys\nsys.path.append({str(support)!r})\n{PROCESSES}")
    logs = tmp_path / "logs"
    logs.mkdir()
    result = run_on_processes(file, logs, executors=3, buffer_size=SIZE, sender_buffers=3, **more)
    assert not result["wrong"]
    assert Counter(map(tuple, result["results"]["all"])) == spanning(3)[1]
