"""`validate --variant`: event logs are judged by a variant of the model, which every output names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamproof import validate
from streamproof.base.errors import UsageError
from streamproof.cli.verbs import run
from streamproof.conformance.events import write_ndjson
from streamproof.conformance.validation import assert_conforms
from streamproof.driving.suite import make_suite
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof.user_code import import_file

LEASE = Path(__file__).resolve().parents[2] / "examples" / "lease" / "lease.py"
STEPS: list[tuple[str, dict[str, int]]] = [
    ("grant", {"client": 0}),
    ("expire", {}),
    ("grant", {"client": 1}),
    ("write", {"client": 1, "token": 2}),
    ("write", {"client": 0, "token": 1}),
]
"""The storage accepts a token older than the newest that it has seen."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A run of the lease service without its check."""
    return written(tmp_path / "run.ndjson", STEPS)


def written(file: Path, steps: list[tuple[str, dict[str, int]]]) -> Path:
    """An event log of one process."""
    events = [
        {"trace": "t", "process": "storage", "seq": at, "event": event, "args": args}
        for at, (event, args) in enumerate(steps)
    ]
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return file


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command line: the exit code, and what it printed."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(*words: Any) -> tuple[int, str]:
        code = run(list(map(str, words)))
        found = capsys.readouterr()
        return code, found.out + found.err

    return command


def test_every_output_names_the_variant(log: Path, cli: Any, tmp_path: Path) -> None:
    """The model rejects what its variant accepts; console and JSON say which one judged."""
    code, output = cli("validate", log, "--model", LEASE)
    assert (code, "rejected" in output, "unfenced" in output) == (161, True, False)
    code, output = cli("validate", log, "--model", LEASE, "--variant", "unfenced", "--json", tmp_path / "found.json")
    assert code == 0
    assert "run, lease (unfenced): 5 of 5 events matched" in output
    assert "followed by Unfenced, which has the rules of lease (unfenced)" in output
    (verdict,) = json.loads((tmp_path / "found.json").read_text())["verdicts"]
    assert (verdict["variant"], verdict["title"], verdict["machine"]) == ("unfenced", "lease (unfenced)", "Unfenced")
    assert verdict["parameters"] == {"clients": 2, "tokens": 3}


def test_a_variant_rejects_what_it_does_not_allow(tmp_path: Path, cli: Any) -> None:
    """A rejection names the variant, and is that of its rules; parameters are those of the variant, too."""
    log = written(tmp_path / "run.ndjson", [("grant", {"client": 0}), ("grant", {"client": 1})])
    code, output = cli("validate", log, "--model", LEASE, "--variant", "unfenced", "-p", "clients=3")
    assert code == 161
    assert "lease (unfenced): 1 of 2 events matched" in output
    (verdict,) = validate(log, str(LEASE), variant="unfenced", parameters={"clients": 3}).verdicts
    assert (verdict.answer, verdict.record()["variant"]) == ("rejected", "unfenced")
    assert verdict.record()["parameters"]["clients"] == 3


def test_a_report_names_the_variant(log: Path, cli: Any, tmp_path: Path) -> None:
    """So does the page that is made of the verdicts."""
    verdicts = tmp_path / "verdicts.json"
    cli("validate", log, "--model", LEASE, "--variant", "unfenced", "--json", verdicts)
    assert cli("report", verdicts, "--out", tmp_path / "out")[0] == 0
    assert '<span class="sub">unfenced</span>' in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--variant", "unfenced"], "--variant requires --model"),
        (["--model", "all", "--variant", "unfenced"], "--variant requires --model"),
        (["--model", LEASE, "--variant", "unfence"], "did you mean unfenced?"),
        (["--model", "reference.two_phase_commit", "--variant", "nothing"], "has no variant 'nothing'"),
    ],
)
def test_what_is_no_variant_is_refused(options: list[Any], message: str, log: Path, cli: Any) -> None:
    """With the remedy, and exit code 2."""
    code, output = cli("validate", log, *options)
    assert code == 2
    assert message in output


def test_logs_that_a_binding_reads_have_no_variant(tmp_path: Path, cli: Any) -> None:
    """The binding to Flink's logs chooses the machine that follows them."""
    (tmp_path / "jobmanager.log").write_text("2025-01-01 00:00:00,000 INFO  org.apache.flink.runtime.X [] - nothing\n")
    code, output = cli("validate", tmp_path, "--model", "failover", "--variant", "no-versioning")
    assert code == 2
    assert "--variant is not supported with failover" in output


def test_python_takes_classes_and_names(log: Path) -> None:
    """As the verb, for a class as for a name; without a model, or for something else, there is no variant."""
    lease: Any = import_file(LEASE).Lease  # type: ignore[attr-defined]
    for model in (lease, str(LEASE)):
        (verdict,) = validate(log, model, variant="unfenced").verdicts
        assert (verdict.answer, verdict.title) == ("accepted", "lease (unfenced)")
        assert_conforms(log, model, variant="unfenced")
        with pytest.raises(AssertionError, match="rejected"):
            assert_conforms(log, model)
    with pytest.raises(UsageError, match="a variant needs a model"):
        validate(log, variant="unfenced")
    with pytest.raises(UsageError, match="has no variants"):
        validate(log, selected(str(LEASE)).system(), variant="unfenced")


@pytest.mark.parametrize(
    "model",
    [
        str(LEASE),
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("task_attempt", "checkpoints", "partition_lifecycle", "slot_views", "baton")
        ),
    ],
)
def test_a_variant_accepts_the_traces_by_which_it_is_refuted(model: str, tmp_path: Path) -> None:
    """A suite has them: the model rejects each, and the variant that took it accepts it."""
    made = make_suite(subject_of(selected(model)), 100_000)
    refuted = {bad.name.removeprefix("variant-"): bad for bad in made.bad if bad.name.startswith("variant-")}
    assert refuted
    for variant, bad in refuted.items():
        log = tmp_path / f"{variant}.ndjson"
        write_ndjson(bad.events, log)
        assert [v.answer for v in validate(log, model).verdicts] == ["rejected"], variant
        assert [v.answer for v in validate(log, model, variant=variant).verdicts] == ["accepted"], variant
