"""Records: one definition, with 1 and 3 TaskExecutors, in simulated runs, in stored partitions and in checkpoints."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from runtime_processes import run
from streamproof_runtime.command import Simulated
from streamproof_runtime.errors import Unsendable
from streamproof_runtime.jobs.records import MOST, expected_size, own, owned, size, total_size
from streamproof_runtime.subtasks.buffers import BYTES
from streamproof_runtime.subtasks.output_buffers import OutputBuffers

JOB = """
from decimal import Decimal
from streamproof_runtime import Job

def nested(n):
    value = None
    for _ in range(n):
        value = (n, value)
    return value

def job():
    made = Job("records", mode={mode!r})
    numbers = made.source("numbers", [1, 2]){pipe}
    made_of = numbers.process("make", lambda _, n: (({value}),)){exchange}
    made_of.process("show", lambda _, r: [({shown})]).collect("shown")
    return made
"""
"""A job of a function that makes a value of each number, and one that reads it."""
WAYS: dict[str, dict[str, Any]] = {"one": {"executors": 1}, "three": {"executors": 3}, "simulated": {}}
EXCHANGES = {"streaming": ".rebalance()", "batch": ".rebalance()"}
REFUSED = {
    "Decimal(n)": "a record has a value of type Decimal; records are numbers, text",
    "bytearray(b'x' * n)": "a record has a value of type bytearray; records are numbers, text",
    "memoryview(b'x')": "a record has a value of type memoryview; records are numbers, text",
    "[n, {2: {object()}}]": "a record has a value of type object; records are numbers, text",
    "nested(251)": "a record has values inside values, more than 250 deep",
    "b'x' * (1 << 26)": "a record takes 67,108,872 bytes; up to 67,108,864 can be sent",
}


def written(folder: Path, value: str, shown: str = "r", mode: str = "streaming", pipe: str = "") -> Path:
    """The job of a value."""
    made = folder / "given.py"
    made.write_text(JOB.format(value=value, shown=shown, mode=mode, pipe=pipe, exchange=EXCHANGES[mode]))
    return made


def outcome(path: Path, way: str, **more: Any) -> tuple[str, Any]:
    """What is wrong with a run, and its result."""
    if way == "simulated":
        found = Simulated(path, level="none", variant=None, executors=3, slots=2, **more).seed(0)
    else:
        found = run(path, slots=4, **WAYS[way], **more)
    return found["wrong"], found["results"].get("shown")


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_what_is_no_record_is_refused_in_a_simulated_run(value: str, mode: str, tmp_path: Path) -> None:
    """With the line of the function that made it."""
    wrong, _ = outcome(written(tmp_path, value, mode=mode), "simulated")
    assert wrong.startswith(f"make: {REFUSED[value]}")
    assert wrong.endswith(" (given.py:14)")


@pytest.mark.parametrize("way", ["one", "three"])
@pytest.mark.parametrize("value", ["bytearray(b'x' * n)", *(pytest.param(v, marks=pytest.mark.long) for v in REFUSED)])
def test_processes_refuse_the_same(value: str, way: str, tmp_path: Path) -> None:
    """With the same words, however many there are."""
    path = written(tmp_path, value)
    assert outcome(path, way) == outcome(path, "simulated")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("nested(250)", "r"),
        pytest.param("[1 << 700, {(n, 'k'): {n, 2.5}}, frozenset([b'b'])]", "r", marks=pytest.mark.long),
        pytest.param("'y' * ((1 << 26) - 8)", "len(r)", marks=pytest.mark.long),
    ],
)
def test_what_is_a_record_arrives_everywhere(value: str, shown: str, tmp_path: Path) -> None:
    """With the same result."""
    path = written(tmp_path, value, shown)
    right = outcome(path, "simulated")
    assert right[0] == ""
    assert len(right[1]) == 2
    assert all(outcome(path, way) == right for way in WAYS)
    assert outcome(written(tmp_path, value, shown, mode="batch"), "one") == right


def test_values_between_chained_functions_are_of_any_kind(tmp_path: Path) -> None:
    """They are not sent; what the last function returns is a record, or its line is in the message."""
    decimals = ".map(Decimal).map(lambda d: bytearray(b'x' * int(d)))"
    right = outcome(written(tmp_path, "bytes(n)", pipe=decimals), "simulated")
    assert right[0].startswith("numbers: a record has a value of type bytearray")
    assert right[0].endswith(" (given.py:13)")
    right = outcome(written(tmp_path, "len(n)", pipe=f"{decimals}.map(bytes)"), "simulated")
    assert right == ("", [1, 2])
    wrong, _ = outcome(written(tmp_path, "n", pipe=".flat_map(lambda n: None)"), "simulated")
    assert wrong == "numbers: TypeError: 'NoneType' object is not iterable (given.py:13)"


STATE = """
from decimal import Decimal
from streamproof_runtime import Job

def job():
    made = Job("states")

    def count(context, n):
        context.state["sum"] = context.state.get("sum", {zero}) + n
        return [int(context.state["sum"])]

    made.source("numbers", range({number})).rebalance().process("count", count).collect("shown")
    return made
"""


@pytest.mark.parametrize("way", ["simulated", pytest.param("three", marks=pytest.mark.long)])
def test_a_state_in_a_checkpoint_is_what_a_record_may_be(way: str, tmp_path: Path) -> None:
    """Without checkpoints it is of any kind."""
    path, number = tmp_path / "given.py", 3_000 if way == "simulated" else 200_000
    path.write_text(STATE.format(zero="Decimal(0)", number=number))
    assert outcome(path, way)[0] == ""
    wrong, _ = outcome(path, way, checkpoints=0.01 if way == "simulated" else 1)
    assert wrong.startswith("count: a record has a value of type Decimal")
    assert wrong.endswith(" (given.py:8)")
    path.write_text(STATE.format(zero="0", number=number))
    assert outcome(path, way, checkpoints=0.01 if way == "simulated" else 1)[0] == ""


LARGE = """
from streamproof_runtime import Job

def job():
    made = Job("large")
    made.source("numbers", range(70)).map(lambda n: (n % 35, b"x" * (1 << 20))).rebalance().{sink}("all")
    return made

def expected():
    return {{"all": {expected}}}
"""


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        ("collect", "[(n % 35, b'x' * (1 << 20)) for n in range(70)]"),
        pytest.param("collect_latest", "{n: b'x' * (1 << 20) for n in range(35)}", marks=pytest.mark.long),
    ],
)
def test_results_are_larger_than_a_record(sink: str, expected: str, tmp_path: Path) -> None:
    """They go in pieces."""
    path = tmp_path / "given.py"
    path.write_text(LARGE.format(sink=sink, expected=expected))
    assert run(path, executors=1, slots=4)["wrong"] == ""


@pytest.mark.long
def test_states_are_larger_than_a_record(tmp_path: Path) -> None:
    """A job with checkpoints of 70 MB goes on after a kill."""
    path = tmp_path / "given.py"
    path.write_text(LARGE.format(sink="collect", expected="[(n % 35, b'x' * (1 << 20)) for n in range(70)]"))
    found = run(path, executors=2, checkpoints=50, kills=["tm-1@40"])
    assert found["wrong"] == ""


def test_sizes_count_what_is_inside() -> None:
    """Large integers, text in bytes, and what is deep: a buffer is full at its size."""
    deep: Any = b"x" * 1000
    for _ in range(200):
        deep = [deep]
    for value, least in (
        (1 << (8 * 10**6), 10**6),
        ("\N{SNOWMAN}" * 1000, 3000),
        (deep, 1000),
        ((1, {2: "x" * 500}), 500),
    ):
        assert size(value) >= least
        assert size(own(value)) == size(value)
    made = OutputBuffers(512).add([("c", 0, [1 << (8 * BYTES)] * 5)])
    assert [len(values) for _, _, values in made] == [1] * 5
    with pytest.raises(Unsendable, match="up to 67,108,864 can be sent"):
        expected_size([b"x" * (MOST // 2)] * 2)


def test_records_together_are_as_records_one_by_one() -> None:
    """Their size, and what is copied: nothing of the copies is what a later change of the originals reaches."""
    draw = random.Random(5)
    plain = (
        0,
        -1,
        1 << 62,
        1 << 63,
        -(1 << 63),
        1 << 64,
        -(1 << 200),
        True,
        None,
        2.5,
        float("nan"),
        "",
        "ab",
        "\N{SNOWMAN}\ud800",
        b"xyz",
    )
    found = 0
    for number in range(300):
        kinds = [
            lambda: draw.choice(plain),
            lambda: (draw.choice(plain), draw.choice(plain)),
            lambda: [draw.choice(plain), [1]],
        ]
        given = [draw.choice(kinds[number % 3 : number % 3 + 1 + number % 2])() for _ in range(draw.randrange(5))]
        assert total_size(given) == sum(map(size, given))
        before = repr(given)
        copies = [owned(given), owned(iter(given))]
        for record in given:
            if type(record) is list:
                record[1].append(2)
                found += 1
        assert [repr(copy) for copy in copies] == [before] * 2
    assert found > 50
