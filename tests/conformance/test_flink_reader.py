"""Reading recorded runs of Flink: what is counted, joined, explained and put in order."""

from __future__ import annotations

import json
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from shares import share
from streamproof.conformance.event import Event
from streamproof.conformance.flink import FlinkRun, find_runs, read_run
from streamproof.conformance.flink.message_forms import FORMS

DATA = Path(__file__).parents[1] / "data" / "flink"
COUNTS: dict[str, dict[str, int]] = json.loads((DATA / "counts.json").read_text())
FAMILIES = {form.family for forms in FORMS.values() for form in forms}
PARTITION = "1b896d51e3f636509dd63673bd4465d6#3@ff9ce03b0dded51c1fc2d429c495fd95_9dd63673dd41ea021b896d5203f3ba7c_3_0"


def _folder(run: str, flink_logs: Path, flink_credit: Path) -> Path:
    return next(folder / run for folder in (flink_logs, flink_credit) if (folder / run).is_dir())


def _only(run: FlinkRun, family: str, process: str) -> list[Event]:
    return [event for event in run.events if event.event == family and event.process == process]


@pytest.mark.parametrize("name", share(sorted(COUNTS), 3))
def test_counts(name: str, flink_logs: Path, flink_credit: Path) -> None:
    """Each run has as many events of each family as a search for fixed strings finds, and nothing wrong with it."""
    run = read_run(_folder(name, flink_logs, flink_credit))
    assert dict(run.counts) == COUNTS[name]
    assert run.problems == ()
    assert len(run.events) == sum(COUNTS[name].values())


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_every_event_of_the_job_is_known_to_be(name: str, flink_logs: Path, flink_credit: Path) -> None:
    """Each run has one job; only what concerns the cluster belongs to none."""
    run = read_run(_folder(name, flink_logs, flink_credit))
    (job,) = run.jobs
    without = {event.event for event in run.events if event.trace != job}
    cluster = {name for name in FAMILIES if name.startswith(("rm.", "hb."))} | {"tm.closerm", "net.connfail"}
    assert without <= cluster
    assert {event.event for event in run.events if event.trace == job} & cluster == set()


def test_nearly_all_families_are_recorded(flink_logs: Path, flink_credit: Path) -> None:
    """The runs show every family but those of slots that never come, a restart of the whole job, the adaptive scheduler,
    and checkpoints, which other runs have."""
    seen = {family for name in COUNTS for family in COUNTS[name]}
    unseen = {"slot.unfulfilled", "slot.jm.notenough", "failover.global", "failover.global.restart", "sched.adaptive"}
    assert {family for family in FAMILIES - seen if not family.startswith("ckpt.")} == unseen


def test_an_attempt_is_taken_apart(flink_logs: Path) -> None:
    """A transition has the attempt in full and in parts, the task, the place, and where it was logged."""
    run = read_run(flink_logs / "b-lostpart-1")
    event = next(e for e in run.events if e.event == "exec.transition" and e.args["new"] == "FAILED")
    attempt = "ff9ce03b0dded51c1fc2d429c495fd95_e883208d19e3c34f8aaf2a3168a63337_1_0"
    assert event.trace == "337d69de26fec894361caf2e7c702644"
    assert event.process == "jobmanager"
    assert event.ts == "2026-11-21T03:19:12.316"
    assert str(event.loc) == f"{flink_logs}/b-lostpart-1/jobmanager.log:664"
    assert event.args == {
        "attempt": attempt,
        "graph": "ff9ce03b0dded51c1fc2d429c495fd95",
        "vertex": "e883208d19e3c34f8aaf2a3168a63337",
        "subtask": 1,
        "number": 0,
        "task": "C -> C-sink: Writer",
        "parallelism": 2,
        "old": "INITIALIZING",
        "new": "FAILED",
        "tm": "tm-0",
        "host": "localhost",
        "port": 42909,
        "cause": "org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id tm-0 is no longer reachable.",
        "causes": ["org.apache.flink.runtime.jobmaster.JobMasterException"],
    }


def test_a_failure_names_the_partition_it_could_not_reach(flink_logs: Path) -> None:
    """The partition and the chain of exceptions come from the stack trace, in all three places that show it."""
    run = read_run(flink_logs / "b-lostpart-1")
    chain = [
        "PartitionConnectionException",
        "RemoteTransportException",
        "AnnotatedConnectException",
        "ConnectException",
    ]
    for family, process in (
        ("exec.transition", "jobmanager"),
        ("failover.archive", "jobmanager"),
        ("tm.transition", "taskmanager-2"),
    ):
        event = next(e for e in _only(run, family, process) if e.args.get("partition") == PARTITION)
        assert event.args["dataset"] == "1b896d51e3f636509dd63673bd4465d6"
        assert event.args["pnum"] == 3
        assert event.args["producer"] == "ff9ce03b0dded51c1fc2d429c495fd95_9dd63673dd41ea021b896d5203f3ba7c_3_0"
        assert [name.rpartition(".")[2].rpartition("$")[2] for name in event.args["causes"]] == chain


def test_a_partition_is_found_under_other_exceptions(flink_logs: Path) -> None:
    """A consumer learns of a deleted file from the other side, one exception deeper."""
    run = read_run(flink_logs / "b-delfile-1")
    (event,) = _only(run, "failover.archive", "jobmanager")
    assert [name.rpartition(".")[2] for name in event.args["causes"]] == [
        "RemoteTransportException",
        "PartitionNotFoundException",
    ]
    assert event.args["partition"].startswith("1b896d51e3f636509dd63673bd4465d6#1@")


def test_failovers_of_a_lost_taskmanager(flink_logs: Path) -> None:
    """Losing a TaskManager restarts one task first and ten when a consumer misses its partition; so did 1.17."""
    for name in ("b-lostpart-1", "b117-lostpart-1"):
        counts = [event.args["count"] for event in _only(read_run(flink_logs / name), "failover.restart", "jobmanager")]
        assert counts == [1, 10]


def test_processes_know_their_role_and_resource(flink_logs: Path) -> None:
    """Roles come from what a process logs, an idle TaskManager's too; resource ids from the logs."""
    run = read_run(flink_logs / "f-clean-batch-2")
    assert {name: (process.role, process.tm) for name, process in run.processes.items()} == {
        "jobmanager": ("jobmanager", None),
        "taskmanager-0": ("taskmanager", "tm-0"),
        "taskmanager-1": ("taskmanager", "tm-1"),
        "taskmanager-2": ("taskmanager", "tm-2"),
    }
    assert [event.event for event in run.events if event.process == "taskmanager-0" and event.trace] == []


def test_threads_name_the_attempt(flink_logs: Path) -> None:
    """In a layout with threads, what a task's thread logs bears its attempt; other layouts cannot tell."""
    threads, plain = read_run(flink_logs / "a-taskfail-2"), read_run(flink_logs / "a-taskfail-1")
    requests = [event for event in threads.events if event.event in ("part.reqlocal", "part.reqremote")]
    assert len(requests) == 32
    assert all(event.args["by"].startswith("5e849d028ac5c9888b95ff103cb73e90_") for event in requests)
    assert not any("by" in event.args for event in plain.events)


def test_facts_about_a_run(flink_logs: Path) -> None:
    """Jobs have names, graphs have jobs, the REST answer is found, the loggers without families are counted."""
    run = read_run(flink_logs / "g-jmloss-1")
    job = "3a56cf22aa7465cdf8756ca4f8f4aae6"
    assert run.name == "g-jmloss-1"
    assert dict(run.jobs) == {job: "batch-diamond"}
    assert list(run.graphs.values()) == [job]
    assert {name: path.name for name, path in run.rest.items()} == {job: "rest-before-kill-3a56cf22.json"}
    assert run.version == "2.3.0"
    assert run.unknown["BlobServer"] == 2
    assert {event.process for event in run.of_job(job)} == {"jobmanager", "taskmanager-0", "taskmanager-1"}


def test_a_process_counts_its_events(flink_logs: Path) -> None:
    """Within each process events are numbered 0, 1, 2, ... in the order of the log."""
    run = read_run(flink_logs / "a-pipelined-1")
    assert (
        {*run.processes} == {event.process for event in run.events} == {"jobmanager", "taskmanager-0", "taskmanager-1"}
    )
    for process in run.processes:
        events = [event for event in run.events if event.process == process]
        assert [event.seq for event in events] == list(range(len(events)))
        assert [event.line for event in events] == sorted(event.line or 0 for event in events)


def test_merged_by_time_without_reordering_a_process(flink_logs: Path) -> None:
    """All events by time: processes interleave, each in its own order."""
    run = read_run(flink_logs / "a-taskfail-2")
    merged = run.merged()
    assert sorted(merged, key=lambda e: (e.process, e.seq)) == list(run.events)
    for process in run.processes:
        assert [e.seq for e in merged if e.process == process] == [e.seq for e in run.events if e.process == process]
    assert sum(a.process != b.process for a, b in pairwise(merged)) == 188
    # In the log itself two threads of one TaskManager wrote one millisecond out of order.
    (late,) = [(a, b) for a, b in pairwise(merged) if (a.ts or "") > (b.ts or "")]
    assert {event.process for event in late} == {"taskmanager-2"}


def test_loops_of_flink_1(flink_logs: Path) -> None:
    """The bulk iteration of 1.17 runs four supersteps and ends by their number."""
    run = read_run(flink_logs / "i117-bulk-1")
    (end,) = _only(run, "loop.end", "taskmanager-1")
    assert end.args == {
        "why": "maximum number of iterations",
        "step": 4,
        "task": "Sync (Bulk Iteration)",
        "parallelism": 1,
        "subtask": 0,
    }
    steps = [e.args["step"] for e in _only(run, "loop.step", "taskmanager-1") if e.args["what"] == "starting"]
    assert (min(steps), max(steps), len(steps)) == (1, 4, 20)


def test_two_jobs_are_distinguished(flink_logs: Path, tmp_path: Path) -> None:
    """With two jobs in one log, events that name no job still find theirs over attempts and slots."""
    for name in ("jobmanager", "taskmanager-0", "taskmanager-1"):
        both = [(flink_logs / run / f"{name}.log").read_text() for run in ("a-taskfail-1", "b-delfile-1")]
        (tmp_path / f"{name}.log").write_text("".join(both))
    run = read_run(tmp_path)
    assert sorted(run.jobs) == ["0dd71ca99a42566057cc6b437213f852", "2553349be4ea644e49a770db320da9ce"]
    for job, name in zip(sorted(run.jobs), ("a-taskfail-1", "b-delfile-1"), strict=True):
        alone = read_run(flink_logs / name)
        for family in (
            "exec.transition",
            "exec.ignored",
            "failover.restart",
            "region.built",
            "part.released",
            "slot.jm.reserve",
            "slot.logical.alloc",
            "graph.edge",
            "sched.strategy",
            "part.tmrelease",
            "slot.tm.activate",
        ):
            assert len([e for e in run.of_job(job) if e.event == family]) == alone.counts[family], family


def test_jobs_that_start_at_the_same_time(tmp_path: Path) -> None:
    """Vertices tell jobs apart whose graphs are built in turns; what nothing tells apart is nobody's."""
    one, two = "1" * 32, "2" * 32
    head = "2026-11-21 03:17:55,749 {} org.apache.flink.runtime.{} [] - {}\n"
    graph, topology = "executiongraph.ExecutionGraph", "scheduler.adapter.DefaultExecutionTopology"
    lines = [
        (graph, f"Created execution graph {'a' * 32} for job {one}."),
        (graph, f"Created execution graph {'b' * 32} for job {two}."),
        (graph, f"Connecting ExecutionJobVertex {'c' * 32} (X) to 0 predecessors."),
        (graph, f"Connecting ExecutionJobVertex {'d' * 32} (Y) to 0 predecessors."),
        (topology, "Built 1 new pipelined regions in 0 ms, total 1 pipelined regions currently."),
        (graph, f"X (1/1) ({'a' * 32}_{'c' * 32}_0_0) switched from CREATED to SCHEDULED."),
        (graph, f"Y (1/1) ({'b' * 32}_{'d' * 32}_0_0) switched from CREATED to SCHEDULED."),
        (graph, "Ignoring transition of vertex X (1/1) - execution #0 to FAILED while being FINISHED."),
    ]
    (tmp_path / "jobmanager.log").write_text("".join(head.format("DEBUG", *line) for line in lines))
    traces = [(event.event, event.trace) for event in read_run(tmp_path).events]
    assert traces == [
        ("job.graph", one),
        ("job.graph", two),
        ("graph.vertex", one),
        ("graph.vertex", two),
        ("region.built", ""),
        ("exec.transition", one),
        ("exec.transition", two),
        ("exec.ignored", one),
    ]


def test_the_whole_archive_is_covered(flink_logs: Path, flink_credit: Path) -> None:
    """Every run in the archives has its counts."""
    found = [run.name for folder in (flink_logs, flink_credit) for run in find_runs(folder)]
    assert sorted(found) == sorted(COUNTS)
    with tarfile.open(DATA / "logs.tar.xz") as archive:
        assert len([name for name in archive.getnames() if name.endswith("jobmanager.log")]) == 20
