"""``check --what-if lose-tm=ID`` against recorded runs: the decisions that it tells at a loss are those of Flink."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamproof.conformance.flink import find_runs, read_run
from streamproof_models.failover.machine import Failover
from streamproof_specs.failover.job_graphs import graph_of_file, what_if

LOSSES = ("hb.unreachable", "hb.timeout", "rm.close")


def at_the_loss(folder: Path, tm: str, file: Path) -> list[int]:
    """Writes what the REST API would have said of the job when the JobManager lost a TaskManager. Returns the sizes of the
    decisions after that."""
    (run,) = map(read_run, find_runs(folder))
    (job,) = run.jobs
    answer: dict[str, Any] = json.loads(next(folder.glob("rest-*.json")).read_text(encoding="utf-8"))
    loss = next(e for e in run.events if e.event in LOSSES and tm in (e.args.get("id"), e.args.get("tm")))
    states: dict[tuple[str, int], str] = {}
    places: dict[tuple[str, int], str] = {}
    sizes: list[int] = []
    for event in run.of_job(job):
        if event.process == loss.process:
            args = event.args
            if event.seq > loss.seq and event.event == "failover.restart":
                sizes.append(args["count"])
            elif event.seq < loss.seq and event.event == "exec.transition":
                states[args["vertex"], args["subtask"]] = args["new"]
            elif event.seq < loss.seq and event.event == "exec.deploy":
                places[args["vertex"], args["subtask"]] = args["tm"]
    answer["job"]["state"] = "RUNNING"
    answer["subtasks"] = {
        v["id"]: [
            {
                "subtask": i,
                "status": states.get((v["id"], i), "CREATED"),
                "taskmanager-id": places.get((v["id"], i), "(unassigned)"),
            }
            for i in range(v["parallelism"])
        ]
        for v in answer["job"]["vertices"]
    }
    file.write_text(json.dumps(answer), encoding="utf-8")
    return sizes


@pytest.mark.parametrize(
    ("archive", "name", "tm", "recorded"),
    [
        ("logs", "b-lostpart-1", "tm-0", [1, 10]),
        ("logs", "b-lostpart-2", "tm-2", [11]),
        ("logs", "b117-lostpart-1", "tm-0", [1, 10]),
        ("versions", "v120-lostpart", "tm-1", [1, 8]),
        ("live", "tm12-kill", "tm-0", [3] * 12),
        ("live", "debug-stream-kill", "tm-2", [6, 3, 3]),
        ("live", "hybrid-full2", "tm-1", [2]),
    ],
)
def test_the_decisions_are_those_of_the_run(
    request: pytest.FixtureRequest, tmp_path: Path, archive: str, name: str, tm: str, recorded: list[int]
) -> None:
    """One after another: first the tasks at work, then what readers miss."""
    file = tmp_path / "rest.json"
    assert at_the_loss(request.getfixturevalue(f"flink_{archive}") / name, tm, file) == recorded
    model = Failover(**graph_of_file(str(file)))
    lines = list(what_if(model, f"lose-tm={tm}", {"job_graph": str(file)}))
    moment = next(at for at, line in enumerate(lines) if line.startswith("  at the moment of the file"))
    told = [line for line in lines[moment + 1 :] if " fails: " in line or " misses what " in line]
    counts = [len(re.findall(r"\(\d+/\d+\)", re.split(r" fails: | wrote: ", line)[1])) for line in told]
    assert counts == recorded
