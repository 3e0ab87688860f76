"""Lines that contradict themselves, each other or the job graph are rejected, and the line is named."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from shares import share
from streamproof.conformance import Event
from streamproof.conformance.validation import validate_paths
from streamproof_specs.attempts.flink.agreement import contradictions

HEX = "[0-9a-f]{32}"
JM, TM = "jobmanager", "taskmanager"
SECOND, FIRST = rf"(/4\) \({HEX}_{HEX}_1_0\) switched from RUNNING)", rf"( \({HEX}_{HEX}_0_0\) switched from DEPL)"
RUNNING = rf"( \({HEX}_{HEX}_0_0\) switched from RUNNING)"
EDITS = {
    "deployed to another TaskManager": (JM, r"(Deploying B .* to )tm-\d( @ )", r"\1tm-9\2"),
    "another allocation, by the TaskManager": (TM, r"(Received task .* allocation id )[0-9a-f]{4}", r"\g<1>0000"),
    "another allocation, by the JobManager": (JM, r"(Deploying .* allocation id )[0-9a-f]{4}", r"\g<1>0000"),
    "another subtask, by the JobManager": (JM, r"(B \()2" + SECOND, r"\g<1>3\2"),
    "another subtask, by the TaskManager": (TM, r"(B \()1(/4\)#0)" + FIRST, r"\g<1>3\2\3"),
    "another parallelism": (JM, r"(B \(1/)4(\))" + RUNNING, r"\g<1>9\2\3"),
    "another attempt, by the TaskManager": (TM, r"(B \(1/4\)#)0" + FIRST, r"\g<1>5\2"),
    "another attempt, by the JobManager": (JM, r"(Deploying B \(1/4\) \(attempt #)0", r"\g<1>7"),
    "another name": (JM, r"- B( \(1/4\))" + RUNNING, r"- Q\1\2"),
    "another type of partition": (TM, rf"(Registered \w+ {HEX}#\S+ \[)\w+", r"\1PIPELINED"),
    "another kind of partition": (TM, r"(Requesting .* of )ResultPartition( )", r"\1PipelinedResultPartition\2"),
    "a dataset that nobody writes": (TM, r"(Registered \w+ )[0-9a-f]{6}", r"\1abcdef"),
}
REASONS = {
    "deployed to another TaskManager": "the TaskManager of the allocation is tm-9, but tm-",
    "another allocation, by the TaskManager": "the allocation of the attempt is",
    "another allocation, by the JobManager": "the allocation of the attempt is",
    "another subtask, by the JobManager": "the name is that of subtask 3, the identifier that of subtask 2",
    "another subtask, by the TaskManager": "the name is that of subtask 3, the identifier that of subtask 1",
    "another parallelism": "the parallelism of the task is 9, but 4",
    "another attempt, by the TaskManager": "the name is that of attempt 5, the identifier that of attempt 0",
    "another attempt, by the JobManager": "the name is that of attempt 7, the identifier that of attempt 0",
    "another name": "the name of the task is Q, but B",
    "another type of partition": "the type of the dataset is PIPELINED, but BLOCKING",
    "another kind of partition": "the kind of the partition is PipelinedResultPartition, but ResultPartition",
    "a dataset that nobody writes": "its producer has no further output",
}


@pytest.mark.parametrize("kind", share(EDITS, 2))
def test_a_line_that_disagrees_is_rejected(kind: str, flink_logs: Path, tmp_path: Path) -> None:
    """One line of a correct run is changed; the others contradict it."""
    of, pattern, changed = EDITS[kind]
    run = Path(shutil.copytree(flink_logs / "b-lostpart-1", tmp_path / "run"))
    for file in sorted(run.glob(f"{of}*.log")):
        text = file.read_text()
        found = re.search(pattern, text)
        if found:
            break
    assert found
    file.write_text(text[: found.start()] + found.expand(changed) + text[found.end() :])
    (verdict,) = validate_paths([run])
    assert verdict.answer == "rejected"
    assert REASONS[kind] in (verdict.reason or "")


def test_of_an_attempt_deployed_twice_the_second_deployment_is_wrong() -> None:
    """Whatever the number of lines that follow each."""

    def line(number: int, process: str, event: str, **args: str) -> Event:
        return Event("job", process, number, event, {"attempt": "a", **args}, file=f"{process}.log", line=number)

    received = [line(n, "tm2", "tm.transition") for n in range(3)]
    first, second = (line(n, "jm", "exec.deploy", tm=f"tm-{n}", alloc=f"slot-{n}") for n in (1, 2))
    places = {"tm1": "tm-1", "tm2": "tm-2"}
    found = contradictions([first, second, *received], {}, places)
    assert ("jm", 1) not in found
    assert found["jm", 2] == "the TaskManager of the attempt is tm-2, but tm-1 at jm.log:1"
    assert contradictions([second, *received], {}, places) == {}
