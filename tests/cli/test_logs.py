"""`streamproof validate` and `streamproof report`: recorded runs in, verdicts and a page out."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.base.errors import InputError
from streamproof.conformance import Candidate, Event, Recovery, Rejection, RunVerdict
from streamproof.conformance.run_verdict import Answer

RUNS = Path(__file__).parents[1] / "data" / "flink" / "logs.tar.xz"


def judged(run: str, answer: Answer, **more: Any) -> RunVerdict:
    """A verdict as the validation gives it."""
    usual: dict[str, Any] = {"trace": "0dd71ca9", "model": "failover", "title": "word count", "read": 12, "matched": 9}
    return RunVerdict(run, answer=answer, **{**usual, **more})


REJECTION = Rejection(
    1,
    Event(
        "0dd71ca9",
        "jobmanager",
        3,
        "task.switch",
        {"to": "RUNNING"},
        file="runs/b/jobmanager.log",
        line=311,
    ),
    "action",
    "no state of the model allows this event",
    (Candidate("run(t=A)", "s.status[t] == 'SCHEDULED'   because  s.status[A] = FAILED"),),
    "Source (1/4) switched from CREATED to SCHEDULED",
    ("restart(k=0)",),
    3,
    (
        {"status": "[A: FAILED, B: CREATED]", "job": "RUNNING", "failures_left": "0"},
        {"status": "[A: FAILED, B: CREATED]", "job": "RUNNING", "failures_left": "1"},
        {"status": "[A: FAILED, B: SCHEDULED]", "job": "RUNNING", "failures_left": "0"},
    ),
)
RESTART = Recovery("2026-11-21T03:17:55.749", "A#0", None, 4)


@pytest.fixture
def validation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Replaces the validation by the verdicts given; returns the list of the calls it gets."""
    (folder / "runs").mkdir()

    def replace(*verdicts: RunVerdict) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def validate_paths(paths: Any, **options: Any) -> list[RunVerdict]:
            calls.append({"paths": paths, **options})
            return list(verdicts)

        monkeypatch.setattr("streamproof.cli.validate.validate_paths", validate_paths)
        return calls

    return replace


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["accepted", "accepted"], 0),
        (["accepted", "inconclusive"], 160),
        (["inconclusive", "error"], 153),
        (["error", "rejected", "inconclusive"], 161),
    ],
)
def test_exit_codes_of_validation(streamproof: Any, validation: Any, verdicts: list[Answer], code: int) -> None:
    """A rejection counts most, then a run that could not be validated, then an inconclusive one."""
    validation(*(judged(f"r{at}", answer) for at, answer in enumerate(verdicts)))
    assert streamproof("validate", "runs").code == code


MISTAKEN = """
from streamproof import Enum, Model, Range, Set, State, action

class Counter(Model):
    def state(self):
        return State(n=Range(0, 2), seen=Set(Enum("a", "b")))

    @action
    def up(self, s):
        s.n += 1
"""


def test_a_mistake_in_the_model_has_its_own_exit_code(streamproof: Any, folder: Path) -> None:
    """As `check` ends, unless a run is rejected."""
    (folder / "counter.py").write_text(MISTAKEN)
    events = [f'{{"trace":"t","process":"p","seq":{n},"event":"up"}}\n' for n in range(3)]
    (folder / "log.ndjson").write_text("".join(events))
    words = ("validate", "--model", "counter.py", "log.ndjson")
    done = streamproof(*words)
    assert (done.code, "s.n leaves Range(0, 2) in up()" in done.out) == (75, True)
    (folder / "other.ndjson").write_text('{"trace":"t","process":"p","seq":0,"event":"up","state":{"n":2}}\n')
    assert streamproof(*words, "other.ndjson").code == 161


PRODUCED = [f'{{"trace":"c","process":"sender","seq":{n},"event":"produce","args":{{"c":0}}}}\n' for n in range(3)]


@pytest.mark.parametrize(
    ("model", "parameters", "code", "said"),
    [
        ("credit", "", 0, "with depth=4, which the log needs"),
        ("credit", "channels=1", 0, "with depth=4, which the log needs"),
        ("credit", "depth=2", 160, "channels=2, exclusive=1, floating=1 are those of the model, not of the"),
        ("credit", "depth=3", 0, ""),
        ("credit", "channels=9 exclusive=2 floating=4 depth=2", 161, "s.to_produce[c] > 0"),
        ("baton", "", 160, "topology=nested, work=1, ids=2 are those of the model, not of the implementation"),
        ("cyclic", "", 2, "cyclic has no action 'produce'"),
        ("reference.two_phase_commit", "", 2, "no action 'produce'"),
    ],
)
def test_the_default_instance_of_a_bundled_model_is_no_claim(
    model: str, parameters: str, code: int, said: str, streamproof: Any, folder: Path
) -> None:
    """A log takes the bounds that it needs; it is open if none help, and judged if all are stated with -p."""
    (folder / "log.ndjson").write_text("".join(PRODUCED))
    words = [word for text in parameters.split() for word in ("-p", text)]
    done = streamproof("validate", "log.ndjson", "--model", model, *words)
    assert done.code == code, done.out + done.err
    assert said in " ".join((done.out + done.err).split())


def test_the_default_instance_of_an_own_model_is_a_claim(streamproof: Any, folder: Path) -> None:
    """It is the user's; -p replaces it."""
    (folder / "counter.py").write_text(
        "from streamproof import Model, Range, State, action, require\n\nclass Counter(Model):\n    most: int = 2\n\n"
        "    def state(self):\n        return State(n=Range(0, self.most))\n\n    @action\n    def up(self, s):\n"
        "        require(s.n < self.most)\n        s.n += 1\n"
    )
    events = [f'{{"trace":"t","process":"p","seq":{n},"event":"up"}}\n' for n in range(3)]
    (folder / "log.ndjson").write_text("".join(events))
    words = ("validate", "--model", "counter.py", "log.ndjson")
    assert [streamproof(*words).code, streamproof(*words, "-p", "most=3").code] == [161, 0]
    wrong = streamproof(*words, "-p", "least=3")
    assert (wrong.code, "has no parameter 'least'" in wrong.err) == (2, True)
    assert "has no parameter 'a'" in streamproof("validate", "log.ndjson", "--model", "regions", "-p", "a=1").err
    (folder / "jobmanager.log").write_text("2026-11-21 03:17:55,749 INFO  org.apache.flink.runtime.A [] - B\n")
    assert "the logs have the sizes" in streamproof("validate", "jobmanager.log", "--model", "regions", "-p", "a=1").err
    assert "-p requires --model" in streamproof("validate", "log.ndjson", "-p", "a=1").err


def test_a_recorded_set_has_each_member_once(streamproof: Any, folder: Path) -> None:
    """The log is wrong, not the run."""
    (folder / "counter.py").write_text(MISTAKEN)
    event = '{"trace":"t","process":"p","seq":0,"event":"up","state":{"seen":["a","b","a"]}}'
    (folder / "log.ndjson").write_text(event + "\n")
    done = streamproof("validate", "--model", "counter.py", "log.ndjson")
    assert done.code == 2
    assert 'log.ndjson:1: seen is a set, and has "a" twice in the log\n  give each member once' in done.err


def test_verdicts_are_explained(streamproof: Any, validation: Any, golden: Callable[[str, str], None]) -> None:
    """One line per job; under a rejection the event, the place in the log, the states before it, each
    candidate, and what would have fitted; notes on what was accepted are printed too."""
    validation(
        judged("a", "accepted", recoveries=(RESTART,), reason="the log ends while the job is RUNNING"),
        judged("b", "rejected", rejection=REJECTION, reason=REJECTION.message),
        judged("b", "inconclusive", trace="11f0", reason="the log begins in the middle"),
    )
    done = streamproof("validate", "runs")
    assert (done.code, done.err) == (161, "")
    golden("validate", done.out)


def test_verdicts_are_written_as_json(streamproof: Any, validation: Any) -> None:
    """The document holds the records of the verdicts."""
    verdicts = [judged("a", "accepted"), judged("b", "rejected", rejection=REJECTION)]
    calls = validation(*verdicts)
    done = streamproof("validate", "runs", "--json", "-", "--events", "events", "--format", "parquet")
    document = json.loads(done.out)
    assert (document["schema"], document["exit_code"]) == ("streamproof.validate/1", 161)
    assert document["verdicts"] == [verdict.record() for verdict in verdicts]
    assert calls[0]["paths"] == [Path("runs")]
    assert (calls[0]["model"], calls[0]["events_dir"], calls[0]["events_format"]) == (
        None,
        Path("events"),
        "parquet",
    )


def test_a_folder_without_runs_is_bad_input(streamproof: Any, folder: Path) -> None:
    """The real validation of a folder that holds no log ends with 2."""
    (folder / "nothing").mkdir()
    done = streamproof("validate", "nothing")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("streamproof: error: nothing: no log was found\n")


def test_an_unknown_model_of_logs_is_named(streamproof: Any, folder: Path) -> None:
    """A model without a binding ends with 2 and the models that have one."""
    (folder / "nothing").mkdir()
    done = streamproof("validate", "nothing", "--model", "credit-card")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "streamproof: error: no model or binding 'credit-card'",
    )


def test_errors_of_the_validation_are_shown(streamproof: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not what it should be ends with 2, nothing written."""
    (folder / "runs").mkdir()

    def refuse(paths: Any, **options: Any) -> list[RunVerdict]:
        raise InputError("runs/plan.json is not a job graph", remedy="give the answer of /jobs/ID/plan")

    monkeypatch.setattr("streamproof.cli.validate.validate_paths", refuse)
    done = streamproof("validate", "runs", "--json", "v.json")
    assert (done.code, done.out, (folder / "v.json").exists()) == (2, "", False)
    assert done.err == "streamproof: error: runs/plan.json is not a job graph\n  give the answer of /jobs/ID/plan\n"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_recorded_runs_become_a_report(streamproof: Any, folder: Path) -> None:
    """Two recorded Flink runs are accepted, here and on Spark alike; the report on them is a page with tables."""
    with tarfile.open(RUNS) as archive:
        wanted = [m for m in archive if "/a-taskfail-1/" in m.name or "/f-clean-batch-1/" in m.name]
        archive.extractall("runs", members=wanted, filter="data")
    runs = sorted({str(log.parent) for log in Path("runs").rglob("jobmanager.log")})
    assert len(runs) == 2
    done = streamproof("validate", *runs, "--json", "verdicts.json", "--events", "events")
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 jobs: 2 accepted")
    verdicts = json.loads(Path("verdicts.json").read_text())["verdicts"]
    done = streamproof("validate", *runs, "--json", "-", "--master", "local[2]", "--events", "there")
    assert done.code == 0
    assert json.loads(done.out)["verdicts"] == verdicts
    here, there = ({p.name: p.read_bytes() for p in Path(name).iterdir()} for name in ("events", "there"))
    assert here == there
    done = streamproof(
        "report", "verdicts.json", "events", "--out", "report", "--title", "Two runs", "--json", "r.json"
    )
    assert done.code == 0
    assert done.out.splitlines()[-1] == "report/report.html"
    assert "Two runs" in Path("report/report.html").read_text()
    assert json.loads(Path("r.json").read_text())["verdicts"] == {
        "accepted": 2,
        "rejected": 0,
        "inconclusive": 0,
        "error": 0,
    }


def test_the_share_of_judged_events(streamproof: Any, folder: Path) -> None:
    """By family, with the actions that no run took; a share below the wanted one makes an accepted run inconclusive."""
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    run = "logs/a-taskfail-1"
    done = streamproof("validate", run, "--coverage", "--json", "v.json")
    assert done.code == 0
    document = json.loads((folder / "v.json").read_text())
    coverage = document["coverage"]
    assert coverage["exec.transition"] == {"read": 50, "judged": 50}
    read, judged_events = (sum(family[key] for family in coverage.values()) for key in ("read", "judged"))
    assert read >= document["verdicts"][0]["events"]["read"]
    assert judged_events == document["verdicts"][0]["events"]["matched"]
    share = 100 * judged_events / read
    assert f"judged by some model: {judged_events} of {read} events, {share:.0f} %" in done.out
    assert "of        50  100 %  exec.transition" in done.out
    untaken = next(line for line in done.out.splitlines() if line.startswith("actions of failover that no run took: "))
    actions = document["verdicts"][0]["actions"]
    assert "lose" in untaken
    assert not set(untaken.partition(": ")[2].split(", ")) & set(actions)
    low = streamproof("validate", run, "--min-judged", str(share + 1))
    assert (low.code, f"less than the {share + 1:g} % of --min-judged" in low.out) == (160, True)
    assert streamproof("validate", run, "--min-judged", str(share - 5)).code == 0
    refused = streamproof("validate", run, "--coverage", "--master", "local[1]")
    assert (refused.code, "not supported with --master" in refused.err) == (2, True)
