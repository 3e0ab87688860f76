"""`streamproof counterexamples`: the committed files are those that the specifications promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamproof.base.options import SearchOptions
from streamproof.exchange.itf.reading import read_itf, read_meta
from streamproof.language.declare.spec import Spec
from streamproof.model_registry import Target, bundled, find
from streamproof.system import Finding, System, Verdict
from streamproof.system.verdict import CheckResult

COMMITTED = Path(__file__).parents[2] / "counterexamples"
KEPT = Path("kept/counter/jumping/low.itf.json")


@pytest.fixture
def bundle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the counter, with expected verdicts, the only bundled model."""

    def replace(expected: dict[str, str]) -> None:
        spec = Spec(find("counter.py").spec.model, expected={"jumping": expected})
        monkeypatch.setattr("streamproof.api.counterexamples.bundled", lambda: {"counter": None})
        monkeypatch.setattr("streamproof.api.counterexamples.find", lambda name: Target(name, spec, True))

    return replace


@pytest.mark.long
def test_the_committed_counterexamples_are_right(streamproof: Any) -> None:
    """Each committed trace replays, shows its violation and is as short as can be; none is missing or left over."""
    done = streamproof("counterexamples", "--out", str(COMMITTED), "--check")
    assert (done.code, done.err) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_the_committed_counterexamples_replay(part: int, streamproof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, for a twentieth of the models and without searches: committed traces are taken for the shortest."""
    files = {(m.model, m.variant, m.property): f for f in COMMITTED.rglob("*.itf.json") for m in [read_meta(f)]}

    def committed(system: System, options: SearchOptions) -> CheckResult:
        found = []
        for prop in map(system.property, options.properties):
            file = files.get((system.name, system.variant, prop.name))
            trace = None if file is None else read_itf(file, system)
            found.append(Finding(prop.name, prop.kind, Verdict.VIOLATED, trace))
        return CheckResult(tuple(found))

    chosen = [name for name in bundled() if not name.startswith("reference.")][part::20]
    monkeypatch.setattr("streamproof.api.counterexamples.bundled", lambda: chosen)
    monkeypatch.setattr("streamproof.api.counterexamples.CHECKS", {"explicit": SimpleNamespace(run=committed)})
    done = streamproof("counterexamples", "--out", str(COMMITTED), "--check")
    assert (done.code, done.err) == (0, "")


@pytest.mark.long
def test_the_same_specifications_give_the_same_bytes(folder: Path) -> None:
    """Two processes with different hash seeds write identical files."""
    written = []
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "streamproof", "counterexamples", "--out", seed],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        files = sorted(p for p in (folder / seed).rglob("*") if p.is_file())
        written.append({p.relative_to(folder / seed): p.read_bytes() for p in files})
    assert len(written[0]) >= 30
    assert written[0] == written[1]


def test_the_json_says_what_was_written(streamproof: Any, bundle: Any, folder: Path) -> None:
    """The document names each violation with its file and length, and what is wrong."""
    bundle({"low": "violated"})
    answer = json.loads(streamproof("counterexamples", "--out", "kept", "--json", "-").out)
    assert (answer["schema"], answer["written"], answer["problems"], answer["exit_code"]) == (
        "streamproof.counterexamples/1",
        True,
        [],
        0,
    )
    (entry,) = answer["counterexamples"]
    assert (entry["model"], entry["variant"], entry["property"], entry["file"]) == (
        "counter",
        "jumping",
        "low",
        str(KEPT),
    )
    KEPT.unlink()
    again = streamproof("counterexamples", "--out", "kept", "--check", "--json", "-")
    assert (again.code, json.loads(again.out)["problems"]) == (161, [f"{KEPT}: missing"])


def test_promised_violations_are_written(streamproof: Any, bundle: Any, folder: Path) -> None:
    """The trace and its text are written under model, variant and property; the text says how to see it again."""
    bundle({"low": "violated"})
    done = streamproof("counterexamples", "--out", "kept")
    assert (done.code, done.out, done.err) == (0, "1 counterexamples written in kept, 0 problems\n", "")
    assert sorted(str(p) for p in Path("kept").rglob("*") if p.is_file()) == [
        str(KEPT),
        str(KEPT.with_name("low.txt")),
    ]
    text = KEPT.with_name("low.txt").read_text()
    assert "  reproduce   streamproof check counter --variant jumping --property low\n" in text
    assert streamproof("counterexamples", "--out", "kept", "--check").code == 0


def test_a_promise_that_is_not_kept_is_a_problem(streamproof: Any, bundle: Any) -> None:
    """A property that is expected to be violated and holds is reported, in both modes."""
    bundle({"low": "violated", "grows": "violated"})
    for mode in ((), ("--check",)):
        done = streamproof("counterexamples", "--out", "kept", *mode)
        assert (done.code, done.err) == (161, "counter-jumping: grows holds, expected to be violated\n")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda d: d["states"].pop(), "kept/counter/jumping/low.itf.json: low is true in the last state"),
        (lambda d: d["states"][1].update({"n": {"#bigint": "2"}}), "kept/counter/jumping/low.itf.json: step 1: "),
        (
            lambda d: d["#meta"].update({"variant": "other"}),
            "kept/counter/jumping/low.itf.json: its #meta names another",
        ),
        (lambda d: d.pop("states"), "kept/counter/jumping/low.itf.json: not a trace in ITF"),
    ],
)
def test_a_damaged_file_is_found(streamproof: Any, bundle: Any, damage: Any, problem: str) -> None:
    """A file that does not replay, shows nothing, or is of something else ends the check with 161."""
    bundle({"low": "violated"})
    streamproof("counterexamples", "--out", "kept")
    document = json.loads(KEPT.read_text())
    damage(document)
    KEPT.write_text(json.dumps(document))
    done = streamproof("counterexamples", "--out", "kept", "--check")
    assert (done.code, done.err.startswith(problem)) == (161, True), done.err


def test_missing_and_left_over_files_are_found(streamproof: Any, bundle: Any) -> None:
    """A file that is gone and one that nothing promises are both named."""
    bundle({"low": "violated"})
    streamproof("counterexamples", "--out", "kept")
    KEPT.rename(KEPT.with_name("old.itf.json"))
    done = streamproof("counterexamples", "--out", "kept", "--check")
    assert done.code == 161
    assert done.err == (
        "kept/counter/jumping/low.itf.json: missing\n"
        "kept/counter/jumping/old.itf.json: no specification expects this violation; remove it\n"
    )


def test_a_stale_text_is_found(streamproof: Any, bundle: Any) -> None:
    """A text that is not that of the trace beside it, as after a change of the model's lines."""
    bundle({"low": "violated"})
    streamproof("counterexamples", "--out", "kept")
    text = KEPT.with_name("low.txt")
    text.write_text(text.read_text().replace("counter.py:", "counter.py:1"))
    done = streamproof("counterexamples", "--out", "kept", "--check")
    assert (done.code, done.err) == (
        161,
        "kept/counter/jumping/low.txt: differs from the text of the trace beside it; run streamproof counterexamples again\n",
    )


def test_a_longer_trace_is_found(streamproof: Any, bundle: Any, folder: Path) -> None:
    """A trace with a detour replays and is still refused: the committed ones are as short as can be."""
    text = (folder / "counter.py").read_text()
    detour = "    @action\n    def wait(self, s):\n        s.n = s.n\n\n    @invariant\n"
    (folder / "counter.py").write_text(text.replace("    @invariant\n", detour, 1))
    bundle({"low": "violated"})
    streamproof("counterexamples", "--out", "kept")
    arguments = ("--variant", "jumping", "--action", "wait", "--action", "increment", "--format", "itf")
    assert streamproof("export", "counter.py", *arguments, "--out", str(KEPT)).code == 0
    document = json.loads(KEPT.read_text())
    document["#meta"]["property"] = "low"
    KEPT.write_text(json.dumps(document))
    done = streamproof("counterexamples", "--out", "kept", "--check")
    assert (done.code, done.err) == (161, f"{KEPT}: 2 steps, the shortest trace has 1\n")
