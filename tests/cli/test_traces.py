"""`streamproof replay` and `streamproof export`: traces as files, taken again and judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TRACE = Path("streamproof-out/counter/low.itf.json")


@pytest.fixture
def trace(streamproof: Any) -> Path:
    """A counterexample of the counter, written by `check`."""
    assert streamproof("check", "counter.py", "-q").code == 12
    return TRACE


def edit(path: Path, change: Any) -> None:
    """Change the JSON document at `path` in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_a_trace_replays(streamproof: Any, trace: Path) -> None:
    """The trace is shown again, with what it violates, and the exit code is 0."""
    done = streamproof("replay", str(trace), "--model", "counter.py")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Counterexample: low is violated after step 3\n")
    assert done.out.splitlines()[-1] == f"{trace}: replayed, 3 steps; it violates low"


def test_a_witness_replays(streamproof: Any, trace: Path) -> None:
    """A witness reaches its property."""
    done = streamproof("replay", str(trace.with_name("full.itf.json")), "--model", "counter.py", "-q")
    assert (done.code, done.out) == (0, "streamproof-out/counter/full.itf.json: replayed, 3 steps; it reaches full\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"mbt::actionTaken": "decrement"},
            "broken.itf.json: states[1].mbt::actionTaken: no action 'decrement'; the model has",
        ),
        (
            {"n": {"#bigint": "3"}, "mbt::actionTaken": None},
            "step 1: increment() does not lead to the next state of the trace",
        ),
    ],
)
def test_a_step_that_leads_nowhere_rejects_the_trace(
    streamproof: Any, folder: Path, change: dict[str, Any], reason: str
) -> None:
    """A well-formed file with a step that the model does not have ends with 161, in the JSON too."""
    streamproof("check", "counter.py", "-q")
    path = folder / "streamproof-out" / "counter" / "low.itf.json"
    document = json.loads(path.read_text())
    document["states"][1].update(change)
    broken = folder / "broken.itf.json"
    broken.write_text(json.dumps(document))
    done = streamproof("replay", "broken.itf.json", "--model", "counter.py", "-q", "--json", "-")
    answer = json.loads(done.out)
    assert (done.code, answer["exit_code"], answer["accepted"]) == (161, 161, False)
    assert answer["reason"].startswith(reason)


def test_export_tells_machines_what_it_wrote(streamproof: Any, folder: Path) -> None:
    """With `--json -` the document stands alone on standard output and names the files."""
    done = streamproof("export", "counter.py", "--format", "dot", "--out", "graph.dot", "--json", "-")
    answer = json.loads(done.out)
    assert (done.code, done.err) == (0, "graph.dot\n")
    assert {key: answer[key] for key in ("schema", "model", "parameters", "format", "files", "exit_code")} == {
        "schema": "streamproof.export/1",
        "model": "counter",
        "parameters": {"limit": 3},
        "format": "dot",
        "files": ["graph.dot"],
        "exit_code": 0,
    }


def test_a_bundled_model_is_found_by_the_name_in_the_file(streamproof: Any) -> None:
    """Without --model the file's own model, variant and parameters are taken."""
    streamproof("check", "reference.die_hard", "-p", "goal=2", "--out", "out", "-q")
    done = streamproof("replay", "out/measured.itf.json", "--json", "-", "-q")
    document = json.loads(done.out)
    assert (done.code, document["model"], document["parameters"]["goal"]) == (0, "reference.die_hard", 2)
    assert (document["schema"], document["accepted"], document["exit_code"]) == ("streamproof.replay/1", True, 0)


def test_a_file_of_an_unknown_model_asks_for_it(streamproof: Any, trace: Path) -> None:
    """A model that is not bundled, in a file that does not say where it is, has to be named."""
    edit(trace, lambda d: [d["#meta"].pop(key) for key in ("source", "seal")])
    done = streamproof("replay", str(trace))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"streamproof: error: {trace} is of the model 'counter', which is not a bundled model\n"
        "  name it with --model path/to/file.py\n"
    )


def test_a_tampered_step_is_rejected(streamproof: Any, trace: Path) -> None:
    """A state that does not follow from the one before ends with 161 and says which step."""
    edit(trace, lambda d: d["states"][2].update({"n": {"#bigint": "3"}}))
    done = streamproof("replay", str(trace), "--model", "counter.py", "--json", "answer.json")
    assert (done.code, done.out) == (161, "")
    assert done.err.startswith("streamproof: error: step 2: increment() does not lead to the next state of the trace\n")
    document = json.loads(Path("answer.json").read_text())
    assert (document["accepted"], document["exit_code"]) == (False, 161)


def test_a_trace_that_shows_nothing_is_rejected(streamproof: Any, trace: Path) -> None:
    """A behaviour of the model that does not violate its property ends with 161."""
    edit(trace, lambda d: d["states"].pop())
    done = streamproof("replay", str(trace), "--model", "counter.py")
    assert done.code == 161
    assert done.err == ("streamproof: error: low is true in the last state, so the trace does not violate it\n")


def test_another_variant_may_not_allow_the_trace(streamproof: Any, trace: Path) -> None:
    """The same file on a variant that takes other steps is rejected."""
    assert streamproof("replay", str(trace), "--model", "counter.py", "--variant", "jumping").code == 161


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["#meta"]["parameters"].update({"limits": 3}),
            "#meta.parameters.limits: counter has no such parameter",
        ),
        (lambda d: d["#meta"]["parameters"].update({"limit": "3"}), "#meta.parameters.limit: '3' is not of type int"),
        (lambda d: d["states"][1].pop("n"), "states[1]: the variable n is missing"),
    ],
)
def test_a_broken_file_is_bad_input(streamproof: Any, trace: Path, change: Any, message: str) -> None:
    """What the file says wrongly of itself ends with 2, the place in it and what was expected."""
    edit(trace, change)
    done = streamproof("replay", str(trace), "--model", "counter.py")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"streamproof: error: {trace}: {message}\n")


def test_every_trace_is_exported(streamproof: Any, folder: Path) -> None:
    """`export --format itf` writes the counterexample and the witness, and prints their paths."""
    done = streamproof("export", "counter.py", "--format", "itf", "--out", "traces")
    assert (done.code, done.out) == (0, "traces/low.itf.json\ntraces/full.itf.json\n")
    assert streamproof("replay", "traces/low.itf.json", "--model", "counter.py", "-q").code == 0


def test_a_trace_made_of_actions_is_exported(streamproof: Any, folder: Path) -> None:
    """`--action` says step by step what happens; a step that is not possible is rejected."""
    arguments = ("export", "counter.py", "--format", "itf", "--out", "two.itf.json", "--action", "increment()")
    assert streamproof(*arguments, "--action", "increment").code == 0
    states = json.loads((folder / "two.itf.json").read_text())["states"]
    assert [state["n"] for state in states] == [{"#bigint": "0"}, {"#bigint": "1"}, {"#bigint": "2"}]
    done = streamproof(*arguments, *(["--action", "increment"] * 3))
    assert done.code == 161
    assert done.err.startswith("streamproof: error: counter.py:23: step 4: increment() is not enabled\n")


def test_graphs_and_traces_are_drawn(streamproof: Any, folder: Path) -> None:
    """`--format dot` writes the reachable graph, or with a property its trace; `--svg` draws it."""
    assert streamproof("export", "counter.py", "--format", "dot", "--out", "graph.dot").code == 0
    assert (folder / "graph.dot").read_text().startswith('digraph "counter" {')
    done = streamproof("export", "counter.py", "--format", "dot", "--property", "low", "--out", "low.dot", "--svg")
    assert (done.code, done.out) == (0, "low.dot\nlow.svg\n")
    assert (folder / "low.dot").read_text().startswith('digraph "counter: low" {')
    assert "<svg" in (folder / "low.svg").read_text()


def test_a_model_is_exported_for_spin(streamproof: Any, folder: Path) -> None:
    """`--format promela` writes the model under its name into a folder, or into the file named."""
    done = streamproof("export", "counter.py", "--format", "promela", "--out", "spin")
    assert (done.code, done.out) == (0, "spin/counter.pml\n")
    assert streamproof("export", "counter.py", "--format", "promela", "--out", "c.pml").out == "c.pml\n"
    text = (folder / "c.pml").read_text()
    assert text == (folder / "spin" / "counter.pml").read_text()
    assert text.startswith("/* counter")
    assert "active proctype model()" in text


def test_a_model_is_exported_for_tlc(streamproof: Any, folder: Path) -> None:
    """`--format tla` writes a module and its configurations into a folder; the JSON says what TLC is asked, and how."""
    done = streamproof("export", "counter.py", "--format", "tla", "--out", "tla", "--json", "-")
    assert done.code == 0
    document = json.loads(done.out)
    assert document["files"] == [
        f"tla/{name}" for name in ("counter.tla", "counter.cfg", "counter_states.cfg", "counter_full.cfg")
    ]
    assert document["left_out"] == []
    listed = {(a["configuration"], a["name"]): (a["property"], a["violated_means"]) for a in document["asked"]}
    assert listed["counter_full.cfg", "unreached_full"] == ("full", "reached")
    assert listed["counter.cfg", "low"] == ("low", "violated")
    assert (folder / "tla" / "counter.tla").read_text().splitlines()[0].startswith("---")
    (folder / "tla" / "counter_states.cfg").unlink()
    again = streamproof("export", "counter.py", "--format", "tla", "--out", "tla")
    assert (again.code, again.out.splitlines()) == (0, document["files"])
    (folder / "mine").mkdir()
    (folder / "mine" / "counter.cfg").write_text("mine")
    refused = streamproof("export", "counter.py", "--format", "tla", "--out", "mine")
    assert refused.code == 153
    assert "mine/counter.cfg exists and was not written by streamproof" in refused.err
    assert [path.name for path in (folder / "mine").iterdir()] == ["counter.cfg"]


def test_a_folder_of_tla_may_have_a_dot(streamproof: Any, folder: Path) -> None:
    """The name of a bundled model is a good name for the folder of its modules."""
    done = streamproof("export", "counter.py", "--format", "tla", "--out", "out/reference.counter")
    assert (done.code, (folder / "out" / "reference.counter" / "counter.tla").is_file()) == (0, True)


WIDE = """
from streamproof import Array, Model, Range, State, action, eventually, require, temporal


class Wide(Model):
    def state(self):
        return State(a=Array(12, Range(0, 3)), q=Array(12, Range(0, 11)))

    @action(i=range(3))
    def go(self, s, i):
        require(s.a[i] < 3)
        s.a[i] += 1

    @temporal
    def small(self, s):
        return eventually(s.a[0] == 3)

    @temporal
    def large(self, s):
        return eventually(sum(s.a[s.q[i]] if s.a[s.q[s.a[i]]] > s.a[i] else s.q[s.a[i]] for i in range(12)) > 30)
"""


def test_a_formula_that_is_too_large_for_spin_is_left_out(streamproof: Any, tmp_path: Path) -> None:
    """The model and the other formulas are written; the one left out is named with its line. Alone it is refused."""
    Path("wide.py").write_text(WIDE)
    done = streamproof("export", "wide.py", "--format", "promela", "--out", "out", "--json", "answer.json")
    assert done.code == 0
    assert sorted(p.name for p in Path("out").glob("*.pml")) == ["wide.pml", "wide.small.pml"]
    assert "left out: wide.py:19: large: a condition of a temporal property has more than 2,000 cases" in done.out
    assert json.loads(Path("answer.json").read_text())["left_out"] == ["large"]
    alone = streamproof("export", "wide.py", "--format", "promela", "--out", "out", "--property", "large")
    assert alone.code == 152
    assert "wide.py:19: large: a condition" in alone.err
