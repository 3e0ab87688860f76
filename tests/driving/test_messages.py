"""The schema of the messages, the page about them and the reader agree; a contract is a schema of real logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamproof.cli.verbs import run
from streamproof.driving import adapter, messages
from streamproof.driving.contract import contract
from streamproof.driving.suite import make_suite
from streamproof.driving.testing import subject_of
from streamproof.selection import selected

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).resolve().parents[2]
LEASE = str(ROOT / "examples" / "lease" / "lease.py")
SCHEMA: Any = json.loads((Path(messages.__file__).parent / "drive.schema.json").read_text(encoding="utf-8"))
RESULTS: Any = json.loads((Path(messages.__file__).parent / "results.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_reader_has_the_fields_of_the_schema() -> None:
    """Each kind of message has the same fields in both."""
    for kind, optional in messages._FIELDS.items():
        fields = {*SCHEMA["$defs"][kind]["properties"]} - {"id"}
        own = {"refused": "accepted", "observed": "state"}.get(kind, kind)
        assert fields == {own, *optional}, kind
    assert SCHEMA["$defs"]["reset"]["properties"]["protocol"] == {"const": adapter.PROTOCOL}


def test_the_examples_of_the_page_are_messages() -> None:
    """Calls, answers and events on the page are valid, and are understood."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    page = (ROOT / "docs" / "how-to-drive.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- file (?:calls|answers)\.ndjson -->\n```json\n(.*?)```", page, re.S)
    assert len(blocks) == 2
    for line in "".join(blocks).splitlines():
        data = json.loads(line)
        VALIDATOR.validate(data)
        if "call" not in data:
            messages.understood(data)


WRONG = [
    [], 1, "x", {}, {"id": 1}, {"id": 1, "accepted": 1}, {"id": True, "accepted": True},
    {"id": 1, "accepted": True, "why": ""}, {"id": 1, "ready": False}, {"event": ""}, {"event": "a", "args": []},
    {"event": "a", "because": "b"}, {"id": 1, "state": 3}, {"id": 1, "accepted": False, "args": {}},
    {"id": 1, "ready": True, "own": "a"}, {"id": 1, "unsupported": []}, {"ready": True},
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG, ids=str)
def test_what_the_schema_rejects_the_reader_rejects(data: Any) -> None:
    """Both reject the same."""
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(messages.AdapterFailure):
        messages.understood(data)


@pytest.mark.parametrize(
    "model",
    [
        LEASE,
        "task_attempt",
        *(pytest.param(m, marks=pytest.mark.long) for m in ("checkpoints", "reference.three_way_handshake")),
    ],
)
def test_a_contract_is_valid_for_the_logs_of_the_model(model: str) -> None:
    """Every line of a suite is an instance of the contract's schema; a changed one is none."""
    from streamproof.conformance.event_table import record

    subject = subject_of(selected(model))
    found = contract(subject.system)
    jsonschema.Draft202012Validator.check_schema(found["line"])
    validator = jsonschema.Draft202012Validator(found["line"])
    suite = make_suite(subject, 50_000, variants=False)
    events = [event for script in suite.scripts[:5] for event in script.events(suite.system)]
    assert events
    for event in events[:200]:
        data = record(event)
        validator.validate(data)
        assert not validator.is_valid({**data, "event": "no such action"})
        assert not validator.is_valid({**data, "state": {"no such variable": 1}})
    assert {e["name"] for e in found["events"]} == {a.name for a in subject.system.actions}


def test_the_verb_prints_a_page_and_a_schema(tmp_path: Path) -> None:
    """`streamproof contract` has each action with its meaning, and writes the same as JSON."""
    words = [sys.executable, "-m", "streamproof", "contract", LEASE, "--json", str(tmp_path / "c.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "| `grant` | `client`: 0, 1 | The lease is free; the client gets it with the next token. |" in done.stdout
    assert (
        json.loads((tmp_path / "c.json").read_text())["line"]["$schema"]
        == "https://json-schema.org/draft/2020-12/schema"
    )


@pytest.mark.parametrize(
    ("name", "suite", "answer", "reachable"),
    [
        ("LeaseAdapter", True, "no difference", 81),
        ("LeaseAdapter", False, "inconclusive", None),
        ("Unfenced", True, "difference", 81),
    ],
)
def test_results_of_drives_have_the_fields_of_their_schema(
    name: str, suite: bool, answer: str, reachable: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """`drive --json` has exactly the fields that the schema describes, with and without the number of reachable states."""
    adapter_file = ROOT / "examples" / "lease" / "adapter.py"
    few = () if suite else ("--no-suite", "--walks", "1", "--steps", "3")
    run(["drive", LEASE, "--adapter", f"{adapter_file}:{name}", "--seed", "1", *few, "--json", "-"])
    data = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(RESULTS).validate(data)
    assert (data["answer"], data["reachable"]) == (answer, reachable)
    described = RESULTS["$defs"]["driven"]["properties"]
    assert {*data} == {*described, *RESULTS["$defs"]["chosen"]["properties"]}
    for wrong in ({"reachable": 0}, {"reachable": "81"}, {"states": None}, {"ends": {"other": 1}}, {"actions": [{}]}):
        assert not jsonschema.Draft202012Validator(RESULTS).is_valid({**data, **wrong})
    for field in data:
        assert not jsonschema.Draft202012Validator(RESULTS).is_valid({n: v for n, v in data.items() if n != field})


@pytest.mark.long
def test_results_are_instances_of_their_schema(tmp_path: Path) -> None:
    """JSON of `check`, `validate`, `drive` and `suite`, and traces, are what `results.schema.json` describes."""
    jsonschema.Draft202012Validator.check_schema(RESULTS)
    validator = jsonschema.Draft202012Validator(RESULTS)
    adapter_file = ROOT / "examples" / "lease" / "adapter.py"
    commands = [
        ["check", LEASE, "--variant", "unfenced", "-q", "--out", "traces", "--json", "check.json"],
        ["suite", LEASE, "--out", "suite"],
        ["validate", "suite/suite-bad.ndjson", "--model", LEASE, "--json", "rejected.json"],
        ["validate", "suite/suite-good.ndjson", "--model", LEASE, "--json", "accepted.json"],
        ["drive", LEASE, "--adapter", f"{adapter_file}:Unfenced", "--seed", "1", "--json", "driven.json"],
    ]
    for words in commands:
        subprocess.run([sys.executable, "-m", "streamproof", *words], cwd=tmp_path, capture_output=True, check=False)
    files = [*tmp_path.glob("*.json"), tmp_path / "suite" / "suite.json", *(tmp_path / "traces").rglob("*.itf.json")]
    assert len(files) == 6
    for file in files:
        data = json.loads(file.read_text())
        validator.validate(data)
        assert not validator.is_valid(
            {name: value for name, value in data.items() if name not in ("verdicts", "states", "answer")}
        )
        assert not validator.is_valid({**data, "schema": "streamproof.other/1", "#meta": None})
